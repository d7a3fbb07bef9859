"""What each node has prepared, and what it has said about it.

What it promises
    PREP1  `wanted` names a claim as long as a pod of the node holds it.
    PREP2  `says` is what the server has accepted from this process, never what is on its way
           and never what an earlier process said: a write of that one may still come.
    PREP3  Who waits for the node to have spoken is named once, after it has.
"""

from collections.abc import Hashable, Iterable
from typing import Generic, TypeVar

from .claims import ClaimRef

K = TypeVar("K", bound=Hashable)


class Holding(Generic[K]):
    def __init__(self) -> None:
        self._held: dict[str, dict[str, frozenset[ClaimRef]]] = {}  # node -> pod -> claims
        self._said: dict[str, frozenset[str] | None] = {}  # node -> uids; None: not sure
        self._waiting: dict[str, dict[K, None]] = {}

    def hold(self, node: str, pod: str, claims: Iterable[ClaimRef]) -> None:
        wanted = frozenset(claims)
        if wanted:
            self._held.setdefault(node, {})[pod] = wanted

    def release(self, node: str, pod: str) -> None:
        held = self._held.get(node, {})
        held.pop(pod, None)
        if not held:
            self._held.pop(node, None)

    def wanted(self, node: str) -> tuple[ClaimRef, ...]:
        """PREP1. In a fixed order."""
        held = self._held.get(node, {})
        return tuple(sorted({claim for claims in held.values() for claim in claims}))

    def is_behind(self, node: str) -> bool:
        """The node has something to say: it has prepared more, or less, than it has said."""
        return self._said.get(node, frozenset()) != self.wanted_uids(node)

    def wanted_uids(self, node: str) -> frozenset[str]:
        return frozenset(claim.uid for claim in self.wanted(node))

    def says(self, node: str, claims: Iterable[ClaimRef]) -> bool:
        """PREP2."""
        said = self._said.get(node) or frozenset()
        return all(claim.uid in said for claim in claims)

    def lacks(self, node: str, claims: Iterable[ClaimRef]) -> bool:
        """PREP2, the other way round: nothing of these is on its list but what a pod holds."""
        said = self._said.get(node, frozenset())
        if said is None:
            return False
        left = [claim for claim in claims if claim.uid in said]
        return not left or self.wanted_uids(node).issuperset(claim.uid for claim in left)

    def doubt(self, node: str) -> None:
        """Its word may be another than this process remembers: it has to speak again."""
        self._said[node] = None

    def said(self, node: str, uids: Iterable[str]) -> tuple[K, ...]:
        """The server has accepted the node's list. Returns who waited for it (PREP3)."""
        self._said[node] = frozenset(uids)
        return tuple(self._waiting.pop(node, {}))

    def wait(self, node: str, key: K) -> None:
        self._waiting.setdefault(node, {})[key] = None

    def forget(self, node: str) -> None:
        """The node is gone, and its word with it."""
        for by_node in (self._held, self._said, self._waiting):
            by_node.pop(node, None)

    @property
    def speakers(self) -> tuple[str, ...]:
        """Nodes that have said something, now or earlier."""
        return tuple(self._said)
