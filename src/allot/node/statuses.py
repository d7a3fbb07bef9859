"""What a node writes about a pod, from what its machine sees. Pure.

Each function returns the part of `status` that changes, as a merge patch. Conditions that others keep stay as
they are; those of the node are in `readiness`.
"""

from collections.abc import Mapping
from typing import Any

from allot.api import Object

from . import readiness
from .admission import Refusal
from .machine import (
    NOTHING,
    Container,
    DeviceHealth,
    Observed,
    Rejected,
    Running,
    State,
    Terminated,
    Waiting,
)

Fields = dict[str, Any]


def observed(pod: Object, seen: Observed, now: str) -> Fields:
    """Of a pod whose containers run, will run again, or cannot run yet."""
    status, known = _containers(pod, seen), _status(pod)
    status["conditions"] = readiness.laid_over(pod, readiness.wanted(pod, seen), now)
    if not known.get("startTime"):
        status["startTime"] = now
    if readiness.has_run(seen) and known.get("phase") != "Running":
        status |= {"phase": "Running", "reason": None, "message": None}
    return {**status, **_addresses(known, seen), **_generation(pod)}


def is_doubted(pod: Object, reported: Observed) -> bool:
    """Whether the pod says something else of its readiness than the node did, or has a newer spec."""
    if not readiness.has_run(reported):
        return False
    shown = {one.get("type"): one.get("status") for one in readiness.shown(pod)}
    if any(shown.get(type) != said.status for type, said in readiness.ready(pod, reported).items()):
        return True
    seen = _status(pod).get("observedGeneration")
    return bool(seen) and seen != _metadata(pod).get("generation")


def ended(pod: Object, seen: Observed, now: str) -> Fields:
    """It will not run again. Of one that never ran only the phase is told."""
    codes = (_code(one) for one in seen.containers)
    is_well = seen.has_ended and not seen.is_stillborn and not seen.reason and not any(codes)
    return {
        "phase": "Succeeded" if is_well else "Failed",
        **({"reason": seen.reason} if seen.reason else {}),
        **({"message": seen.message} if seen.message else {}),
        "conditions": readiness.laid_over(pod, readiness.after_the_end(pod, seen, is_well=is_well), now),
        **_containers(pod, seen if readiness.has_run(seen) or seen.is_stillborn else NOTHING),
        **_addresses(_status(pod), seen),
        **_generation(pod),
    }


def refused(refusal: Refusal | Rejected) -> Fields:
    """The pod has ended without having begun: nothing is said of containers that never were."""
    return {"phase": "Failed", "reason": refusal.reason, "message": refusal.message}


def barred(why: str) -> Fields:
    """The pod has been bound without its claims, and ends: a controller may make another in its place."""
    return {"phase": "Failed", "reason": "ClaimNotReserved", "message": f"Pod was rejected: {why}"}


def explained(pod: Object, reason: str, message: str) -> Fields | None:
    """The containers wait, and say why; None when they say so already."""
    waiting = Waiting(reason, message)
    said = [one.get("state") for one in _status(pod).get("containerStatuses") or ()]
    if said and all(state == _state(waiting) for state in said):
        return None
    names = [one["name"] for one in _spec(pod).get("containers") or ()]
    return _containers(pod, Observed(tuple(Container(name, waiting) for name in names)))


def _addresses(known: Mapping[str, Any], seen: Observed) -> Fields:
    found: Fields = {}
    host = (seen.host,) if seen.host else ()
    for one, many, addresses in (("hostIP", "hostIPs", host), ("podIP", "podIPs", seen.addresses)):
        listed = [{"ip": address} for address in addresses]
        if addresses and (known.get(one), known.get(many)) != (addresses[0], listed):
            found |= {one: addresses[0], many: listed}
    return found


def _generation(pod: Object) -> Fields:
    generation = _metadata(pod).get("generation")
    return {"observedGeneration": generation} if generation else {}


def _code(container: Container) -> int:
    return container.state.exit_code if isinstance(container.state, Terminated) else 0


def _containers(pod: Object, seen: Observed) -> Fields:
    found: Fields = {}
    for kind, name, containers in (
        ("containers", "containerStatuses", seen.containers),
        ("initContainers", "initContainerStatuses", seen.init_containers),
        ("ephemeralContainers", "ephemeralContainerStatuses", seen.ephemeral_containers),
    ):
        if containers:
            images = {one["name"]: one.get("image") or "" for one in _spec(pod).get(kind) or ()}
            found[name] = [_container(one, images.get(one.name, ""), kind) for one in containers]
    return found


def _container(seen: Container, image: str, kind: str) -> Fields:
    runs = isinstance(seen.state, Running)
    # An init container that is done counts as ready, and nobody waits for an ephemeral one.
    is_done = kind == "initContainers" and isinstance(seen.state, Terminated)
    is_ready = (runs and seen.is_ready and kind != "ephemeralContainers") or is_done
    return {
        "name": seen.name,
        "image": image,
        "imageID": seen.image_id,
        "restartCount": seen.restarts,
        "ready": is_ready,
        "started": runs and seen.is_started,
        "state": _state(seen.state),
        **({"lastState": _state(seen.last)} if seen.last is not None else {}),
        **({"containerID": seen.id} if seen.id else {}),
        **({"allocatedResourcesStatus": _health(seen)} if seen.health else {}),
        **(_resources(seen.resources) if seen.resources else {}),
    }


def _resources(resources: Mapping[str, Any]) -> Fields:
    found: Fields = {"resources": {key: dict(value) for key, value in resources.items()}}
    if resources.get("requests"):
        found["allocatedResources"] = dict(resources["requests"])
    return found


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
        case Terminated():
            return {"terminated": _end(state)}


def _end(state: Terminated) -> Fields:
    found: Fields = {
        "exitCode": state.exit_code,
        "reason": state.reason or ("Completed" if state.exit_code == 0 else "Error"),
        "startedAt": state.started_at,
        "finishedAt": state.finished_at,
    }
    if state.message:
        found["message"] = state.message
    if state.id:
        found["containerID"] = state.id
    return found


def _metadata(pod: Object) -> Mapping[str, Any]:
    return pod.fields.get("metadata") or {}


def _spec(pod: Object) -> Mapping[str, Any]:
    return pod.fields.get("spec") or {}


def _status(pod: Object) -> Mapping[str, Any]:
    return pod.fields.get("status") or {}
