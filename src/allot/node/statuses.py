"""What a node writes about a pod, from what its machine sees. Pure.

Each function returns the part of `status` that changes, as a merge patch. Conditions that
others keep (PodScheduled, for one) stay as they are.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from allot.api import Object

from .admission import Refusal
from .machine import NOTHING, Container, DeviceHealth, Observed, Running, State, Terminated, Waiting

Fields = dict[str, Any]

_BEGUN = dict.fromkeys(("Initialized", "PodReadyToStartContainers"), "True")
_READY = ("ContainersReady", "Ready")


def observed(pod: Object, seen: Observed, now: str) -> Fields:
    """Of a pod whose containers run, will run again, or cannot run yet."""
    status = _containers(pod, seen)
    if not _has_run(seen):
        return status
    status["conditions"] = _conditions(pod, now, {**_BEGUN, **_readiness(seen)})
    known = _status(pod)
    if known.get("phase") != "Running":
        status |= {"phase": "Running", "reason": None, "message": None, "startTime": now}
    if seen.address and known.get("podIP") != seen.address:
        status |= {"podIP": seen.address, "podIPs": [{"ip": seen.address}]}
    return status


def is_doubted(pod: Object, reported: Observed) -> bool:
    """Whether the pod says something else of its readiness than the node did."""
    if not _has_run(reported):
        return False
    shown = {one.get("type"): one.get("status") for one in _listed(pod, "conditions")}
    return any(shown.get(type) != status for type, status in _readiness(reported).items())


def ended(pod: Object, seen: Observed, now: str) -> Fields:
    """It will not run again. Of one that never ran only the phase is told."""
    is_well = seen.has_ended and not seen.is_stillborn and all(_code(one) == 0 for one in seen.containers)
    return {
        "phase": "Succeeded" if is_well else "Failed",
        **({"reason": seen.reason} if seen.reason else {}),
        "conditions": _conditions(pod, now, dict.fromkeys(_READY, "False")),
        **_containers(pod, seen if _has_run(seen) or seen.is_stillborn else NOTHING),
    }


def refused(refusal: Refusal) -> Fields:
    """The pod has ended without having begun: nothing is said of containers that never were."""
    return {"phase": "Failed", "reason": refusal.reason, "message": refusal.message}


def explained(pod: Object, reason: str, message: str) -> Fields | None:
    """The containers wait, and say why; None when they say so already."""
    waiting = Waiting(reason, message)
    said = [one.get("state") for one in _status(pod).get("containerStatuses") or ()]
    if said and all(state == _state(waiting) for state in said):
        return None
    names = [one["name"] for one in _spec(pod).get("containers") or ()]
    return _containers(pod, Observed(tuple(Container(name, waiting) for name in names)))


def _readiness(seen: Observed) -> dict[str, str]:
    """The conditions of a pod whose containers have run."""
    return dict.fromkeys(_READY, str(all(isinstance(one.state, Running) for one in seen.containers)))


def _has_run(seen: Observed) -> bool:
    return any(not isinstance(one.state, Waiting) or one.last is not None for one in seen.containers)


def _code(container: Container) -> int:
    return container.state.exit_code if isinstance(container.state, Terminated) else 0


def _containers(pod: Object, seen: Observed) -> Fields:
    found: Fields = {}
    for kind, name, containers in (
        ("containers", "containerStatuses", seen.containers),
        ("initContainers", "initContainerStatuses", seen.init_containers),
    ):
        if containers:
            images = {one["name"]: one.get("image") or "" for one in _spec(pod).get(kind) or ()}
            is_init = kind == "initContainers"
            found[name] = [_container(one, images.get(one.name, ""), is_init) for one in containers]
    return found


def _container(seen: Container, image: str, is_init: bool) -> Fields:
    runs = isinstance(seen.state, Running)
    is_done = is_init and isinstance(seen.state, Terminated)  # which counts as ready
    return {
        "name": seen.name,
        "image": image,
        "imageID": seen.image_id,
        "restartCount": seen.restarts,
        "ready": runs or is_done,
        "started": runs,
        "state": _state(seen.state),
        **({"lastState": _state(seen.last)} if seen.last is not None else {}),
        **({"containerID": seen.id} if seen.id else {}),
        **({"allocatedResourcesStatus": _health(seen)} if seen.health else {}),
    }


def _health(seen: Container) -> list[Fields]:
    def device(one: DeviceHealth) -> Fields:
        return {
            "resourceID": one.id,
            "health": one.health,
            **({"message": one.message} if one.message else {}),
        }

    return [{"name": name, "resources": [device(one) for one in devices]} for name, devices in seen.health]


def _state(state: State) -> Fields:
    match state:
        case Waiting(reason, message):
            return {"waiting": {"reason": reason, "message": message}}
        case Running(started_at):
            return {"running": {"startedAt": started_at}}
        case Terminated(code, started_at, finished_at):
            reason = "Completed" if code == 0 else "Error"
            times = {"startedAt": started_at, "finishedAt": finished_at}
            return {"terminated": {"exitCode": code, "reason": reason, **times}}


def _conditions(pod: Object, now: str, wanted: Mapping[str, str]) -> list[Fields]:
    known = {one.get("type", ""): one for one in _listed(pod, "conditions")}
    for type, status in wanted.items():
        if (known.get(type) or {}).get("status") != status:
            known[type] = {"type": type, "status": status, "lastTransitionTime": now}
    return list(known.values())


def _listed(pod: Object, name: str) -> Iterable[Fields]:
    return _status(pod).get(name) or ()


def _spec(pod: Object) -> Mapping[str, Any]:
    return pod.fields.get("spec") or {}


def _status(pod: Object) -> Mapping[str, Any]:
    return pod.fields.get("status") or {}
