"""An answer without the names: does it fit, and how well?

Nodes in the same situation are worked out once: equal devices, used equally, fit
equally well, unless the policy cares for names. The scheduler's boards compare nodes by
outlines and want the full answer for the chosen one alone. That one is copied where it
can be: in equal situations the same plan is made, device by device, because nothing that
decides it has a name (SEARCH4).
"""

from collections.abc import Sequence
from itertools import takewhile
from typing import NamedTuple

from .answer import Answer, NoFit, Pick, Plan, Refused, Undecided
from .budget import Budget, BudgetSpent
from .capacity import Consumed
from .demand import Alternative, Demand
from .expression import Expression
from .inventory import Inventory
from .kind import Kind
from .ledger import Ledger
from .node import BadNodeSelector, Node
from .policy import LEAST_WASTE, Cost, Policy
from .question import Question, ask
from .search import BUDGET_STEPS, allocate
from .situation import Situations

OUTLINES_MAX = 4096


class Outline(NamedTuple):
    fits: bool
    preference: int  # how far down the lists of alternatives the plan had to go
    cost: Cost
    near: int = 0  # where it does not fit: how far the devices get; 0 where none is offered


class _Sketch(NamedTuple):
    """An outline, and the plan that it is the outline of with places instead of devices."""

    outline: Outline
    picks: tuple[tuple[Alternative, int, Consumed | None], ...] = ()
    steps: int = 0


class Outlines:
    """Of one demand, on any node."""

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
        self._situations = Situations.under(ledger)
        self._known: dict[int, _Sketch] = {}

    def answer(self, node: Node) -> Answer:
        """The full answer, computed now."""
        return allocate(node, self._inventory, self._ledger, self._demand, self._policy, self._budget)

    def of(self, node: Node) -> Outline | Refused | None:
        """The outline, or None where the budget ran out. In the same situation it is the same object."""
        return self.look(node)[0]

    def look(self, node: Node) -> tuple[Outline | Refused | None, Plan | None]:
        """The outline and, where this node was worked out to get it, the plan as well."""
        situation = self._situation(node)
        if situation is not None and situation in self._known:
            return self._known[situation].outline, None
        found = self.answer(node)
        if isinstance(found, Refused):
            return found, None
        if not isinstance(found, Plan | NoFit):
            return None, None
        outline = _outlined(found)
        if situation is not None:
            if len(self._known) >= OUTLINES_MAX:
                self._known.clear()
            self._known[situation] = _sketched(outline, found)
        return outline, found if isinstance(found, Plan) else None

    def plan(self, node: Node) -> Answer:
        """The full answer: copied from a node in the same situation, or computed now."""
        situation = self._situation(node)
        known = self._known.get(situation) if situation is not None else None
        if known is None or not known.picks:
            return self.answer(node)
        reading = Budget(self._budget)
        try:
            question = ask(node, self._inventory, self._ledger, self._demand, reading)
        except BudgetSpent:
            return Undecided(reading.steps)
        if isinstance(question, Refused):
            return question
        devices = question.view.devices
        picks = tuple(Pick(alternative, devices[at], consumed) for alternative, at, consumed in known.picks)
        return Plan(picks, question, known.outline.cost, known.steps)

    def _situation(self, node: Node) -> int | None:
        """What an outline depends on; None where it depends on names as well."""
        if not self._policy.anonymous:
            return None
        try:
            return self._situations.of(self._inventory.view(node))
        except BadNodeSelector:
            return None


def _outlined(found: Plan | NoFit) -> Outline:
    if isinstance(found, NoFit):
        return Outline(fits=False, preference=0, cost=(), near=_nearness(found.question))
    chosen = {
        (pick.alternative.claim, pick.alternative.request): pick.alternative.index for pick in found.picks
    }
    return Outline(fits=True, preference=sum(chosen.values()), cost=found.cost)


def _nearness(question: Question) -> int:
    """Selectors that the best device passes, for each alternative; one more where some pass them all."""
    if not question.devices:
        return 0
    kinds = {device.kind for device in question.devices}
    near = 1
    for alternative in question.demand.alternatives():
        selectors = alternative.want.expressions
        if question.row(alternative).selected:
            near += len(selectors) + 1
        else:
            near += max(_passed(selectors, kind) for kind in kinds)
    return near


def _passed(selectors: Sequence[Expression], kind: Kind) -> int:
    return sum(1 for _ in takewhile(lambda one: one.on(kind) is True, selectors))


def _sketched(outline: Outline, found: Plan | NoFit) -> _Sketch:
    if isinstance(found, NoFit):
        return _Sketch(outline)
    index = found.question.view.index
    picks = tuple((pick.alternative, index[pick.device.id], pick.consumed) for pick in found.picks)
    return _Sketch(outline, picks, found.steps)
