"""Why free devices are not enough: what they cannot do together.

Each device of an explanation is judged alone. When every request has all the
devices it needs and there is still no plan, the reason lies between devices: a
constraint, too few of them for all requests, or counters and shares that only
together are too small. A line here is a proof or it is a plain statement of
fact; it never guesses.
"""

from collections.abc import Iterator, Mapping, Sequence

from .demand import Alternative, ClaimDemand, Constraint
from .kind import Device, Value, value_of
from .reasons import COUNTERS_GATED, Finding, Reason, Situation
from .remedies import Findings

VALUES_SHOWN_MAX = 6

Free = Mapping[Alternative, Sequence[Device]]


def counted(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def suffices(alternative: Alternative, found: Sequence[Finding]) -> bool:
    """Whether every device that an alternative needs is free, others and rules aside."""
    free = sum(one.reason is Reason.FREE for one in found)
    if not alternative.all_devices:
        return free >= alternative.count
    return free > 0 and all(one.reason is Reason.FREE or _unwanted(one) for one in found)


def conflicts(situation: Situation, findings: Findings) -> Iterator[str]:
    requests = [request for claim in situation.demand.claims for request in claim.requests]
    if not all(any(suffices(one, findings[one]) for one in request.alternatives) for request in requests):
        return  # one request alone is reason enough
    free = {
        alternative: [one.device for one in found if one.reason is Reason.FREE]
        for alternative, found in findings.items()
    }
    between = [
        line for claim in situation.demand.claims for line in _constraint_conflicts(situation, claim, free)
    ]
    if between:
        yield from between
    elif _shortage(situation, free) is not None:
        yield str(_shortage(situation, free))
    elif len(requests) == 1:
        yield "enough devices are free, but no choice of them can be had together"
    else:
        yield "no choice of free devices serves all requests at once"


def _unwanted(one: Finding) -> bool:
    """Whether a request for all devices does without this one."""
    order = list(Reason)
    is_selected = order.index(one.reason) > order.index(Reason.CAPACITY)
    return not is_selected and one.reason is not Reason.UNJUDGED and one.detail != COUNTERS_GATED


def _constraint_conflicts(situation: Situation, claim: ClaimDemand, free: Free) -> Iterator[str]:
    for constraint in claim.constraints:
        covered = [
            request.alternatives[0]
            for request in claim.requests
            if len(request.alternatives) == 1 and constraint.index in request.alternatives[0].constraints
        ]
        needed = sum(one.count for one in covered)
        holders: dict[tuple[str, object], set[Device]] = {}
        for alternative in covered:
            for device in free[alternative]:
                for value in _values(situation, alternative, constraint, device):
                    holders.setdefault(value, set()).add(device)
        of = f"{constraint.attribute} are needed"
        if constraint.distinct and len(holders) < needed:
            words = f"{needed} different values of {of}, {len(holders)} can be had"
        elif not constraint.distinct and not _shared(situation, covered, free) and _most(holders) < needed:
            words = f"{needed} devices with one value of {of}, no value has more than {_most(holders)} free"
        else:
            continue
        shown = _shown(holders)
        yield f"claim {claim.label}: {words}" + (f" ({shown})" if shown else "")


def _most(holders: Mapping[tuple[str, object], set[Device]]) -> int:
    return max(map(len, holders.values()), default=0)


def _shown(holders: Mapping[tuple[str, object], set[Device]]) -> str:
    """The values with the devices that have them; with their types where those differ."""
    mixed = len({type for type, _ in holders}) > 1
    lines = sorted(
        f"{value} ({type}): {len(devices)}" if mixed else f"{value}: {len(devices)}"
        for (type, value), devices in holders.items()
    )
    return ", ".join(lines[:VALUES_SHOWN_MAX])


def _values(situation: Situation, alternative: Alternative, constraint: Constraint, device: Device) -> Value:
    computed = alternative.derived.get(constraint.attribute)
    if computed is not None:
        found = computed.on(device.kind)
        return found if isinstance(found, frozenset) else frozenset()  # else it fails there
    published = device.kind.attribute(constraint.attribute)
    lists = situation.features.list_type_attributes
    return frozenset() if published is None else value_of(published, lists=lists)


def _shared(situation: Situation, alternatives: Sequence[Alternative], free: Free) -> bool:
    """Whether one device may serve several of the requests, so that counting devices proves nothing."""
    return situation.features.consumable_capacity and any(
        device.kind.shareable for one in alternatives for device in free[one]
    )


def _shortage(situation: Situation, free: Free) -> str | None:
    alternatives = list(free)
    if any(one.admin for one in alternatives) or _shared(situation, alternatives, free):
        return None
    wanted = 0
    devices: set[Device] = set()
    for claim in situation.demand.claims:
        for request in claim.requests:
            wanted += min(one.count or len(free[one]) for one in request.alternatives)
            devices.update(device for one in request.alternatives for device in free[one])
    if wanted <= len(devices):
        return None
    verb = "is" if len(devices) == 1 else "are"
    return f"{counted(wanted, 'device')} are wanted together, {len(devices)} {verb} free"
