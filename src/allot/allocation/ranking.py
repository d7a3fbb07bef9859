"""Which of many nodes to take for one demand.

Where it sits
    The scheduler keeps one `Ranker` for all pods that ask for the same. It is told
    about nodes; what moved in the inventory and the ledger it asks for itself.

What it promises
    R1  The order is the one that asking every node afresh would give: alternatives
        that the claims prefer first, then the policy's cost, then the node's name.
    R2  Only nodes that may have moved since the last time are looked at again.
    R3  Nodes in the same situation are worked out once (`outline`).
"""

from bisect import bisect_left, insort
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from .answer import Answer, Refused
from .demand import Demand
from .inventory import Inventory
from .ledger import Ledger
from .node import Node
from .outline import Outlines
from .policy import LEAST_WASTE, Cost, Policy
from .search import BUDGET_STEPS


class Ranked(NamedTuple):
    """A node that fits. Sorts best first."""

    preference: int  # how far down the lists of alternatives the plan had to go
    cost: Cost
    node: str


class Ranker:
    def __init__(
        self,
        inventory: Inventory,
        ledger: Ledger,
        demand: Demand,
        policy: Policy = LEAST_WASTE,
        budget: int = BUDGET_STEPS,
    ) -> None:
        self._inventory = inventory
        self._ledger = ledger
        self._outlines = Outlines(inventory, ledger, demand, policy, budget)
        self._nodes: dict[str, Node] = {}
        self._moved: set[str] = set()
        self._seen = (inventory.revision, ledger.revision)
        self._ranked: dict[str, Ranked] = {}
        self._order: list[Ranked] = []
        self._refused: dict[str, Refused] = {}
        self._undecided: set[str] = set()

    def put(self, node: Node) -> None:
        """A node was added or changed."""
        if self._nodes.get(node.name) != node:
            self._nodes[node.name] = node
            self._moved.add(node.name)

    def drop(self, name: str) -> None:
        """A node is gone."""
        if self._nodes.pop(name, None) is not None:
            self._moved.add(name)

    def ranked(self) -> Sequence[Ranked]:
        """The nodes that fit, best first. A view: it changes with the next call."""
        moved = self._movers()
        if len(moved) > 64:  # sorting once beats inserting many times
            for name in moved:
                self._look_again(name)
            self._order = sorted(self._ranked.values())
        else:
            for name in moved:
                old = self._ranked.get(name)
                if old is not None:
                    del self._order[bisect_left(self._order, old)]
                self._look_again(name)
                new = self._ranked.get(name)
                if new is not None:
                    insort(self._order, new)
        return self._order

    def refusals(self) -> Iterable[tuple[str, Refused]]:
        """Nodes on which the problem itself is wrong, as of the last ranking."""
        return self._refused.items()

    def undecided(self) -> frozenset[str]:
        """Nodes on which the budget ran out, as of the last ranking: they may fit all the same."""
        return frozenset(self._undecided)

    def answer(self, name: str) -> Answer:
        """The full answer for one node, computed now."""
        return self._outlines.answer(self._nodes[name])

    def _movers(self) -> set[str]:
        inventory, ledger = self._inventory, self._ledger
        places = inventory.moved_since(self._seen[0])
        pools = ledger.moved_since(self._seen[1])
        self._seen = (inventory.revision, ledger.revision)
        moved, self._moved = self._moved, set()
        reached = [inventory.nodes_of(pool) for pool in pools] if pools is not None else [None]
        if places is None or None in reached:
            return moved | self._nodes.keys()
        known = self._nodes.keys()
        return moved.union(*(one & known for one in (places, *reached) if one is not None))

    def _look_again(self, name: str) -> None:
        self._ranked.pop(name, None)
        self._refused.pop(name, None)
        self._undecided.discard(name)
        node = self._nodes.get(name)
        if node is None:
            return
        outline = self._outlines.of(node)
        if isinstance(outline, Refused):
            self._refused[name] = outline
        elif outline is None:
            self._undecided.add(name)
        elif outline.fits:
            self._ranked[name] = Ranked(outline.preference, outline.cost, name)


def rank(
    nodes: Iterable[Node],
    inventory: Inventory,
    ledger: Ledger,
    demand: Demand,
    policy: Policy = LEAST_WASTE,
    budget: int = BUDGET_STEPS,
) -> Sequence[Ranked]:
    """The nodes that fit, best first."""
    ranker = Ranker(inventory, ledger, demand, policy, budget)
    for node in nodes:
        ranker.put(node)
    return ranker.ranked()
