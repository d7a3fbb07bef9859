"""Whether a node has what a pod's numeric claims ask for, all of them together."""

from collections.abc import Sequence
from typing import Final

from allot.allocation import BadNodeSelector, selects
from allot.api import classic
from allot.numeric import Found, Lacking, Undecided, Want, fit

from ...framework import Rejection
from ...node import NodeInfo
from ...snapshot import Snapshot
from .asking import NAME

UNSUITABLE: Final = Rejection(NAME, "node(s) are not among those of the resource class")
UNDECIDED: Final = Rejection(NAME, "could not be decided whether all numeric claims fit", undecided=True)


class NumericCheck:
    def __init__(
        self, wants: Sequence[Want], classes: Sequence[classic.ResourceClass], snapshot: Snapshot
    ) -> None:
        self._wants = wants
        self._narrowing = [one for one in classes if one.suitable_nodes is not None]
        self._snapshot = snapshot
        self.missed: dict[str, Lacking] = {}
        """What nodes lack that were looked at and do not do; read by what is told."""

    def __call__(self, node: NodeInfo) -> Rejection | None:
        self.missed.pop(node.name, None)
        if not all(_suits(one, node) for one in self._narrowing):
            return UNSUITABLE
        answer = self.answer(node.name)
        if isinstance(answer, Undecided):
            return UNDECIDED
        if isinstance(answer, Lacking):
            self.missed[node.name] = answer
            return Rejection(NAME, answer.reason, resolvable=answer.by < float("inf"))
        return None

    def answer(self, node: str) -> Found | Lacking | Undecided:
        return fit(self._wants, self._snapshot.capacity.offers(node, self._snapshot.ledger))


def _suits(resource_class: classic.ResourceClass, node: NodeInfo) -> bool:
    try:
        return resource_class.suitable_nodes is None or selects(resource_class.suitable_nodes, node.place)
    except BadNodeSelector:
        return False
