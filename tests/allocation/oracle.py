"""What upstream would answer, found the slow way.

The search is upstream's and nothing else: claims in order,
requests in order, alternatives in order, devices in published order, depth first,
the first complete choice wins. There are no bounds, no memory and no cleverness.
State is rebuilt from the list of picks at every step, so there is nothing to undo.
Meant for small problems.

The answer is `fits` with results, `does-not-fit`, or `error`. An error counts only
when the search reaches it before its first solution.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from . import facts
from .assembly import Pick, assembled
from .facts import RESULTS_MAX, Ask, Candidate, Fatal, Json, Pool, Problem, devices_of

Picks = tuple[Pick, ...]


@dataclass(frozen=True)
class Answer:
    verdict: str
    results: tuple[Json, ...] = ()
    error: str = ""


OLDEST = {"AdminAccess", "PrioritizedList", "PartitionableDevices", "DeviceTaints"}
"""While nothing else is on, upstream's oldest allocator serves; it knows no distinctAttribute."""


class TooMany(Exception):
    """More than RESULTS_MAX devices for one claim: no other device helps, only another alternative."""


class OutOfSteps(Exception):
    """The problem is too large for this way of solving it."""


def solve(problem: Problem, steps: int = 2_000_000) -> Answer:
    if not problem.get("claims"):
        return Answer("fits")
    try:
        oracle = Oracle(problem, steps)
        picks = oracle.first()
        if picks is None:
            if any(pool.invalid for pool in oracle.pools):
                return Answer("error", error="invalid pools")
            return Answer("does-not-fit")
        return Answer("fits", tuple(oracle.results(picks)))
    except Fatal as fatal:
        return Answer("error", error=str(fatal) or "fatal")


