"""Find devices for everything at once, or know that there are none.

Where it sits
    scheduler, autoscaler, what-if  ->  allocate()  ->  Plan | NoFit | Undecided | Refused
    The caller records a plan in the ledger; this module only proposes.

What it promises
    SEARCH1  Every request gets the devices it asks for, and no device is given twice.
    SEARCH2  Nothing that the ledger holds is given again, admin access aside.
    SEARCH3  Every constraint, counter, capacity and group rule accepts the plan.
    SEARCH4  Same input, same plan; under `first-fit` it is upstream's plan.
    SEARCH5  NoFit means that no plan exists, not that we stopped looking.
    SEARCH6  Refused means that upstream's order of trying meets an error before its first
             solution, whatever the policy.

How
    Depth first: claims, requests and alternatives in the order they are written,
    devices in the order of publication or of the policy. What would make that
    explode is cut off in three ways, none of which loses a solution: a device is
    not tried where a twin has failed, a state is not entered whose equal has failed
    (`shape`), and what remains is first counted (`bounds`).

    Counting could walk past an error that upstream would meet, so it is done only
    behind the last request that can meet one. Where errors are possible at all, a
    first search in publication order decides between fit, no fit and refusal; the
    other two ways are safe there, because twins and equal states fail with the same
    errors. Only then may a policy choose.
"""

from bisect import bisect_right
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Final

from .answer import Answer, NoFit, Pick, Plan, Refused, Undecided
from .bounds import Bounds
from .budget import Budget, BudgetSpent
from .demand import RESULTS_MAX, Alternative, Demand, Want
from .inventory import Inventory
from .ledger import Ledger
from .node import Node
from .policy import FIRST_FIT, LEAST_WASTE, Candidate, Cost, Policy
from .question import Question, ask, has_many_terms
from .shape import Shape
from .state import FatalError, State

BUDGET_STEPS: Final = 100_000
"""Devices tried before an answer is given up; a step is some microseconds."""

POLICY_STEPS: Final = 1_000
"""Devices tried in the policy's order. A policy that makes a problem hard loses its say in it:
first come is then first served, and the verdict is the same as without it."""

EASY_FAILURES: Final = 4
EASY_STEPS: Final = 256
"""How far a search goes before counting what remains is worth its price."""

COST_WORK: Final = 4
"""Units of work that asking a policy about one device takes."""

REMEMBERED_MAX: Final = 400_000
"""Devices in the states that are remembered as failed, some hundred bytes each."""


def allocate(
    node: Node,
    inventory: Inventory,
    ledger: Ledger,
    demand: Demand | Refused,
    policy: Policy = LEAST_WASTE,
    budget: int = BUDGET_STEPS,
) -> Answer:
    """The devices that `node` would give to the claims, or why it gives none."""
    if isinstance(demand, Refused):
        return demand
    reading = Budget(budget)
    try:
        question = ask(node, inventory, ledger, demand, reading)
    except BudgetSpent:
        return Undecided(reading.steps)
    if isinstance(question, Refused):
        return question
    return answer(question, policy, reading.steps_left)


def answer(question: Question, policy: Policy, budget: int = BUDGET_STEPS) -> Answer:
    risky = question.is_risky()
    if risky or policy.cost is None:
        first = _concluded(question, Search(question, FIRST_FIT, Budget(budget), heed_errors=risky), policy)
        if not isinstance(first, Plan) or policy.cost is None:
            return first
        # The problem is sound, so the policy may choose.
        rest = min(budget - first.steps, POLICY_STEPS)
        better = _concluded(question, Search(question, policy, Budget(rest), heed_errors=False), policy)
        return better if isinstance(better, Plan) else first
    first_try = Budget(min(budget, POLICY_STEPS))
    chosen = _concluded(question, Search(question, policy, first_try, heed_errors=False), policy)
    if not isinstance(chosen, Undecided) or chosen.steps > budget:
        return chosen
    second_try = Budget(budget - chosen.steps)
    return _concluded(question, Search(question, FIRST_FIT, second_try, heed_errors=False), policy)


