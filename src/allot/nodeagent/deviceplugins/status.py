"""What a node says of its device plugins: what there is, and what is wrong with it. Pure."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final, NamedTuple

from allot.api import podresources

from .compute import ComputeResource
from .doubles import Double
from .offers import Counted

Fields = dict[str, Any]

TWICE: Final = "DevicesAdvertisedTwice"
"""The type of a node's condition, and the reason of an event about it."""
LATE: Final = "ComputeResourcesPending"
"""The type of a node's condition: some resources are not exported yet as they are to be (COMP3)."""
REFUSED: Final = "DevicesNotExported"
"""The reason of an event."""
_NAMED_MAX = 5


class Says(NamedTuple):
    """All that is to be said of plugins."""

    counted: Mapping[str, Counted] = {}
    exported: tuple[ComputeResource, ...] = ()
    doubles: Sequence[Double] = ()
    late: tuple[str, ...] = ()


def said(node: Mapping[str, Any], says: Says, now: str, *, is_listed: bool = False) -> Fields:
    """What is still to be said, as a strategic merge patch of the status. What is exported may be listed
    elsewhere: it is not counted all the same."""
    status = node.get("status") or {}
    found = amounts(status, says.counted, {one.resource for one in says.exported})
    exported = [one.as_fields() for one in says.exported]
    if not is_listed and exported != [_filled(one) for one in status.get("computeResources") or ()]:
        found["computeResources"] = exported
    known = {one.get("type"): one for one in status.get("conditions") or ()}
    conditions = (_twice(known.get(TWICE, {}), says.doubles, now), _late(known.get(LATE, {}), says.late, now))
    changed = [one for one in conditions if one is not None]
    return {**found, "conditions": changed} if changed else found


def amounts(status: Mapping[str, Any], counted: Mapping[str, Counted], exported: Collection[str]) -> Fields:
    """What is still to be said of capacity and allocatable: what is exported is not counted too."""
    found: Fields = {}
    for name in ("capacity", "allocatable"):
        known = status.get(name) or {}
        wanted: Fields = {resource: str(getattr(one, name)) for resource, one in counted.items()}
        wanted |= dict.fromkeys(exported)
        missing = {resource: count for resource, count in wanted.items() if known.get(resource) != count}
        if missing:
            found[name] = missing
    return found


def _filled(entry: Mapping[str, Any]) -> Fields:
    return {key: value for key, value in entry.items() if value}


def zeroed(node: Mapping[str, Any]) -> dict[str, Counted]:
    """Of a machine that remembers no plugin: what the Node still says of resources that plugins count."""
    known = (node.get("status") or {}).get("capacity") or {}
    return {name: Counted(0, 0) for name in known if podresources.is_extended_resource(name)}


def explained(doubles: Sequence[Double]) -> str:
    named = [str(one) for one in doubles[:_NAMED_MAX]]
    if len(doubles) > _NAMED_MAX:
        named.append(f"{len(doubles) - _NAMED_MAX} more")
    return f"{'; '.join(named)}: two pods may be given the same device; stop one of the two on this node"


def _twice(before: Mapping[str, Any], doubles: Sequence[Double], now: str) -> Fields | None:
    if doubles:
        return _condition(before, TWICE, "True", "PluginAndDriver", explained(doubles), now)
    none = "no device is offered by a device plugin and a DRA driver"
    return _condition(before, TWICE, "False", "NoneTwice", none, now)


def _late(before: Mapping[str, Any], late: Sequence[str], now: str) -> Fields | None:
    if late:
        waits = f"{', '.join(late)}: pods have devices of it under the names of before; drain the node"
        return _condition(before, LATE, "True", "DevicesInUse", waits, now)
    return _condition(before, LATE, "False", "NoneInUse", "everything is exported as it is to be", now)


def _condition(
    before: Mapping[str, Any], type: str, status: str, reason: str, message: str, now: str
) -> Fields | None:
    """Nothing is said where it has been said; nor that there is nothing, unless something was said before."""
    if not before and status == "False":
        return None
    if (before.get("status"), before.get("message")) == (status, message):
        return None
    changed = now if before.get("status") != status else before.get("lastTransitionTime", now)
    return {
        "type": type,
        "status": status,
        "reason": reason,
        "message": message,
        "lastHeartbeatTime": now,
        "lastTransitionTime": changed,
    }
