"""What a node writes about a pod: whole statuses, laid over the one that is there. Pure.

Each function returns the part of `status` that changes, as a merge patch. Conditions that
others keep (PodScheduled, for one) stay as they are.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from allot.api import Object

from .life import CRASH_LOOP

Fields = dict[str, Any]

STOPPED = 143  # how a program ends that is told to
_READY = ("Initialized", "PodReadyToStartContainers", "ContainersReady", "Ready")


def started(pod: Object, ip: str, now: str) -> Fields:
    running = {"running": {"startedAt": now}}
    completed = {"terminated": {"exitCode": 0, "reason": "Completed", "startedAt": now, "finishedAt": now}}
    first = [
        _container(pod, one, running if one.get("restartPolicy") == "Always" else completed)
        for one in _spec(pod).get("initContainers") or ()
    ]
    return {
        "phase": "Running",
        "startTime": now,
        "reason": None,
        "message": None,
        **({"podIP": ip, "podIPs": [{"ip": ip}]} if ip else {}),
        "conditions": _conditions(pod, now, dict.fromkeys(_READY, "True")),
        "containerStatuses": [_container(pod, one, running) for one in _containers(pod)],
        **({"initContainerStatuses": first} if first else {}),
    }


def explained(pod: Object, reason: str, message: str) -> Fields | None:
    """The containers wait, and say why; None when they say so already."""
    waiting = {"waiting": {"reason": reason, "message": message}}
    said = [one.get("state") for one in _status(pod).get("containerStatuses") or ()]
    if said and all(state == waiting for state in said):
        return None
    return {"containerStatuses": [_container(pod, one, waiting) for one in _containers(pod)]}


def refused(reason: str, message: str) -> Fields:
    """The pod has ended without having begun: nothing is said of containers that never were."""
    return {"phase": "Failed", "reason": reason, "message": message}


def exited(pod: Object, code: int, reason: str, now: str) -> Fields:
    """The pod has ended and will not run again."""
    return {
        "phase": "Succeeded" if code == 0 else "Failed",
        **({"reason": reason} if reason else {}),
        "conditions": _conditions(pod, now, {"ContainersReady": "False", "Ready": "False"}),
        **_all_terminated(pod, code, now),
    }


def crashed(pod: Object, code: int, now: str) -> Fields:
    """The containers have ended and will run again after a while."""
    message = "back-off before the container is started again"
    waiting = {"waiting": {"reason": CRASH_LOOP, "message": message}}
    before = _by_name(pod, "containerStatuses")
    return {
        "conditions": _conditions(pod, now, {"ContainersReady": "False", "Ready": "False"}),
        "containerStatuses": [
            _container(
                pod,
                one,
                waiting,
                before.get(one["name"]),
                last=_terminated(before.get(one["name"]), code, now),
            )
            for one in _containers(pod)
        ],
    }


def revived(pod: Object, now: str) -> Fields:
    before = _by_name(pod, "containerStatuses")
    running = {"running": {"startedAt": now}}
    return {
        "conditions": _conditions(pod, now, {"ContainersReady": "True", "Ready": "True"}),
        "containerStatuses": [
            _container(
                pod,
                one,
                running,
                {**known, "restartCount": (known.get("restartCount") or 0) + 1},
                last=known.get("lastState"),
            )
            for one in _containers(pod)
            for known in (before.get(one["name"]) or {},)
        ],
    }


def _all_terminated(pod: Object, code: int, now: str) -> Fields:
    """Every container that runs has ended; of a pod that never started there is nothing to say."""
    found: Fields = {}
    for kind in ("containerStatuses", "initContainerStatuses"):
        known = _status(pod).get(kind) or ()
        if known and any("running" in (one.get("state") or {}) for one in known):
            found[kind] = [_stopped(one, code, now) for one in known]
    return found


def _stopped(status: Mapping[str, Any], code: int, now: str) -> Fields:
    if "running" not in (status.get("state") or {}):
        return dict(status)
    return {**status, "ready": False, "started": False, "state": _terminated(status, code, now)}


def _terminated(status: Mapping[str, Any] | None, code: int, now: str) -> Fields:
    began = ((status or {}).get("state") or {}).get("running") or {}
    return {
        "terminated": {
            "exitCode": code,
            "reason": "Completed" if code == 0 else "Error",
            "startedAt": began.get("startedAt") or now,
            "finishedAt": now,
        }
    }


def _container(
    pod: Object,
    container: Mapping[str, Any],
    state: Fields,
    before: Mapping[str, Any] | None = None,
    *,
    last: Mapping[str, Any] | None = None,
) -> Fields:
    name, image = container["name"], container.get("image") or ""
    runs = "running" in state
    done = "terminated" in state
    return {
        "name": name,
        "image": image,
        "imageID": f"hollow/{image}",
        "restartCount": (before or {}).get("restartCount") or 0,
        "ready": runs or done,  # an init container that is done counts as ready
        "started": runs,
        "state": state,
        **({"lastState": dict(last)} if last else {}),
        **({} if "waiting" in state else {"containerID": f"hollow://{pod.uid}/{name}"}),
    }


def _conditions(pod: Object, now: str, wanted: Mapping[str, str]) -> list[Fields]:
    known = {one.get("type", ""): one for one in _status(pod).get("conditions") or ()}
    for type, status in wanted.items():
        before = known.get(type) or {}
        if before.get("status") != status:
            known[type] = {"type": type, "status": status, "lastTransitionTime": now}
    return list(known.values())


def _containers(pod: Object) -> Iterable[Mapping[str, Any]]:
    return _spec(pod).get("containers") or ()


def _by_name(pod: Object, kind: str) -> dict[str, Mapping[str, Any]]:
    return {one.get("name", ""): one for one in _status(pod).get(kind) or ()}


def _spec(pod: Object) -> Mapping[str, Any]:
    return pod.fields.get("spec") or {}


def _status(pod: Object) -> Mapping[str, Any]:
    return pod.fields.get("status") or {}
