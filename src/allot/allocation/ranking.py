"""Which of many nodes to take for one demand.

Where it sits
    The scheduler keeps one `Ranker` for all pods that ask for the same. It is told
    about nodes; what moved in the inventory and the ledger it asks for itself.

What it promises
    R1  The order is the one that asking every node afresh would give: alternatives
        that the claims prefer first, then the policy's cost, then the node's name.
    R2  Only nodes that may have moved since the last time are looked at again.
    R3  Nodes in the same situation are worked out once: equal devices, used equally,
        fit equally well, unless the policy cares for names.
"""

from bisect import bisect_left, insort
from collections.abc import Hashable, Iterable, Sequence
from typing import NamedTuple

from .answer import Answer, NoFit, Plan, Refused
from .demand import Demand
from .inventory import Inventory, NodeView
from .kind import DeviceId
from .ledger import Ledger
from .node import BadNodeSelector, Node
from .policy import LEAST_WASTE, Cost, Policy
from .question import OPTIONAL_NODE_OPERATIONS, ask
from .search import BUDGET_STEPS, answer

SITUATIONS_MAX = 4096


class Ranked(NamedTuple):
    """A node that fits. Sorts best first."""

    preference: int  # how far down the lists of alternatives the plan had to go
    cost: Cost
    node: str


class _Outline(NamedTuple):
    """An answer without the names."""

    fits: bool
    preference: int
    cost: Cost


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
        self._demand = demand
        self._policy = policy
        self._budget = budget
        self._nodes: dict[str, Node] = {}
        self._moved: set[str] = set()
        self._seen = (inventory.revision, ledger.revision)
        self._ranked: dict[str, Ranked] = {}
        self._order: list[Ranked] = []
        self._refused: dict[str, Refused] = {}
        self._undecided: set[str] = set()
        self._outlines: dict[Hashable, _Outline] = {}

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
        return self._asked(self._nodes[name])

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
        outline = self._outline(node)
        if isinstance(outline, Refused):
            self._refused[name] = outline
        elif outline is None:
            self._undecided.add(name)
        elif outline.fits:
            self._ranked[name] = Ranked(outline.preference, outline.cost, name)

    def _outline(self, node: Node) -> _Outline | Refused | None:
        situation = self._situation(node)
        if situation is not None and situation in self._outlines:
            return self._outlines[situation]
        found = self._asked(node)
        if isinstance(found, Refused):
            return found
        if not isinstance(found, Plan | NoFit):
            return None
        outline = _outlined(found)
        if situation is not None:
            if len(self._outlines) >= SITUATIONS_MAX:
                self._outlines.clear()
            self._outlines[situation] = outline
        return outline

    def _asked(self, node: Node) -> Answer:
        question = ask(node, self._inventory, self._ledger, self._demand)
        return question if isinstance(question, Refused) else answer(question, self._policy, self._budget)

    def _situation(self, node: Node) -> Hashable:
        """Everything that an outline depends on; None where it depends on names as well."""
        if not self._policy.anonymous:
            return None
        try:
            view = self._inventory.view(node)
        except BadNodeSelector:
            return None
        devices = _devices_of(view)
        if devices is None:
            return None
        taken: list[tuple[int, bool, int, tuple[tuple[str, int], ...]]] = []
        for pool in view.pools:
            used = self._ledger.usage(pool.id)
            if used and pool.elsewhere:
                return None
            for name, usage in used.items():
                at = view.index.get(DeviceId(*pool.id, name))
                if at is None:
                    if pool.totals:
                        return None
                    continue
                shares = tuple(sorted(usage.consumed.items()))
                taken.append((at, bool(usage.owners), len(usage.sharers), shares))
        return (devices, tuple(sorted(taken)))


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


def _outlined(found: Plan | NoFit) -> _Outline:
    if isinstance(found, NoFit):
        return _Outline(fits=False, preference=0, cost=())
    chosen = {
        (pick.alternative.claim, pick.alternative.request): pick.alternative.index for pick in found.picks
    }
    return _Outline(fits=True, preference=sum(chosen.values()), cost=found.cost)


def _devices_of(view: NodeView) -> Hashable:
    """The devices of a view without their names; None where being on this very node matters."""
    key = "devices without names"
    if key not in view.remembered:
        view.remembered[key] = _anonymous(view)
    return view.remembered[key]


def _anonymous(view: NodeView) -> Hashable:
    if any(pool.incomplete or pool.invalid for pool in view.pools):
        return None
    if any(device.place.per_device for device in view.devices):
        return None
    return (
        view.pool_of,
        tuple(frozenset(pool.totals.items()) for pool in view.pools),
        # A kind is known by itself: it lives at least as long as the view.
        tuple((device.kind, device.taints, device.place.skip_node_operations) for device in view.devices),
        OPTIONAL_NODE_OPERATIONS in view.node.declared_features,
    )
