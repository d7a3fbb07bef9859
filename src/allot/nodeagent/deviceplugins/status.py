"""What a node says of its device plugins: how much there is, and what is offered twice. Pure."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from allot.api import podresources

from .doubles import Double
from .offers import Counted

Fields = dict[str, Any]

TWICE: Final = "DevicesAdvertisedTwice"
"""The type of a node's condition, and the reason of an event about it."""
_NAMED_MAX = 5


def said(
    node: Mapping[str, Any], counted: Mapping[str, Counted], doubles: Sequence[Double], now: str
) -> Fields:
    """What is still to be said, as a strategic merge patch of the status."""
    status = node.get("status") or {}
    found: Fields = {}
    for name in ("capacity", "allocatable"):
        known = status.get(name) or {}
        wanted = {resource: str(getattr(one, name)) for resource, one in counted.items()}
        missing = {resource: count for resource, count in wanted.items() if known.get(resource) != count}
        if missing:
            found[name] = missing
    condition = _condition(status.get("conditions") or (), doubles, now)
    return {**found, "conditions": [condition]} if condition is not None else found


def zeroed(node: Mapping[str, Any]) -> dict[str, Counted]:
    """Of a machine that remembers no plugin: what the Node still says of resources that plugins count."""
    known = (node.get("status") or {}).get("capacity") or {}
    return {name: Counted(0, 0) for name in known if podresources.is_extended_resource(name)}


def explained(doubles: Sequence[Double]) -> str:
    named = [str(one) for one in doubles[:_NAMED_MAX]]
    if len(doubles) > _NAMED_MAX:
        named.append(f"{len(doubles) - _NAMED_MAX} more")
    return f"{'; '.join(named)}: two pods may be given the same device; stop one of the two on this node"


def _condition(known: Sequence[Mapping[str, Any]], doubles: Sequence[Double], now: str) -> Fields | None:
    """It is said that there are none only where it was said that there are some."""
    before = next((one for one in known if one.get("type") == TWICE), {})
    if not doubles and not before:
        return None
    status = "True" if doubles else "False"
    reason = "PluginAndDriver" if doubles else "NoneTwice"
    message = explained(doubles) if doubles else "no device is offered by a device plugin and a DRA driver"
    if (before.get("status"), before.get("message")) == (status, message):
        return None
    changed = now if before.get("status") != status else before.get("lastTransitionTime", now)
    return {
        "type": TWICE,
        "status": status,
        "reason": reason,
        "message": message,
        "lastHeartbeatTime": now,
        "lastTransitionTime": changed,
    }
