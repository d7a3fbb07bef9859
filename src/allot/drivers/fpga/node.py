"""The half on a node: sets up a card's functions before the first container starts, and clears them after.

FPGA_CARD=card-0  FPGA_FUNCTIONS=fpga,nic-0,nic-1,signal-processor
"""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from allot.driver import Edits, Entry, Handed, Node, NodePlugin

from .board import Board
from .controller import NAME, Handle
from .pipeline import INVENTORY_LABEL, Card, published


def node_plugin(board: Board, cards: Sequence[Card], namespace: str) -> NodePlugin:
    def publishes(node: Node) -> list[Mapping[str, Any]]:
        return [
            {
                "apiVersion": "v1",
                "kind": "ConfigMap",
                "metadata": {
                    "name": f"fpga-{node.name}",
                    "namespace": namespace,
                    "labels": {INVENTORY_LABEL: "true"},
                },
                "data": {"node": node.name, "cards": published(cards)},
            }
        ]

    def prepare(claim: Handed) -> Edits:
        handle = msgspec.json.decode(claim.handle, type=Handle)
        board.set_up(handle.card, handle.pipeline)
        functions = ",".join(board.functions(handle.card))
        return Edits(env=(f"FPGA_CARD={handle.card}", f"FPGA_FUNCTIONS={functions}"))

    def unprepare(entry: Entry) -> None:
        board.clear(msgspec.json.decode(entry.handle, type=Handle).card)

    return NodePlugin(NAME, prepare, unprepare, publishes)
