"""One way to write each object: what is stored, however the client spelled it.

A typed decoder would do this in passing; we keep fields that nobody here knows
by name, so it is done on the decoded JSON. Every version comes through here on
its way to the hub form:

    null            means absent, except inside a driver's own JSON
    quantities      are numbers or text on the way in, canonical text in the store
    times           are RFC 3339 in UTC, whole seconds

A quantity or a time that cannot be read is a 400: the body is not an object of
its kind. What can be read and is wrong is left to validation, which answers 422.
"""

from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime
from typing import Any

from ..age import timestamp
from ..errors import BadRequest
from ..kind import Fields
from ..quantity import Quantity

Rewrite = Callable[[Any], str]

_RAW = ("parameters", "data")  # a driver's own JSON, at .opaque.parameters and status.devices[].data


def drop_nulls(value: Any) -> None:
    """Remove null members everywhere but in a driver's own JSON."""
    if isinstance(value, list):
        for item in value:
            drop_nulls(item)
    elif isinstance(value, dict):
        for key in [key for key, inner in value.items() if inner is None]:
            del value[key]
        for key, inner in value.items():
            if key not in _RAW:
                drop_nulls(inner)


def quantity(value: Any) -> str:
    try:
        return str(Quantity.parse(value))
    except (TypeError, ValueError) as problem:
        raise BadRequest(f"the body cannot be read: {problem}") from problem


def time(value: Any) -> str:
    try:
        found = datetime.fromisoformat(value)
    except (TypeError, ValueError) as problem:
        raise BadRequest(f"the body cannot be read: not an RFC 3339 time: {value!r:.64}") from problem
    return timestamp(found if found.tzinfo else found.replace(tzinfo=UTC))


def rewrite(container: Any, keys: Iterable[str], change: Rewrite) -> None:
    """Put members of an object, where it has them, into their canonical form."""
    if isinstance(container, dict):
        for key in keys:
            if key in container:
                container[key] = change(container[key])


def rewrite_all(container: Any, change: Rewrite) -> None:
    if isinstance(container, dict):
        rewrite(container, list(container), change)
    elif isinstance(container, list):
        container[:] = [change(item) for item in container]


def at(container: Any, *path: str) -> Any:
    """The member at `path`, or None when there is nothing of that kind."""
    for key in path:
        if not isinstance(container, dict):
            return None
        container = container.get(key)
    return container


def objects(container: Any, *path: str) -> Iterator[Fields]:
    """The objects of the list or map at `path`; nothing when there is none."""
    found = at(container, *path)
    if isinstance(found, dict):
        found = found.values()
    if isinstance(found, Iterable) and not isinstance(found, str):
        yield from (item for item in found if isinstance(item, dict))


def same(left: Any, right: Any) -> bool:
    """Equal but for members that are absent in one and empty in the other."""
    return bool(_essence(left) == _essence(right))


def _essence(value: Any) -> Any:
    if isinstance(value, dict):
        kept = ((key, _essence(inner)) for key, inner in value.items())
        return {key: inner for key, inner in kept if not _is_empty(inner)}
    if isinstance(value, list):
        return [_essence(item) for item in value]
    return value


def _is_empty(value: Any) -> bool:
    return value is None or value == "" or value == [] or value == {}


def tidy_slice(fields: Fields) -> None:
    drop_nulls(fields)
    for device in objects(fields, "spec", "devices"):
        _tidy_device(device)
    for counter_set in objects(fields, "spec", "sharedCounters"):
        _tidy_counters(counter_set)


def _tidy_device(device: Fields) -> None:
    for capacity in objects(device, "capacity"):
        rewrite(capacity, ("value",), quantity)
        policy = capacity.get("requestPolicy")
        rewrite(policy, ("default",), quantity)
        rewrite_all(at(policy, "validValues"), quantity)
        rewrite(at(policy, "validRange"), ("min", "max", "step"), quantity)
    for consumption in objects(device, "consumesCounters"):
        _tidy_counters(consumption)
    for taint in objects(device, "taints"):
        rewrite(taint, ("timeAdded",), time)
    for allocatable in objects(device, "nodeAllocatableResources"):
        rewrite(allocatable.get("mapping"), ("capacityMultiplier", "deviceMultiplier"), quantity)
        rewrite(allocatable.get("overhead"), ("perPod", "perContainer"), quantity)


def _tidy_counters(holder: Fields) -> None:
    for counter in objects(holder, "counters"):
        rewrite(counter, ("value",), quantity)


def tidy_claim(fields: Fields) -> None:
    drop_nulls(fields)
    _tidy_requests(fields.get("spec"))
    allocation = at(fields, "status", "allocation")
    rewrite(allocation, ("allocationTimestamp",), time)
    for result in objects(allocation, "devices", "results"):
        rewrite_all(result.get("consumedCapacity"), quantity)
    for device in objects(fields, "status", "devices"):
        _tidy_conditions(device)


def tidy_template(fields: Fields) -> None:
    drop_nulls(fields)
    _tidy_requests(at(fields, "spec", "spec"))


def _tidy_requests(spec: Any) -> None:
    for request in objects(spec, "devices", "requests"):
        for asked in (request.get("exactly"), *objects(request, "firstAvailable")):
            rewrite_all(at(asked, "capacity", "requests"), quantity)


def tidy_class(fields: Fields) -> None:
    drop_nulls(fields)


def tidy_rule(fields: Fields) -> None:
    drop_nulls(fields)
    rewrite(at(fields, "spec", "taint"), ("timeAdded",), time)
    _tidy_conditions(at(fields, "status"))


def _tidy_conditions(holder: Any) -> None:
    for condition in objects(holder, "conditions"):
        rewrite(condition, ("lastTransitionTime",), time)
