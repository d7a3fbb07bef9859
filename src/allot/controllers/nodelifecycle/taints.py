"""What the conditions of a node mean for pods. Pure."""

from typing import Any

from allot.api import Object, core

from .health import is_unwell

_PREFIX = "node.kubernetes.io/"
UNREACHABLE, NOT_READY = f"{_PREFIX}unreachable", f"{_PREFIX}not-ready"
UNSCHEDULABLE = f"{_PREFIX}unschedulable"
_BY_CONDITION = {
    "MemoryPressure": f"{_PREFIX}memory-pressure",
    "DiskPressure": f"{_PREFIX}disk-pressure",
    "PIDPressure": f"{_PREFIX}pid-pressure",
    "NetworkUnavailable": f"{_PREFIX}network-unavailable",
}
_OURS = {
    (key, effect)
    for key in (UNREACHABLE, NOT_READY)
    for effect in ("NoSchedule", "NoExecute")
} | {(key, "NoSchedule") for key in (UNSCHEDULABLE, *_BY_CONDITION.values())}  # fmt: skip


def tainted(node: Object, now: str, *, evicts: bool) -> list[dict[str, Any]] | None:
    """All taints of the node, or None when it has them already. Those of others stay as they are."""
    before = list((node.fields.get("spec") or {}).get("taints") or ())
    wanted = _wanted(node, evicts)
    kept = [one for one in before if _name(one) not in _OURS or _name(one) in wanted]
    has = {_name(one) for one in kept}
    added = [
        {"key": key, "effect": effect, **({"timeAdded": now} if effect == "NoExecute" else {})}
        for key, effect in wanted
        if (key, effect) not in has
    ]
    return None if len(kept) == len(before) and not added else [*kept, *added]


def _wanted(node: Object, evicts: bool) -> list[tuple[str, str]]:
    view = node.view(core.Node)
    status = {one.type: one.status for one in view.status.conditions}
    found = []
    key = {"Unknown": UNREACHABLE, "False": NOT_READY}.get(status.get("Ready", "True"))
    if key is not None:
        found.append((key, "NoSchedule"))
        if evicts and is_unwell(node):
            found.append((key, "NoExecute"))
    found += [(taint, "NoSchedule") for type, taint in _BY_CONDITION.items() if status.get(type) == "True"]
    if view.spec.unschedulable:
        found.append((UNSCHEDULABLE, "NoSchedule"))
    return found


def _name(taint: dict[str, Any]) -> tuple[str, str]:
    return taint.get("key", ""), taint.get("effect", "")