def _concluded(question: Question, search: "Search", policy: Policy) -> Answer:
    try:
        found = search.run()
    except FatalError as error:
        return Refused(str(error), device=error.device)
    except BudgetSpent:
        return Undecided(search.budget.steps)
    if not found:
        if question.has_invalid_pool:
            return Refused("invalid resource pools were encountered", node_only=True)
        return NoFit(question, search.budget.steps)
    picks = search.picks()
    unwritable = _unwritable(picks)
    if unwritable is not None:
        return Refused(unwritable)
    return Plan(picks, question, search.cost(policy), search.budget.steps)


class _Hard(Exception):
    """Too many failures to go on without counting."""


@dataclass(slots=True)
class _Outcome:
    name: str


_DONE: Final = _Outcome("every claim has its devices")
_FAILED: Final = _Outcome("no device will do")
_EXCEEDED: Final = _Outcome("more devices than a claim may have, whichever they are")


@dataclass(slots=True)
class _Frame:
    """One choice that is being made: an alternative of a request, or its next device."""

    claim: int
    request: int
    alternative: Alternative | None  # None: choosing among the alternatives
    filled: int  # devices that the alternative has already
    last: int  # place in the row of the latest of them
    options: Iterator[int]
    option: int = -1
    tried: set[object] = field(default_factory=set)  # twins of devices that failed
    all_exceeded: bool = True


