"""When silence becomes a condition. Pure."""

from typing import Any

from allot.api import Object, core

GRACE_S = 50.0
GRACE_S_MAX = 600.0
_GRACE_PER_DURATION = 1.25  # 50 s for the 40 s of a usual lease
STARTUP_S = 60.0
NEVER_UPDATED, STOPPED = "NodeStatusNeverUpdated", "NodeStatusUnknown"
_TYPES = ("Ready", "MemoryPressure", "DiskPressure", "PIDPressure")


def ready(node: Object) -> core.NodeCondition | None:
    return next((one for one in node.view(core.Node).status.conditions if one.type == "Ready"), None)


def heartbeat(node: Object) -> str:
    """Changes whenever the node's agent has written its status."""
    known = ready(node)
    return known.last_heartbeat_time if known is not None else ""


def granted_s(least_s: float, lease_duration_s: int) -> float:
    """A node that says it will be heard of rarely is given the time, within reason."""
    return max(least_s, min(GRACE_S_MAX, _GRACE_PER_DURATION * lease_duration_s))


def patience_s(node: Object, grace_s: float) -> float:
    """A node that has never said anything is still starting."""
    return grace_s if ready(node) is not None else max(grace_s, STARTUP_S)


def silenced(node: Object, now: str) -> list[dict[str, Any]] | None:
    """All conditions of a node that is silent, or None when they say so already."""
    known = {one.get("type", ""): one for one in (node.fields.get("status") or {}).get("conditions") or ()}
    if all(known.get(type, {}).get("status") == "Unknown" for type in _TYPES):
        return None
    for type in _TYPES:
        before = known.get(type)
        if before is None:
            reason, message = NEVER_UPDATED, "no agent has ever reported how this node is"
        else:
            reason, message = STOPPED, "the node's agent stopped reporting"
        if before is None or before.get("status") != "Unknown":
            told = {"type": type, "status": "Unknown", "reason": reason, "message": message}
            known[type] = {**(before or {}), **told, "lastTransitionTime": now}
    return list(known.values())


def is_unwell(node: Object) -> bool:
    """It was ready, or should be, and is not."""
    known = ready(node)
    return known is not None and known.status != "True" and known.reason != NEVER_UPDATED


def are_too_many(unwell: int, all_nodes: int) -> bool:
    """Most nodes at once: rather the network, or we ourselves."""
    return unwell > 0 and (unwell == all_nodes or (unwell > 2 and unwell >= 0.55 * all_nodes))
