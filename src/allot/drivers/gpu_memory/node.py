"""The half on a node: what its cards are, and what containers see of one.

GPU_CARD=gpu-0  GPU_MEMORY=2147483648      the same in every container that uses the claim
GPU_MEMORY=0                               the claim was optional, and nothing was free
"""

import subprocess
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import msgspec

from allot.driver import Edits, Handed, Node, NodePlugin

from .cards import Card
from .controller import NAME, Handle
from .parameters import GROUP, VERSION

INIT_S: Final = 30.0
"""For the administrator's command."""


def node_plugin(cards: Sequence[Card], namespace: str) -> NodePlugin:
    return NodePlugin(NAME, prepare, publishes=inventory(cards, namespace))


def inventory(cards: Sequence[Card], namespace: str) -> Callable[[Node], list[Mapping[str, Any]]]:
    """The object that tells the controller, and everybody who wants to know, which cards a node has."""

    def publishes(node: Node) -> list[Mapping[str, Any]]:
        return [
            {
                "apiVersion": f"{GROUP}/{VERSION}",
                "kind": "NodeGPUs",
                "metadata": {"name": node.name, "namespace": namespace},
                "cards": [
                    {"name": card.name, "memory": str(card.memory), "segment": str(card.segment)}
                    for card in cards
                ],
            }
        ]

    return publishes


def prepare(claim: Handed) -> Edits:
    handle = msgspec.json.decode(claim.handle, type=Handle)
    env = (f"GPU_CARD={handle.card}", f"GPU_MEMORY={handle.memory}")
    if handle.init and handle.memory:
        _initialise(claim, handle, env)
    return Edits(env=env)


def _initialise(claim: Handed, handle: Handle, env: Sequence[str]) -> None:
    """What the administrator wants to have run for each allocation, before the first container starts."""
    known = dict(one.split("=", 1) for one in (*env, f"CLAIM={claim}", "PATH=/usr/local/bin:/usr/bin:/bin"))
    done = subprocess.run(handle.init, env=known, capture_output=True, text=True, timeout=INIT_S)
    if done.returncode:
        said = done.stderr.strip()[-500:]
        raise RuntimeError(f"initCommand {handle.init[0]!r} ended with {done.returncode}: {said}")