class Search:
    """One depth-first search. The stack is a list, so depth is bounded by the demand alone."""

    def __init__(self, question: Question, policy: Policy, budget: Budget, *, heed_errors: bool) -> None:
        self.budget = budget
        self._tried = 0
        self._question = question
        self._claims = question.demand.claims
        self._policy = policy
        self._heed_errors = heed_errors
        self._last_risk = question.last_risk() if heed_errors else None
        self._state = State(question, heed_errors=heed_errors)
        self._shape: Shape | None = None
        self._bounds: Bounds | None = None
        self._failures = 0
        self._failed: set[object] = set()  # keys of states without a solution
        self._remembered = 0  # devices in all of them
        self._plain: dict[Want, bool] = {}
        self._orders: dict[Want, list[int]] = {}  # devices by cost, where costs stay

    def run(self) -> bool:
        """Whether a solution exists; it is then in the state."""
        try:
            return self._descend()
        except _Hard:
            while self._state.taken:
                self._state.undo()
            self._bounds = Bounds(self._question, self._state, self._shaped(), self.budget)
            if self._is_calm(0, 0) and not self._bounds.possible():
                return False
            return self._descend()

    def picks(self) -> tuple[Pick, ...]:
        devices = self._question.devices
        return tuple(Pick(one.alternative, devices[one.at], one.parts) for one in self._state.taken)

    def cost(self, policy: Policy) -> Cost:
        """What a policy thinks of the solution: the costs of its devices as they were taken."""
        cost = policy.cost
        if cost is None:
            return ()
        replay = State(self._question, heed_errors=False)
        total: list[float] = []
        for one in self._state.taken:
            added = cost(Candidate(self._question.devices[one.at], one.at, replay))
            total = [a + b for a, b in zip(total, added, strict=True)] if total else list(added)
            replay.take(one.alternative, one.at)
        return tuple(total)

    def _descend(self) -> bool:
        stack: list[_Frame] = []
        entry = self._enter(0, 0)
        while entry is not _DONE:
            if isinstance(entry, _Frame):
                stack.append(entry)
            else:  # the frame on top has nothing left to try
                if not stack:
                    return False
                ended = stack.pop()
                if entry is _FAILED:
                    self._remember(ended)
                if not stack:
                    return False
                # A claim that would grow too large is that claim's concern: an earlier one just goes on.
                outcome = entry if stack[-1].claim == ended.claim else _FAILED
                over = self._disappoint(stack[-1], outcome)
                if over is not None:
                    entry = over
                    continue
            entry = self._advance(stack[-1])
        return True

    def _advance(self, frame: _Frame) -> _Frame | _Outcome:
        """Try options until one leads on, or say how the frame ends."""
        alternative = frame.alternative
        for option in frame.options:
            self._tried += 1
            self.budget.step()
            if alternative is None:
                entry = self._begin(self._claims[frame.claim].requests[frame.request].alternatives[option])
            else:
                if frame.tried and self._twin(frame, option) in frame.tried:
                    continue
                if not self._state.take(alternative, option):
                    continue
                frame.option = option
                entry = self._follow(frame, alternative)
            if isinstance(entry, _Frame) or entry is _DONE:
                return entry
            over = self._disappoint(frame, entry)
            if over is not None:
                return over
        return _EXCEEDED if alternative is None and frame.all_exceeded else _FAILED

    def _disappoint(self, frame: _Frame, outcome: _Outcome) -> _Outcome | None:
        """The frame's option led nowhere. Returns how the frame ends, if it does."""
        if frame.alternative is None:
            frame.all_exceeded = frame.all_exceeded and outcome is _EXCEEDED
            return None
        self._state.undo()
        if outcome is _EXCEEDED:  # other devices would be just as many
            return _EXCEEDED
        self._failures += 1
        is_hard = self._failures > EASY_FAILURES or self._tried > EASY_STEPS
        if is_hard and self._bounds is None and not self._shaped().has_givers:
            raise _Hard
        frame.tried.add(self._twin(frame, frame.option))
        return None

    def _enter(self, claim: int, request: int) -> _Frame | _Outcome:
        """Go to a request; past the last one to the next claim; past the last claim we are done."""
        while claim < len(self._claims) and request == len(self._claims[claim].requests):
            claim, request = claim + 1, 0
        if claim == len(self._claims):
            return _DONE
        asked = self._claims[claim].requests[request]
        if not asked.is_list:
            return self._begin(asked.alternatives[0])
        choice = _Frame(claim, request, None, 0, -1, iter(range(len(asked.alternatives))))
        return _FAILED if self._is_hopeless(choice) else choice

    def _begin(self, alternative: Alternative) -> _Frame | _Outcome:
        count = self._question.count(alternative)
        if not count:  # all devices, and there are none
            return _FAILED
        if self._state.sizes[alternative.claim] + count > RESULTS_MAX:
            return _EXCEEDED
        if self._is_calm(alternative.claim, alternative.request) and not self._has_enough(alternative, count):
            return _FAILED
        return self._frame(alternative, 0, -1)

    def _has_enough(self, alternative: Alternative, count: int) -> bool:
        """Whether there are as many free devices as the alternative needs, whatever they are like."""
        devices = self._question.row(alternative).worth_trying
        if alternative.all_devices or count == 1 or count > len(devices):
            return alternative.all_devices or count <= len(devices)
        self.budget.work(len(devices))
        return sum(not self._state.is_in_use(alternative, at) for at in devices) >= count

    def _follow(self, frame: _Frame, alternative: Alternative) -> _Frame | _Outcome:
        """Where to go once the frame's option is taken."""
        filled = frame.filled + 1
        is_full = filled == self._question.count(alternative)
        bounds = self._bounds
        counts = bounds is not None and self._is_calm(frame.claim, frame.request + is_full)
        if bounds is not None and counts and not bounds.is_exact and not bounds.possible(alternative, filled):
            return _FAILED
        if not is_full:
            return self._frame(alternative, filled, frame.option)
        entry = self._enter(frame.claim, frame.request + 1)
        if entry is _EXCEEDED and frame.request + 1 == len(self._claims[frame.claim].requests):
            return _FAILED
        return entry

    def _frame(self, alternative: Alternative, filled: int, last: int) -> _Frame | _Outcome:
        options = self._options(alternative, filled, last)
        if self._bounds is not None and self._is_calm(alternative.claim, alternative.request):
            cells = self._bounds.open_cells(alternative, filled)
            if cells is not None:
                cell_of = self._shaped().cell_of
                options = (at for at in options if cells >> cell_of[at] & 1)
        frame = _Frame(alternative.claim, alternative.request, alternative, filled, last, options)
        return _FAILED if self._is_hopeless(frame) else frame

    def _options(self, alternative: Alternative, filled: int, last: int) -> Iterator[int]:
        row = self._question.row(alternative)
        if alternative.all_devices:
            return iter(row.selected[filled : filled + 1])
        if self._policy.cost is None:
            # Only later devices may follow: combinations, not orders.
            return iter(row.worth_trying[bisect_right(row.worth_trying, last) :])
        if not self._policy.steady or not self._is_plain(alternative.want):
            return iter(self._by_cost(alternative, filled, self._policy.cost))
        if alternative.want not in self._orders:
            self._orders[alternative.want] = self._by_cost(
                alternative, 0, self._policy.cost, all_of_them=True
            )
        return iter(self._orders[alternative.want])

    def _is_plain(self, want: Want) -> bool:
        """Whether the devices are neither partitions nor shared, so that their costs stay."""
        if want not in self._plain:
            kinds = (self._question.devices[at].kind for at in self._question.rows[want].worth_trying)
            self._plain[want] = not any(kind.consumption or kind.shareable for kind in kinds)
        return self._plain[want]

    def _by_cost(
        self,
        alternative: Alternative,
        filled: int,
        cost: Callable[[Candidate], Cost],
        all_of_them: bool = False,
    ) -> list[int]:
        state, question = self._state, self._question
        self.budget.work(COST_WORK * len(question.row(alternative).worth_trying))
        mine = {one.at for one in state.taken[len(state.taken) - filled :]} if filled else ()
        costs = [
            (cost(Candidate(question.devices[at], at, state)), at)
            for at in question.row(alternative).worth_trying
            if all_of_them or not (at in mine or state.is_in_use(alternative, at))
        ]
        costs.sort()
        return [at for _, at in costs]

    def _twin(self, frame: _Frame, at: int) -> object:
        return self._shaped().twin(at, frame.claim, frame.request)

    def _is_calm(self, claim: int, request: int) -> bool:
        """Whether from this request on no error can be met, so that counting walks past none."""
        return self._last_risk is None or (claim, request) > self._last_risk

    def _shaped(self) -> Shape:
        if self._shape is None:
            self._shape = Shape(self._question, self._state, self.budget, heed_errors=self._heed_errors)
        return self._shape

    def _is_hopeless(self, frame: _Frame) -> bool:
        return bool(self._failed) and self._key(frame) in self._failed

    def _remember(self, frame: _Frame) -> None:
        """All that the frame could try has failed, and whoever comes to an equal state fails too.

        Forgetting one loses time and nothing else, so what is remembered has an end.
        """
        self._remembered += len(self._state.taken) + 1
        if self._remembered <= REMEMBERED_MAX:
            self._failed.add(self._key(frame))

    def _key(self, frame: _Frame) -> object:
        alternative, state = frame.alternative, self._state
        in_order = self._policy.cost is None
        beyond = frame.last if in_order and frame.filled else None
        mine: tuple[int, ...] = ()
        if frame.filled and not in_order and state.shares:
            latest = state.taken[len(state.taken) - frame.filled :]
            mine = tuple(sorted(one.at for one in latest if one.parts is not None))
        return (
            frame.claim,
            frame.request,
            -1 if alternative is None else alternative.index,
            frame.filled,
            -1 if beyond is None else beyond,
            mine,
            state.sizes[frame.claim],
            state.rules[frame.claim],
            self._shaped().key(frame.claim, frame.request, beyond),
        )


def _unwritable(picks: tuple[Pick, ...]) -> str | None:
    """A result names one node or one term of node requirements; some devices ask for more."""
    named: set[int] = set()
    for pick in picks:
        claim, device = pick.alternative.claim, pick.device
        if device.node_name is not None or device.kind.description.binds_to_node:
            named.add(claim)
        elif claim not in named and has_many_terms(device):
            return f"create NodeSelector: device {device.id} has a node selector with more than one term"
    return None
