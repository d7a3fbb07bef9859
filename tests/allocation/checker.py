"""Whether an answer to an allocation problem is acceptable. Promise D4.

Reads the problem and the v1 results and nothing else; shares no code with the
search that produced them. Each rule is a function that yields complaints in words;
no complaint means that the results are acceptable under any policy. Which of the
acceptable answers is best, or first, is not asked here.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from . import facts
from .assembly import Pick, comparable, configuration, node_selector
from .facts import RESULTS_MAX, Ask, Candidate, Fatal, Json, Pool, Problem, devices_of


@dataclass(frozen=True)
class Case:
    """A problem and an answer, read side by side."""

    problem: Problem
    features: frozenset[str]
    pools: Sequence[Pool]
    in_use: facts.InUse
    classes: dict[str, Json]
    picks: Sequence[Pick]
    written: Sequence[Json]  # the device result that each pick was read from

    def of_claim(self, number: int) -> list[Pick]:
        return [pick for pick in self.picks if pick.claim == number]


def complaints(problem: Problem, results: Sequence[Json]) -> list[str]:
    """Why the results are not acceptable; empty if they are."""
    claims = problem.get("claims") or []
    if len(results) != len(claims):
        return [f"{len(results)} results for {len(claims)} claims"]
    try:
        case, unread = read(problem, results)
        if unread:
            return unread
        return [complaint for rule in RULES for complaint in rule(case)] + list(surroundings(case, results))
    except Fatal as fatal:
        return [f"the problem is refused: {fatal}"]


def read(problem: Problem, results: Sequence[Json]) -> tuple[Case, list[str]]:
    """Find the request and the device behind each device result."""
    features = facts.features_of(problem)
    pools = facts.pools_of(problem)
    published = {c.id: c for pool in pools if pool.usable for c in pool.candidates}
    picks: list[Pick] = []
    written: list[Json] = []
    unread: list[str] = []
    for number, (claim, result) in enumerate(zip(problem["claims"], results, strict=True)):
        requests = devices_of(claim).get("requests") or ()
        asks = {ask.name: ask for request in requests for ask in facts.alternatives(request)}
        order = {name: position for position, name in enumerate(asks)}
        devices = result["devices"].get("results") or ()
        for device in sorted(devices, key=lambda d: order.get(d["request"], -1)):
            id = "/".join((device["driver"], device["pool"], device["device"]))
            if device["request"] not in asks:
                unread.append(f"claim {number}: no request {device['request']!r}")
            elif id not in published:
                unread.append(f"claim {number}: {id} is not offered by a complete, valid pool on this node")
            else:
                ask, candidate = asks[device["request"]], published[id]
                shared = facts.shareable(candidate, features)
                taken = facts.consumption(candidate, ask.spec, features) if shared else None
                picks.append(Pick(number, ask, candidate, taken or {}))
                written.append(device)
    classes, in_use = facts.classes_of(problem), facts.in_use(problem)
    return Case(problem, features, pools, in_use, classes, picks, written), unread


# Each claim gets what it asks for


def counts(case: Case) -> Iterator[str]:
    for number, claim in enumerate(case.problem["claims"]):
        mine = case.of_claim(number)
        if len(mine) > RESULTS_MAX:
            yield f"claim {number}: {len(mine)} devices, more than {RESULTS_MAX}"
        for request in devices_of(claim).get("requests") or ():
            yield from request_counts(case, number, request)


def request_counts(case: Case, number: int, request: Json) -> Iterator[str]:
    where = f"claim {number}, request {request['name']}"
    mine = [pick for pick in case.of_claim(number) if pick.ask.request == request["name"]]
    used = {pick.ask.name: pick.ask for pick in mine}
    alternatives = facts.alternatives(request)
    if len(used) > 1:
        yield f"{where}: devices for several alternatives: {', '.join(sorted(used))}"
        return
    if not used:
        if all(ask.takes_all or ask.spec.get("count") for ask in alternatives):
            yield f"{where}: no device"
        return
    (ask,) = used.values()
    ids = Counter(pick.candidate.id for pick in mine)
    for id, times in ids.items():
        if times > 1:
            yield f"{where}: {id} given {times} times to one request"
    if ask.takes_all:
        everything = {c.id for c in all_of(case, ask)}
        if set(ids) != everything:
            yield f"{where}: all devices are {sorted(everything)}, given {sorted(ids)}"
    elif len(mine) != ask.spec.get("count"):
        yield f"{where}: {len(mine)} devices, asked for {ask.spec.get('count')}"


def all_of(case: Case, ask: Ask) -> Iterator[Candidate]:
    for pool in case.pools:
        if not pool.usable:
            raise Fatal("all devices of a pool that is not whole")
        for candidate in pool.candidates:
            if not facts.selectable(candidate, ask.spec, case.classes, case.problem):
                continue
            if "ConsumableCapacity" in case.features:
                taken = facts.consumption(candidate, ask.spec, case.features)
                if taken is None or not facts.room(candidate, taken):
                    continue
            yield candidate


def gates(case: Case) -> Iterator[str]:
    """What a switched off feature forbids to answer at all."""
    needed = {
        "PrioritizedList": lambda pick: pick.ask.sub,
        "AdminAccess": lambda pick: pick.ask.admin,
        "ConsumableCapacity": lambda pick: pick.ask.spec.get("capacity") is not None,
        "DerivedAttributes": lambda pick: pick.ask.spec.get("derivedAttributes"),
        "PartitionableDevices": lambda pick: pick.candidate.device.get("consumesCounters"),
    }
    for feature, needs in needed.items():
        if feature not in case.features and any(needs(pick) for pick in case.picks):
            yield f"{feature} is off"


def suitability(case: Case) -> Iterator[str]:
    for pick in case.picks:
        if pick.ask.spec.get("deviceClassName") not in case.classes:
            yield f"{pick.ask.name}: no class {pick.ask.spec.get('deviceClassName')!r}"
            continue
        if not facts.selectable(pick.candidate, pick.ask.spec, case.classes, case.problem):
            yield f"{pick.ask.name}: {pick.candidate.id} is not selected by class, request and node"
        if not facts.skips_are_possible(pick.candidate, case.problem):
            yield f"{pick.ask.name}: {pick.candidate.id} skips node operations, the node cannot"
        if "DeviceTaints" in case.features and facts.taints_block(pick.candidate, pick.ask.spec):
            yield f"{pick.ask.name}: {pick.candidate.id} has a taint that is not tolerated"


def constraints(case: Case) -> Iterator[str]:
    lists = "ListTypeAttributes" in case.features
    for number, claim in enumerate(case.problem["claims"]):
        for position, constraint in enumerate(devices_of(claim).get("constraints") or ()):
            picks = [p for p in case.of_claim(number) if p.ask.named_in(constraint.get("requests") or ())]
            name = constraint.get("matchAttribute") or constraint["distinctAttribute"]
            values = [facts.attribute(p.candidate, p.ask.spec, name, case.features) for p in picks]
            where = f"claim {number}, constraint {position} on {name}"
            found = [value for value in values if value is not None]
            if len(found) < len(values):
                yield f"{where}: a device has no such attribute"
            elif constraint.get("matchAttribute"):
                if found and not facts.all_match(found, lists):
                    yield f"{where}: no common value among {found}"
            elif not any(
                all(facts.may_join_distinct(one, order[:at], lists) for at, one in enumerate(order))
                for order in (found, sorted(found, key=lambda value: value != facts.UNKNOWN))
            ):
                yield f"{where}: a value twice among {found}"


# Nothing is given away twice


def holders(case: Case) -> Iterator[str]:
    for number, pick in enumerate(case.picks):
        id = pick.candidate.id
        earlier = [p for p in case.picks[:number] if p.candidate is pick.candidate]
        shared = facts.shareable(pick.candidate, case.features)
        if pick.ask.admin:
            if not shared and any(p.claim == pick.claim for p in earlier):
                yield f"{pick.ask.name}: {id} twice in one claim"
            continue
        if id in case.in_use.dedicated:
            yield f"{pick.ask.name}: {id} is in use"
        if not shared and earlier:
            yield f"{pick.ask.name}: {id} is already given to {earlier[0].ask.name}"


def capacity(case: Case) -> Iterator[str]:
    if "ConsumableCapacity" not in case.features:
        return
    given: dict[str, Counter[str]] = {}
    for pick in case.picks:
        taken = facts.consumption(pick.candidate, pick.ask.spec, case.features)
        before = given.setdefault(pick.candidate.id, Counter(case.in_use.capacity.get(pick.candidate.id)))
        if taken is None:
            yield f"{pick.ask.name}: {pick.candidate.id} cannot give the capacity asked for"
        elif not facts.room(pick.candidate, taken, before):
            yield f"{pick.ask.name}: {pick.candidate.id} has not enough capacity left"
        elif facts.shareable(pick.candidate, case.features):
            before.update(taken)


def counters(case: Case) -> Iterator[str]:
    for pool in case.pools:
        payers = list(paying(case, pool))
        if not any(payer.device.get("consumesCounters") for payer in payers):
            continue
        settled = [c for c in pool.candidates + pool.elsewhere if case.in_use.holds(c.id)]
        used: Counter[tuple[str, str]] = Counter()
        for user in settled + payers:
            for counter_set, name, amount in facts.counters_of(user):
                used[counter_set, name] += amount
        for counter_set, amounts in pool.counters.items():
            for name, amount in amounts.items():
                if used[counter_set, name] > amount:
                    yield f"pool {'/'.join(pool.id)}: counter {counter_set}/{name} is overdrawn"
        if "CompatibilityGroups" in case.features:
            yield from groups(pool, settled, payers)


def paying(case: Case, pool: Pool) -> Iterator[Candidate]:
    """One entry for each pick that draws on counters; further shares of a device do not."""
    seen: list[Candidate] = []
    for pick in case.picks:
        candidate = pick.candidate
        if candidate.pool != pool.id:
            continue
        if facts.shareable(candidate, case.features) and (
            case.in_use.holds_shares(candidate.id) or any(c is candidate for c in seen)
        ):
            continue
        seen.append(candidate)
        yield candidate


def groups(pool: Pool, settled: list[Candidate], payers: list[Candidate]) -> Iterator[str]:
    for counter_set in pool.counters:
        newly = [g[counter_set] for c in payers if counter_set in (g := facts.groups_of(c))]
        members = [g[counter_set] for c in settled if counter_set in (g := facts.groups_of(c))] + newly
        if not newly or not any(members):
            continue
        if not all(members) or not frozenset.intersection(*members):
            yield f"pool {'/'.join(pool.id)}: incompatible groups on {counter_set}: {list(map(set, members))}"


# The result says what was decided


def wording(case: Case) -> Iterator[str]:
    for pick, device in zip(case.picks, case.written, strict=True):
        where = f"{pick.ask.name}: {pick.candidate.id}"
        shared = facts.shareable(pick.candidate, case.features)
        if bool(device.get("shareID")) != shared:
            yield f"{where}: share id {device.get('shareID')!r}"
        consumed = {name: facts.nano(n) for name, n in (device.get("consumedCapacity") or {}).items()}
        if consumed != dict(pick.taken):
            yield f"{where}: consumes {consumed}, should be {dict(pick.taken)}"
        if bool(device.get("adminAccess")) != pick.ask.admin:
            yield f"{where}: adminAccess is {device.get('adminAccess')}"
        for field, expected in copies(case, pick).items():
            if (device.get(field) or []) != (expected or []):
                yield f"{where}: {field} is {device.get(field)}, should be {expected}"
    shares = [device["shareID"] for device in case.written if device.get("shareID")]
    if len(set(shares)) != len(shares):
        yield "a share id is used twice"


def copies(case: Case, pick: Pick) -> dict[str, Any]:
    device = pick.candidate.device
    binding = "DeviceBindingAndStatus" in case.features
    return {
        "tolerations": pick.ask.spec.get("tolerations"),
        "bindingConditions": device.get("bindingConditions") if binding else None,
        "bindingFailureConditions": device.get("bindingFailureConditions") if binding else None,
        "skipNodeOperations": pick.candidate.slice["spec"].get("skipNodeOperations")
        if case.features & facts.EXPERIMENTAL
        else None,
    }


def surroundings(case: Case, results: Sequence[Json]) -> Iterator[str]:
    """Configuration and node selector follow from the devices."""
    node = case.problem["node"]["metadata"]["name"]
    for number, (claim, result) in enumerate(zip(case.problem["claims"], results, strict=True)):
        mine = case.of_claim(number)
        expected: Json = {"devices": {"config": configuration(claim, mine, case.classes)}}
        expected["nodeSelector"] = node_selector(mine, node)
        wanted, found = comparable(expected), comparable(result)
        for part in ("config", "terms"):
            if wanted[part] != found[part]:
                yield f"claim {number}: {part} {found[part]}, should be {wanted[part]}"


RULES = (counts, gates, suitability, constraints, holders, capacity, counters, wording)
