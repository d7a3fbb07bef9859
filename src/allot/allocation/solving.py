"""A whole problem, from its file to its answer."""

from collections.abc import Sequence
from dataclasses import dataclass

from allot.api import resource
from allot.base import Ids

from .answer import NoFit, Plan, Refused, Undecided
from .demand import read_demand
from .explanation import Explanation, explain
from .inventory import Inventory
from .kind import BadSlice
from .policy import Policy
from .problem import NotAProblem, Problem
from .remedies import Attempt
from .search import allocate

VERDICTS = {Plan: "fits", NoFit: "does-not-fit", Refused: "error", Undecided: "undecided"}


@dataclass(frozen=True, slots=True)
class Solved:
    attempt: Attempt
    answer: Plan | NoFit | Refused | Undecided | None  # None: nothing was asked

    @property
    def verdict(self) -> str:
        return "fits" if self.answer is None else VERDICTS[type(self.answer)]

    @property
    def error(self) -> str | None:
        return self.answer.error if isinstance(self.answer, Refused) else None

    def results(self, ids: Ids) -> Sequence[resource.AllocationResult]:
        """One a claim, in claim order; none unless it fits."""
        return self.answer.results(ids) if isinstance(self.answer, Plan) else ()

    def explanation(self) -> Explanation | None:
        return None if self.answer is None else explain(self.attempt, self.answer)


def solve(problem: Problem, policy: Policy) -> Solved:
    """Raises NotAProblem where a slice cannot be read."""
    attempt = Attempt(problem.node, _inventory(problem), problem.ledger(), problem.claims, problem.classes)
    if not problem.claims:
        return Solved(attempt, None)
    demand = read_demand(problem.claims, problem.classes, problem.features)
    answer = allocate(attempt.node, attempt.inventory, attempt.ledger, demand, policy=policy)
    return Solved(attempt, answer)


def _inventory(problem: Problem) -> Inventory:
    try:
        return problem.inventory()
    except BadSlice as error:
        raise NotAProblem("slices", str(error)) from None
