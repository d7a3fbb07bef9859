"""The conditions of a pod that its node keeps. Pure.

PodScheduled               it is on a node
PodReadyToStartContainers  one of its containers has begun, so what they share is there
Initialized                its init containers are done, and its sidecars have started
ContainersReady            every container and sidecar runs and is ready
Ready                      that, and what its readiness gates ask for
"""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from allot.api import Object

from .machine import Container, Observed, Running, Terminated, Waiting

Fields = dict[str, Any]

TRUE, FALSE = "True", "False"


class Said(NamedTuple):
    status: str
    reason: str = ""
    message: str = ""


Conditions = Mapping[str, Said]
_YES, _NO = Said(TRUE), Said(FALSE)


def wanted(pod: Object, seen: Observed) -> Conditions:
    """Of a pod that has not ended."""
    return {
        "PodScheduled": _YES,
        "PodReadyToStartContainers": _YES if _has_begun(seen) else _NO,
        "Initialized": _initialized(pod, seen),
        **ready(pod, seen),
    }


def ready(pod: Object, seen: Observed) -> Conditions:
    waited_for = (*seen.containers, *_sidecars(pod, seen))
    containers = _unless("ContainersNotReady", "unready", (one for one in waited_for if not _is_ready(one)))
    return {"ContainersReady": containers, "Ready": containers if containers != _YES else _gated(pod)}


def after_the_end(pod: Object, seen: Observed, *, is_well: bool) -> Conditions:
    over = Said(FALSE, "PodCompleted" if is_well else "PodFailed")
    initialized = Said(TRUE, "PodCompleted") if is_well else _initialized(pod, seen)
    return {
        "PodReadyToStartContainers": _NO,
        **({"Initialized": initialized} if seen.containers else {}),
        "ContainersReady": over,
        "Ready": over,
    }


def laid_over(pod: Object, wanted: Conditions, now: str) -> list[Fields]:
    """All conditions of the pod. One whose status stays keeps the time of its last change."""
    known = {one.get("type", ""): one for one in shown(pod)}
    for type, said in wanted.items():
        was = known.get(type) or {}
        is_same = was.get("status") == said.status
        if is_same and (type == "PodScheduled" or _reason(was) == (said.reason, said.message)):
            continue
        since = (was.get("lastTransitionTime") or now) if is_same else now
        known[type] = _condition(type, said, since)
    return list(known.values())


def shown(pod: Object) -> Iterable[Fields]:
    return (pod.fields.get("status") or {}).get("conditions") or ()


def has_run(seen: Observed) -> bool:
    return any(map(_has_run, seen.containers))


def _has_run(container: Container) -> bool:
    return not isinstance(container.state, Waiting) or container.last is not None


def _has_begun(seen: Observed) -> bool:
    return has_run(seen) or any(map(_has_run, seen.init_containers))


def _is_ready(container: Container) -> bool:
    return isinstance(container.state, Running) and container.is_ready


def _initialized(pod: Object, seen: Observed) -> Said:
    if not seen.init_containers or has_run(seen):
        return _YES
    sidecars = {one.name for one in _sidecars(pod, seen)}

    def is_done(one: Container) -> bool:
        if one.name in sidecars:
            return isinstance(one.state, Running) and one.is_started
        return isinstance(one.state, Terminated) and one.state.exit_code == 0

    waiting = (one for one in seen.init_containers if not is_done(one))
    return _unless("ContainersNotInitialized", "incomplete", waiting)


def _sidecars(pod: Object, seen: Observed) -> Iterable[Container]:
    if not seen.init_containers:
        return ()
    spec = (pod.fields.get("spec") or {}).get("initContainers") or ()
    names = {one["name"] for one in spec if one.get("restartPolicy") == "Always"}
    return [one for one in seen.init_containers if one.name in names]


def _gated(pod: Object) -> Said:
    gates = (pod.fields.get("spec") or {}).get("readinessGates")
    if not gates:
        return _YES
    statuses = {one.get("type"): one.get("status") for one in shown(pod)}
    types = [one.get("conditionType") for one in gates]
    wrong = [
        f'corresponding condition of pod readiness gate "{type}" '
        + ("does not exist." if type not in statuses else 'is not "True".')
        for type in types
        if statuses.get(type) != TRUE
    ]
    return Said(FALSE, "ReadinessGatesNotReady", ", ".join(wrong)) if wrong else _YES


def _unless(reason: str, how: str, containers: Iterable[Container]) -> Said:
    names = " ".join(one.name for one in containers)
    return Said(FALSE, reason, f"containers with {how} status: [{names}]") if names else _YES


def _reason(condition: Fields) -> tuple[str, str]:
    return condition.get("reason") or "", condition.get("message") or ""


def _condition(type: str, said: Said, since: str) -> Fields:
    found = {"type": type, "status": said.status, "lastTransitionTime": since}
    if said.reason:
        found["reason"] = said.reason
    if said.message:
        found["message"] = said.message
    return found
