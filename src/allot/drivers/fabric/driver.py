"""Both halves of the fabric's driver.

A claim takes one accelerator, or as many as `count` of its ConfigMap says.
"""

from collections.abc import Sequence
from typing import Final

import msgspec

from allot.driver import Edits, Handed, NodePlugin, UnknownResource
from allot.driver import controller as kit

from .enclosure import Enclosure

NAME: Final = "accelerator.example.com"
COUNT_MAX: Final = 64


class Handle(msgspec.Struct, frozen=True):
    node: str
    accelerators: tuple[str, ...]


class Fabric:
    """The half in the control plane: attaches, and detaches when nobody needs it any more."""

    def __init__(self, enclosure: Enclosure) -> None:
        self._enclosure = enclosure

    @property
    def controller(self) -> kit.Controller:
        return kit.Controller(
            NAME,
            self.allocate,
            self.deallocate,
            self.unsuitable_nodes,
            self.begin,
            class_kinds=frozenset(),
            claim_kinds=frozenset(("ConfigMap",)),
        )

    def begin(self, claims: Sequence[kit.Claim]) -> None:
        """What is attached for nobody, after whatever went wrong, is detached."""
        known = {claim.uid for claim in claims}
        self._enclosure.keep(lambda link: link.claim in known)

    def allocate(self, asks: Sequence[kit.Ask], node: str | None) -> kit.Answers:
        if node is None:
            return {
                ask.claim.uid: kit.Refused("it is attached to a node, and none is chosen") for ask in asks
            }
        found: dict[str, kit.Allocation | kit.Refused] = {}
        for ask in asks:
            wanted = count(ask)
            names = self._enclosure.attach(ask.claim.uid, node, wanted)
            found[ask.claim.uid] = (
                kit.Allocation(msgspec.json.encode(Handle(node, names)).decode(), kit.on_nodes(node))
                if names
                else kit.Refused(f"{wanted} wanted, {self._enclosure.free()} free in the enclosure")
            )
        return found

    def deallocate(self, claim: kit.Claim) -> None:
        self._enclosure.detach(claim.uid)

    def unsuitable_nodes(self, asks: Sequence[kit.Ask], nodes: Sequence[str]) -> kit.Unsuitable:
        """All nodes reach the enclosure, so all suit or none does."""
        wanted = sum(count(ask) - len(self._enclosure.of(ask.claim.uid)) for ask in asks)
        is_enough = wanted <= self._enclosure.free()
        return {ask.claim.uid: () if is_enough else nodes for ask in asks}


def count(ask: kit.Ask) -> int:
    """Raises NotUsable."""
    if ask.claim_parameters is None:
        return 1
    text = (ask.claim_parameters.fields.get("data") or {}).get("count", "1")
    if not text.isdecimal() or not 1 <= int(text) <= COUNT_MAX:
        raise kit.NotUsable(
            f"ConfigMap {ask.claim_parameters.name}: count: {text!r} is not a number from 1 to {COUNT_MAX}"
        )
    return int(text)


def node_plugin(enclosure: Enclosure, node: str) -> NodePlugin:
    """The half on a node: sees what is attached there."""

    def prepare(claim: Handed) -> Edits:
        handle = msgspec.json.decode(claim.handle, type=Handle)
        links = enclosure.links()
        for name in handle.accelerators:
            link = links.get(name)
            if link is None or link.node != node or link.claim != claim.uid:
                raise UnknownResource(f"{name} is not attached to {node} for claim {claim}")
        return Edits(env=(f"ACCELERATORS={','.join(handle.accelerators)}",))

    return NodePlugin(NAME, prepare)
