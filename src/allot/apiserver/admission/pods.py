"""What every new pod is given: a priority, time on a failing node."""

from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any

from allot.api import Fields, errors

from . import Attempt, Plugin

_UNREACHABLE = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
_TOLERATED_S = 300

DefaultClass = Callable[[], Mapping[str, Any] | None]
"""The class of pods that name none."""
PriorityClass = Callable[[str], Awaitable[Mapping[str, Any] | None]]
"""The class of a name."""


def tolerations(attempt: Attempt) -> None:
    """A node that stops answering keeps its pods for five minutes, unless they say otherwise."""
    if attempt.operation != "CREATE" or attempt.subresource or attempt.new is None:
        return
    spec = attempt.new.setdefault("spec", {})
    said = spec.get("tolerations") or []
    spec["tolerations"] = [
        *said,
        *(
            {"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": _TOLERATED_S}
            for key in _UNREACHABLE
            if not said or not any(_tolerates(one, key) for one in said)
        ),
    ]


def _tolerates(toleration: Fields, key: str) -> bool:
    return toleration.get("key") in (key, None, "") and toleration.get("effect") in ("NoExecute", None, "")


def priority(default: DefaultClass, find: PriorityClass) -> Plugin:
    """From the name of a priority class to its number."""

    def admit(attempt: Attempt) -> Awaitable[None] | None:
        if attempt.operation != "CREATE" or attempt.subresource or attempt.new is None:
            return None
        spec = attempt.new.setdefault("spec", {})
        if spec.get("priorityClassName"):
            return named(attempt, spec)
        _prioritize(attempt.name, spec, default())
        return None

    async def named(attempt: Attempt, spec: Fields) -> None:
        chosen = await find(spec["priorityClassName"])
        if chosen is None:
            text = f"no PriorityClass with name {spec['priorityClassName']} was found"
            raise _refused(attempt.name, text)
        _prioritize(attempt.name, spec, chosen)

    return admit


def _prioritize(name: str, spec: Fields, chosen: Mapping[str, Any] | None) -> None:
    value = chosen.get("value", 0) if chosen else 0
    if spec.get("priority") not in (None, value):
        text = (
            f"the integer value of priority ({spec['priority']}) must not be provided in pod spec; "
            f"the priority admission controller computed {value}"
        )
        raise _refused(name, text)
    spec["priority"] = value
    if chosen:
        spec["priorityClassName"] = chosen["metadata"]["name"]
    policy = (chosen or {}).get("preemptionPolicy") or "PreemptLowerPriority"
    if spec.setdefault("preemptionPolicy", policy) != policy:
        text = (
            f"the string value of PreemptionPolicy ({spec['preemptionPolicy']}) must not be provided; "
            f"the priority class says {policy}"
        )
        raise _refused(name, text)


def _refused(name: str, why: str) -> errors.Forbidden:
    return errors.Forbidden(f'pods "{name}" is forbidden: {why}', kind="pods", name=name)


def global_default(classes: Iterable[Mapping[str, Any]]) -> Mapping[str, Any] | None:
    """With several, the least important one: nobody is preempted by mistake."""
    defaults = [one for one in classes if one.get("globalDefault")]
    return min(defaults, key=lambda one: one.get("value", 0), default=None)