class Oracle:
    def __init__(self, problem: Problem, steps: int) -> None:
        self.problem = problem
        self.steps = steps
        self.features = facts.features_of(problem)
        self.classes = facts.classes_of(problem)
        self.in_use = facts.in_use(problem)
        self.claims = problem["claims"]
        self.pools = facts.pools_of(problem)
        self.pool_by_id = {pool.id: pool for pool in self.pools}
        self.order = [c for pool in self.pools if pool.usable for c in pool.candidates]
        self.all_devices: dict[int, list[Candidate]] = {}
        self.matches: dict[tuple[int, int], bool] = {}
        self.asks = [
            [facts.alternatives(request) for request in devices_of(claim).get("requests") or ()]
            for claim in self.claims
        ]
        for claim, asks in zip(self.claims, self.asks, strict=True):
            self.check_claim(claim, asks)

    # Before the search

    def check_claim(self, claim: Json, asks: list[list[Ask]]) -> None:
        fewest = 0
        for alternatives in asks:
            if alternatives[0].sub and "PrioritizedList" not in self.features:
                raise Fatal("prioritized lists are off")
            for ask in alternatives:
                self.check_ask(ask)
            fewest += min(self.count(ask) for ask in alternatives)
        if fewest > RESULTS_MAX:
            raise Fatal(f"{fewest} devices are more than a claim may have")
        for constraint in devices_of(claim).get("constraints") or ():
            distinct = constraint.get("distinctAttribute") if set(self.features) - OLDEST else None
            if not constraint.get("matchAttribute") and not distinct:
                raise Fatal("empty constraint")

    def check_ask(self, ask: Ask) -> None:
        spec = ask.spec
        if spec.get("capacity") is not None and "ConsumableCapacity" not in self.features:
            raise Fatal("capacity requests are off")
        if spec.get("derivedAttributes") and "DerivedAttributes" not in self.features:
            raise Fatal("derived attributes are off")
        if any(not selector.get("cel") for selector in spec.get("selectors") or ()):
            raise Fatal("selector without an expression")
        if spec.get("adminAccess") is not None and "AdminAccess" not in self.features:
            raise Fatal("admin access is off")
        if spec.get("deviceClassName", "") not in self.classes:
            raise Fatal("unknown class")
        if ask.takes_all:
            self.all_devices[id(ask)] = list(self.every_device(ask))
        elif spec.get("allocationMode", "ExactCount") != "ExactCount":
            raise Fatal("unknown allocation mode")

    def every_device(self, ask: Ask) -> Iterator[Candidate]:
        for pool in self.pools:
            if not pool.usable:
                raise Fatal("all devices of a pool that is not whole")
            for candidate in pool.candidates:
                if self.selectable(ask, candidate) and self.capacity_suffices(ask, candidate):
                    yield candidate

    def capacity_suffices(self, ask: Ask, candidate: Candidate) -> bool:
        if "ConsumableCapacity" not in self.features:
            return True
        taken = facts.consumption(candidate, ask.spec, self.features)
        return taken is not None and facts.room(candidate, taken)

    def count(self, ask: Ask) -> int:
        return len(self.all_devices[id(ask)]) if ask.takes_all else int(ask.spec.get("count") or 0)

    def selectable(self, ask: Ask, candidate: Candidate) -> bool:
        key = (id(ask), id(candidate))
        if key not in self.matches:
            self.matches[key] = facts.selectable(candidate, ask.spec, self.classes, self.problem)
        return self.matches[key]

    # The search

    def first(self) -> Picks | None:
        return self.claim(0, ())

    def claim(self, claim: int, picks: Picks) -> Picks | None:
        if claim == len(self.claims):
            return picks
        return self.request(claim, 0, picks)

    def request(self, claim: int, request: int, picks: Picks) -> Picks | None:
        if request == len(self.asks[claim]):
            try:
                return self.claim(claim + 1, picks)
            except TooMany:
                return None
        alternatives = self.asks[claim][request]
        if not alternatives[0].sub:
            return self.devices(claim, request, alternatives[0], 0, 0, picks)
        too_many = 0
        for ask in alternatives:
            try:
                found = self.devices(claim, request, ask, 0, 0, picks)
            except TooMany:
                too_many += 1
                continue
            if found is not None:
                return found
        if too_many == len(alternatives):
            raise TooMany
        return None

    def devices(
        self, claim: int, request: int, ask: Ask, taken: int, start: int, picks: Picks
    ) -> Picks | None:
        """Choose the remaining devices of one request, then everything that comes after it."""
        self.steps -= 1
        if self.steps < 0:
            raise OutOfSteps
        if ask.takes_all and not self.all_devices[id(ask)]:
            return None
        if taken >= self.count(ask):
            return self.request(claim, request + 1, picks)
        chosen = sum(pick.claim == claim for pick in picks)
        if chosen + self.count(ask) - taken > RESULTS_MAX:
            raise TooMany
        if ask.takes_all:
            candidate = self.all_devices[id(ask)][taken]
            pick = self.pick(claim, ask, candidate, picks)
            return pick and self.devices(claim, request, ask, taken + 1, 0, (*picks, pick))
        for position in range(start, len(self.order)):
            candidate = self.order[position]
            if self.is_taken(claim, ask, candidate, picks) or not self.selectable(ask, candidate):
                continue
            pick = self.pick(claim, ask, candidate, picks)
            if pick is not None:
                found = self.devices(claim, request, ask, taken + 1, position + 1, (*picks, pick))
                if found is not None:
                    return found
        return None

    # One device

    def pick(self, claim: int, ask: Ask, candidate: Candidate, picks: Picks) -> Pick | None:
        """The device as one more pick, or None if it cannot be added to what was picked before.

        Capacity is looked at first, but last where all devices are asked for: there a
        broken constraint is fatal, and is met before capacity that others are using.
        """
        taken = self.share(ask, candidate, picks)
        if taken is None and not ask.takes_all:
            return None
        if self.is_taken(claim, ask, candidate, picks):
            return None
        if not facts.skips_are_possible(candidate, self.problem):
            return None
        if candidate.device.get("consumesCounters") and not self.counters_suffice(candidate, picks):
            return None
        if "DeviceTaints" in self.features and facts.taints_block(candidate, ask.spec):
            return None
        pick = Pick(claim, ask, candidate, taken or {})
        for constraint in devices_of(self.claims[claim]).get("constraints") or ():
            if not self.constraint_holds(constraint, pick, picks):
                if ask.takes_all:
                    raise Fatal("a constraint forbids what was asked for")
                return None
        return None if taken is None else pick

    def is_taken(self, claim: int, ask: Ask, candidate: Candidate, picks: Picks) -> bool:
        if ask.admin:
            return not facts.shareable(candidate, self.features) and any(
                p.claim == claim and p.candidate is candidate for p in picks
            )
        if candidate.id in self.in_use.dedicated:
            return True
        return not facts.shareable(candidate, self.features) and any(p.candidate is candidate for p in picks)

    def share(self, ask: Ask, candidate: Candidate, picks: Picks) -> dict[str, int] | None:
        """What the device would give, or None where it has not enough left."""
        if "ConsumableCapacity" not in self.features:
            return {}
        taken = facts.consumption(candidate, ask.spec, self.features)
        if taken is None:
            return None
        others = [
            p.taken for p in picks if p.candidate is candidate and facts.shareable(candidate, self.features)
        ]
        settled = self.in_use.capacity.get(candidate.id, {})
        return dict(taken) if facts.room(candidate, taken, settled, *others) else None

    def counters_suffice(self, candidate: Candidate, picks: Picks) -> bool:
        if "PartitionableDevices" not in self.features:
            return False
        if facts.shareable(candidate, self.features) and (
            self.in_use.holds_shares(candidate.id) or any(p.candidate is candidate for p in picks)
        ):
            return True  # a further share of a device that has paid already
        pool = self.pool_by_id[candidate.pool]
        users = self.counter_users(pool, picks)
        return enough_counters(pool, [*users, candidate]) and (
            "CompatibilityGroups" not in self.features or groups_agree(users, candidate)
        )

    def counter_users(self, pool: Pool, picks: Picks) -> list[Candidate]:
        """Everything that draws on the pool's counters: what is in use, and each pick that had to pay."""
        users = [c for c in pool.candidates + pool.elsewhere if self.in_use.holds(c.id)]
        for number, pick in enumerate(picks):
            if pick.candidate.pool != pool.id:
                continue
            repeated = facts.shareable(pick.candidate, self.features) and (
                self.in_use.holds_shares(pick.candidate.id)
                or any(p.candidate is pick.candidate for p in picks[:number])
            )
            if not repeated:
                users.append(pick.candidate)
        return users

    def constraint_holds(self, constraint: Json, pick: Pick, picks: Picks) -> bool:
        named = constraint.get("requests") or ()
        if not pick.ask.named_in(named):
            return True
        peers = [p for p in picks if p.claim == pick.claim and p.ask.named_in(named)]
        name = constraint.get("matchAttribute") or constraint["distinctAttribute"]
        mine = facts.attribute(pick.candidate, pick.ask.spec, name, self.features)
        if mine is None:
            return False
        found = (facts.attribute(p.candidate, p.ask.spec, name, self.features) for p in peers)
        theirs = [one for one in found if one is not None]
        lists = "ListTypeAttributes" in self.features
        if constraint.get("matchAttribute"):
            return facts.all_match([*theirs, mine], lists)
        return facts.may_join_distinct(mine, theirs, lists)

    def results(self, picks: Picks) -> Iterator[Json]:
        node = self.problem["node"]["metadata"]["name"]
        for number, claim in enumerate(self.claims):
            mine = [p for p in picks if p.claim == number]
            yield assembled(claim, mine, self.classes, node, self.features)


def enough_counters(pool: Pool, users: Sequence[Candidate]) -> bool:
    used: dict[tuple[str, str], int] = {}
    for user in users:
        for counter_set, name, amount in facts.counters_of(user):
            used[counter_set, name] = used.get((counter_set, name), 0) + amount
    return all(
        used.get((counter_set, name), 0) <= amount
        for counter_set, amounts in pool.counters.items()
        for name, amount in amounts.items()
    )


def groups_agree(users: Sequence[Candidate], candidate: Candidate) -> bool:
    """On every counter set the devices share a group, or none of them has any."""
    for counter_set, groups in facts.groups_of(candidate).items():
        peers = [g[counter_set] for user in users if counter_set in (g := facts.groups_of(user))]
        if any(bool(p) != bool(groups) for p in peers):
            return False
        if groups and not groups.intersection(*peers):
            return False
    return True
