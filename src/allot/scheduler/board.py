"""What is known of every node for the pods of one signature.

Where it sits
    `cycle` asks the board of a pod's signature which node is best; the board asks the
    plugins' checks and ratings, and remembers. Choosing costs what moved since the
    last pod of this signature, not the number of nodes.

What it promises
    BOARD1  After `refresh` has run to its end, the order is the one that asking every node
            afresh would give: by tiers of ratings, then by name.
    BOARD2  Only nodes that moved since the last refresh are looked at again.
    BOARD3  A refresh pauses after every few nodes, and after each that was too hard to decide: that
            one took all the steps it may have. So a long refresh holds nobody up. Nothing may change
            in the snapshot while it pauses.
"""

from bisect import bisect_left, insort
from collections import Counter, OrderedDict
from collections.abc import Collection, Generator, Hashable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from .framework import Check, Rate, Rejection, Signature, Tier
from .node import NodeInfo
from .snapshot import Mark, Snapshot
from .timing import Stopwatch

NODES_AT_ONCE = 32
SORT_AFTER = 64  # sorting once beats inserting many times
BOARDS_MAX = 192


class Rank(NamedTuple):
    """A node that fits. Sorts best first."""

    wish: float
    devices: tuple[float, ...]
    resources: float
    node: str


class Board:
    def __init__(
        self,
        checks: Sequence[Check],
        rates: Mapping[Tier, Sequence[Rate]],
        only: frozenset[str] | None = None,
        made: dict[str, Any] | None = None,
        plugins: Sequence[str] = (),
    ) -> None:
        """`plugins` are those that the checks are of; only a stopwatch wants to know."""
        self.made: dict[str, Any] = made if made is not None else {}
        """What the plugins keep for the signature (`CycleState.made`)."""
        self._checks = tuple(checks)
        self._plugins = tuple(plugins)
        self._watch: Stopwatch | None = None
        self._wishes = tuple(rates.get(Tier.WISH, ()))
        self._devices = tuple(rates.get(Tier.DEVICES, ()))
        self._resources = tuple(rates.get(Tier.RESOURCES, ()))
        self._only = only
        self._seen: Mark | None = None
        self._ranks: dict[str, Rank] = {}
        self._order: list[Rank] = []
        self._rejections: dict[str, Rejection] = {}
        self.reasons: Counter[Rejection] = Counter()
        """How many nodes say no, and why."""

    @property
    def order(self) -> Sequence[Rank]:
        """The nodes that fit, best first. A view: it changes with the next refresh."""
        return self._order

    @property
    def rejections(self) -> Mapping[str, Rejection]:
        return self._rejections

    @property
    def looked_at(self) -> int:
        return len(self._ranks) + len(self._rejections)

    def rank(self, name: str) -> Rank | None:
        """How good a node is that fits."""
        return self._ranks.get(name)

    def takes(self, name: str) -> bool:
        return name in self._ranks

    def refresh(self, snapshot: Snapshot, watch: Stopwatch | None = None) -> Generator[None, None, None]:
        """Look at the nodes that moved. Pauses now and then (BOARD3)."""
        self._watch = watch if watch is not None and watch.is_running else None
        moved = self._movers(snapshot)
        if len(moved) > SORT_AFTER:
            for count, name in enumerate(moved, 1):
                if self._look(name, snapshot) or count % NODES_AT_ONCE == 0:
                    yield
            self._order = sorted(self._ranks.values())
        else:
            for count, name in enumerate(moved, 1):
                old = self._ranks.get(name)
                if old is not None:
                    del self._order[bisect_left(self._order, old)]
                was_hard = self._look(name, snapshot)
                new = self._ranks.get(name)
                if new is not None:
                    insort(self._order, new)
                if was_hard or count % NODES_AT_ONCE == 0:
                    yield
        self._seen = snapshot.mark()

    def reject(self, name: str, rejection: Rejection) -> None:
        """A closer look than the checks' found that the node does not do, until it moves."""
        rank = self._ranks.pop(name, None)
        if rank is not None:
            del self._order[bisect_left(self._order, rank)]
            self._rejections[name] = rejection
            self.reasons[rejection] += 1

    def _movers(self, snapshot: Snapshot) -> Collection[str]:
        moved = snapshot.moved_since(self._seen) if self._seen is not None else None
        if moved is None:
            known = dict.fromkeys((*self._ranks, *self._rejections))
            return known | dict.fromkeys(snapshot.node_names() if self._only is None else sorted(self._only))
        return sorted(moved if self._only is None else moved & self._only)

    def _look(self, name: str, snapshot: Snapshot) -> bool:
        """Whether the node was too hard to decide, which takes long."""
        self._ranks.pop(name, None)
        before = self._rejections.pop(name, None)
        if before is not None:
            self.reasons[before] -= 1
            if not self.reasons[before]:
                del self.reasons[before]
        node = snapshot.node(name)
        if node is None:
            return False
        if self._watch is None:
            rejection = first_rejection(self._checks, node)
        else:
            rejection = self._watch.first_rejection(self._plugins, self._checks, node)
        if rejection is None:
            self._ranks[name] = self._rank(node)
            return False
        self._rejections[name] = rejection
        self.reasons[rejection] += 1
        return rejection.undecided

    def _rank(self, node: NodeInfo) -> Rank:
        devices: tuple[float, ...] = ()
        for rate in self._devices:
            devices += _numbers(rate(node))
        return Rank(_sum(self._wishes, node), devices, _sum(self._resources, node), node.name)


def first_rejection(checks: Iterable[Check], node: NodeInfo) -> Rejection | None:
    for check in checks:
        rejection = check(node)
        if rejection is not None:
            return rejection
    return None


def _sum(rates: Sequence[Rate], node: NodeInfo) -> float:
    total = 0.0
    for rate in rates:
        found = rate(node)
        total += found if isinstance(found, float) else sum(_numbers(found))
    return total


def _numbers(rating: float | tuple[float, ...]) -> tuple[float, ...]:
    return rating if isinstance(rating, tuple) else (rating,)


class Boards:
    """The boards of the signatures that were seen last, one for what pods ask for: a class that has
    become another leaves it to the next pod that names it to make its board anew."""

    def __init__(self) -> None:
        self._boards: OrderedDict[Hashable, tuple[Board, Hashable]] = OrderedDict()

    def get(self, signature: Signature) -> Board | None:
        known = self._boards.get(signature.parts)
        if known is None or known[1] != signature.classes:  # what checks were made from has changed
            return None
        self._boards.move_to_end(signature.parts)
        return known[0]

    def keep(self, signature: Signature, board: Board) -> None:
        self._boards[signature.parts] = (board, signature.classes)
        self._boards.move_to_end(signature.parts)
        while len(self._boards) > BOARDS_MAX:
            self._boards.popitem(last=False)

    def __len__(self) -> int:
        return len(self._boards)
