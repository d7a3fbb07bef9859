"""What every new pod is given: a priority, time on a failing node."""

from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any

from allot.api import Fields, errors

from . import Attempt, Plugin

_UNREACHABLE = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
_TOLERATED_S = 300

PriorityClass = Callable[[str], Awaitable[Mapping[str, Any] | None]]
"""The class of a name; of "", the one for pods that name none."""


def tolerations(attempt: Attempt) -> None:
    """A node that stops answering keeps its pods for five minutes, unless they say otherwise."""
    if attempt.operation != "CREATE" or attempt.subresource or attempt.new is None:
        return
    spec = attempt.new.setdefault("spec", {})
    for key in _UNREACHABLE:
        if not any(_tolerates(one, key) for one in spec.get("tolerations") or ()):
            spec["tolerations"] = [
                *(spec.get("tolerations") or ()),
                {"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": _TOLERATED_S},
            ]


def _tolerates(toleration: Fields, key: str) -> bool:
    return toleration.get("key") in (key, None, "") and toleration.get("effect") in ("NoExecute", None, "")


def priority(find: PriorityClass) -> Plugin:
    """From the name of a priority class to its number."""

    async def admit(attempt: Attempt) -> None:
        if attempt.operation != "CREATE" or attempt.subresource or attempt.new is None:
            return
        spec = attempt.new.setdefault("spec", {})
        name = spec.get("priorityClassName") or ""
        chosen = await find(name)
        if name and chosen is None:
            raise errors.Forbidden(
                f'pods "{attempt.name}" is forbidden: no PriorityClass with name {name} was found',
                kind="pods",
                name=attempt.name,
            )
        value = chosen.get("value", 0) if chosen else 0
        if spec.get("priority") not in (None, value):
            raise errors.Forbidden(
                f'pods "{attempt.name}" is forbidden: the integer value of priority ({spec["priority"]}) '
                f"must not be provided in pod spec; the priority admission controller computed {value}",
                kind="pods",
                name=attempt.name,
            )
        spec["priority"] = value
        if chosen:
            spec["priorityClassName"] = chosen["metadata"]["name"]
        policy = (chosen or {}).get("preemptionPolicy") or "PreemptLowerPriority"
        if spec.setdefault("preemptionPolicy", policy) != policy:
            raise errors.Forbidden(
                f'pods "{attempt.name}" is forbidden: the string value of PreemptionPolicy '
                f"({spec['preemptionPolicy']}) must not be provided; the priority class says {policy}",
                kind="pods",
                name=attempt.name,
            )

    return admit


def global_default(classes: Iterable[Mapping[str, Any]]) -> Mapping[str, Any] | None:
    """With several, the least important one: nobody is preempted by mistake."""
    defaults = [one for one in classes if one.get("globalDefault")]
    return min(defaults, key=lambda one: one.get("value", 0), default=None)
