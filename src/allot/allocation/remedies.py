"""Single changes after which a problem would fit, each of them tried.

Nothing is suggested that was not solved: a change is applied to copies of the
claims, or to a fork of the ledger, and the allocator is asked again. So there is a
bound on how many are tried, and the most telling come first: who could let go, how
many would do, which part of a selector stands in the way.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

import msgspec

from allot.api import Quantity, resource

from .answer import Plan, Refused
from .clauses import THRESHOLD, best_amount, without
from .demand import Alternative, Demand, read_demand
from .inventory import Inventory
from .ledger import Ledger
from .node import Node
from .policy import FIRST_FIT
from .reasons import Finding, Reason
from .search import allocate

TRIES_MAX = 60
TRIES_MAX_OF_A_KIND = 16
CHANGES_MAX_OF_A_KIND = 3
COUNTS_TRIED_MAX = 8
BUDGET_STEPS = 20_000
"""For one try. What cannot be decided in so many steps is not suggested."""
ALL_STEPS = 100_000
"""For all tries together."""
TRY_STEPS = 100
"""For whatever a try takes besides: reading the claims and the node again."""

Claims = tuple[resource.ResourceClaim, ...]
Findings = Mapping[Alternative, Sequence[Finding]]


@dataclass(frozen=True, slots=True)
class Attempt:
    """Everything that an answer depends on."""

    node: Node
    inventory: Inventory
    ledger: Ledger
    claims: Claims
    classes: Mapping[str, resource.DeviceClass]
    by_count: frozenset[int] = frozenset()  # claims that nobody writes: only how many can be said otherwise


@dataclass(frozen=True, slots=True)
class Change:
    """One thing that could be otherwise: what is asked, or who holds what."""

    kind: str
    about: str  # the request, holder or rule that it changes; the best change of each is enough
    text: str
    claims: Claims | None = None  # what to ask for instead
    release: str | None = None  # the holder that would have to go

    def applied(self, attempt: Attempt) -> Attempt:
        """The attempt after the change. The original is left as it is."""
        ledger = attempt.ledger
        if self.release is not None:
            ledger = ledger.fork()
            ledger.release(self.release)
        claims = attempt.claims if self.claims is None else self.claims
        return replace(attempt, ledger=ledger, claims=claims)


class Trials:
    """Tries changes of one attempt, until the steps for all of them are spent: then nothing helps."""

    def __init__(self, attempt: Attempt) -> None:
        self.attempt = attempt
        self._left = ALL_STEPS

    def fits(self, change: Change) -> bool:
        if self._left <= 0:
            return False
        tried = change.applied(self.attempt)
        demand = read_demand(tried.claims, tried.classes, tried.inventory.features)
        budget = min(BUDGET_STEPS, self._left)
        answer = allocate(tried.node, tried.inventory, tried.ledger, demand, policy=FIRST_FIT, budget=budget)
        self._left -= TRY_STEPS + (0 if isinstance(answer, Refused) else answer.steps)
        return isinstance(answer, Plan)


def remedies(
    attempt: Attempt, demand: Demand, findings: Findings, named: Callable[[str], str]
) -> Iterator[Change]:
    """The changes that help. `named` says a holder as the reader may know it."""
    tries = 0
    trials = Trials(attempt)
    for candidates in (
        _releases(findings, named),
        _counts(trials, findings),
        _relaxed(attempt, findings),
        _tolerated(attempt, findings),
        _smaller(attempt, findings),
        _unconstrained(attempt, demand),
    ):
        found: set[str] = set()
        for tried, change in enumerate(candidates):
            if tries == TRIES_MAX or tried == TRIES_MAX_OF_A_KIND or len(found) == CHANGES_MAX_OF_A_KIND:
                break
            tries += 1
            if change.about not in found and trials.fits(change):
                found.add(change.about)
                yield change


def _releases(findings: Findings, named: Callable[[str], str]) -> Iterator[Change]:
    """Whoever stands in the way most often first."""
    holders = Counter(holder for found in findings.values() for one in found for holder in one.holders)
    for holder, _ in holders.most_common():
        yield Change("free", holder, f"if {named(holder)} let go of its devices", release=holder)


def _counts(trials: Trials, findings: Findings) -> Iterator[Change]:
    """The largest count that fits, by halving: where some number of devices fits, fewer do too."""
    attempt = trials.attempt
    several = [one for one in findings if one.count > 1]
    for alternative in several[:COUNTS_TRIED_MAX]:
        free = sum(one.reason is Reason.FREE for one in findings[alternative])
        fitting, most = 0, min(free, alternative.count - 1)
        while fitting < most:
            middle = (fitting + most + 1) // 2
            if trials.fits(_counted(attempt, alternative, middle)):
                fitting = middle
            else:
                most = middle - 1
        if fitting:
            yield _counted(attempt, alternative, fitting)


def _counted(attempt: Attempt, alternative: Alternative, count: int) -> Change:
    text = f"with {count} instead of {alternative.count} for {alternative.label}"
    return Change("count", alternative.label, text, _with(attempt.claims, alternative, count=count))


def _relaxed(attempt: Attempt, findings: Findings) -> Iterator[Change]:
    for alternative, found in findings.items():
        own = {
            one.expression.text: one.index for one in alternative.clauses if one.owner.startswith("claim ")
        }
        refused: dict[str, list[Finding]] = {}
        for one in found:
            if one.reason is Reason.SELECTOR:
                refused.setdefault(one.clause, []).append(one)
        for part, devices in sorted(refused.items(), key=lambda item: -len(item[1])):
            for text, index in own.items():
                if part in text:
                    yield from _relaxations(attempt, alternative, part, text, index, devices)


def _relaxations(
    attempt: Attempt, alternative: Alternative, part: str, text: str, index: int, devices: Sequence[Finding]
) -> Iterator[Change]:
    amount = best_amount(part, [one.device.kind for one in devices])
    threshold = THRESHOLD.match(part)
    if amount is not None and threshold is not None:
        lowered = f"{threshold['before']}{amount}{threshold['after']}"
        claims = _with_selector(attempt.claims, alternative, index, text.replace(part, lowered))
        yield Change(
            "relax",
            f"{alternative.label} {part}",
            f"with {amount} instead of {threshold['amount']} in `{part}` of {alternative.label}",
            claims,
        )
    try:
        rest = without(text, part)
    except ValueError:
        return
    claims = _with_selector(attempt.claims, alternative, index, rest)
    yield Change("relax", f"{alternative.label} {part}", f"without `{part}` in {alternative.label}", claims)


def _tolerated(attempt: Attempt, findings: Findings) -> Iterator[Change]:
    for alternative, found in findings.items():
        if alternative.claim in attempt.by_count:
            continue
        taints = Counter(one.detail for one in found if one.reason is Reason.TAINT)
        for taint, _ in taints.most_common():
            key, _, rest = taint.partition("=")
            value, _, effect = rest.rpartition(":")
            # Exactly this taint and no other of the key: what is tried is what is said.
            toleration = resource.DeviceToleration(key=key, operator="Equal", value=value, effect=effect)
            tolerations = (*alternative.tolerations, toleration)
            claims = _with(attempt.claims, alternative, tolerations=tolerations)
            yield Change(
                "tolerate",
                f"{alternative.label} {taint}",
                f"if {alternative.label} tolerated {taint}",
                claims,
            )


def _smaller(attempt: Attempt, findings: Findings) -> Iterator[Change]:
    """Less of one capacity: the largest amount that some device still has."""
    for alternative, found in findings.items():
        for name, asked in alternative.want.capacity.items():
            left = sorted({_left(attempt, one, name) for one in found}, reverse=True)
            for amount in [nano for nano in left if 0 < nano < asked.nano][:4]:
                smaller = str(Quantity(amount, asked.format))
                amounts = {each: str(other) for each, other in alternative.want.capacity.items()}
                capacity = resource.CapacityRequirements(requests={**amounts, name: smaller})
                claims = _with(attempt.claims, alternative, capacity=capacity)
                text = f"with {smaller} instead of {asked} of {name} for {alternative.label}"
                yield Change("capacity", f"{alternative.label} {name}", text, claims)


def _left(attempt: Attempt, one: Finding, name: str) -> int:
    id = one.device.id
    usage = attempt.ledger.usage(id.pool_id).get(id.name)
    capacity = one.device.kind.capacity.get(name)
    taken = usage.consumed.get(name, 0) if usage is not None else 0
    return capacity.value.nano - taken if capacity is not None else 0


def _unconstrained(attempt: Attempt, demand: Demand) -> Iterator[Change]:
    for at, claim in enumerate(demand.claims):
        for constraint in claim.constraints:
            claims = list(attempt.claims)
            devices = claims[at].spec.devices
            kept = tuple(one for i, one in enumerate(devices.constraints) if i != constraint.index)
            claims[at] = _with_devices(claims[at], _replace(devices, constraints=kept))
            what = "distinctAttribute" if constraint.distinct else "matchAttribute"
            text = f"without the constraint {what} {constraint.attribute} of claim {claim.label}"
            yield Change("constraint", f"{claim.label} {constraint.index}", text, tuple(claims))


# Edits


def _with(claims: Claims, alternative: Alternative, **changes: object) -> Claims:
    """The claims with some fields of one request, or of one of its alternatives, replaced."""
    edited = list(claims)
    claim = edited[alternative.claim]
    requests = list(claim.spec.devices.requests)
    request = requests[alternative.request]
    if request.exactly is not None:
        requests[alternative.request] = _replace(request, exactly=_replace(request.exactly, **changes))
    else:
        subs = list(request.first_available)
        subs[alternative.index] = _replace(subs[alternative.index], **changes)
        requests[alternative.request] = _replace(request, first_available=tuple(subs))
    devices = _replace(claim.spec.devices, requests=tuple(requests))
    edited[alternative.claim] = _with_devices(claim, devices)
    return tuple(edited)


def _with_selector(claims: Claims, alternative: Alternative, index: int, expression: str) -> Claims:
    """The claims with one selector rewritten, or dropped where nothing of it is left."""
    request = claims[alternative.claim].spec.devices.requests[alternative.request]
    form = request.exactly or request.first_available[alternative.index]
    new = (
        (resource.DeviceSelector(cel=resource.CELDeviceSelector(expression=expression)),)
        if expression
        else ()
    )
    return _with(claims, alternative, selectors=form.selectors[:index] + new + form.selectors[index + 1 :])


def _with_devices(claim: resource.ResourceClaim, devices: resource.DeviceClaim) -> resource.ResourceClaim:
    return _replace(claim, spec=_replace(claim.spec, devices=devices))


S = TypeVar("S", bound=msgspec.Struct)


def _replace(struct: S, **changes: object) -> S:
    return msgspec.structs.replace(struct, **changes)
