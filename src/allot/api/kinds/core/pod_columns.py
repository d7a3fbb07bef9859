"""A pod in `kubectl get pods`.

STATUS is not a field: it is the most telling of phase, reason, and the state of
the first container that stands in the way.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from ...age import since
from ...kind import Column, Fields
from ..reading import items, obj, text

COLUMNS = (
    Column("Name", format="name", description="Name must be unique within a namespace."),
    Column("Ready", description="How many containers are ready, of how many."),
    Column("Status", description="The phase, or what stands in the way."),
    Column("Restarts", description="How often containers were started again."),
    Column("Age", description="How long ago the object was created."),
    Column("IP", priority=1, description="The address of the pod."),
    Column("Node", priority=1, description="The node that the pod is bound to."),
    Column("Nominated Node", priority=1, description="The node that preemption is making room on."),
    Column("Readiness Gates", priority=1, description="How many extra conditions hold, of how many."),
)


@dataclass(frozen=True, slots=True)
class Summary:
    status: str
    ready: int
    restarts: int
    last_restart: str  # timestamp, or empty


def cells(pod: Fields, now: datetime) -> Sequence[Any]:
    seen = summary(pod)
    total = len(items(pod, "spec", "containers")) + sum(map(_restarts, items(pod, "spec", "initContainers")))
    restarts = str(seen.restarts)
    if seen.restarts and seen.last_restart:
        restarts = f"{restarts} ({since(seen.last_restart, now)} ago)"
    addresses = items(pod, "status", "podIPs")
    address = addresses[0].get("ip") if addresses else text(pod, "status", "podIP")
    return [
        pod["metadata"]["name"],
        f"{seen.ready}/{total}",
        seen.status,
        restarts,
        since(pod["metadata"].get("creationTimestamp"), now),
        address or "<none>",
        text(pod, "spec", "nodeName") or "<none>",
        text(pod, "status", "nominatedNodeName") or "<none>",
        _readiness_gates(pod),
    ]


def summary(pod: Fields) -> Summary:
    """What the STATUS, READY and RESTARTS columns say."""
    init = _init_containers(pod)
    waits = init.status and not _condition(pod, "Initialized")
    found = init if waits else _main_containers(pod, init)
    status = found.status
    if pod["metadata"].get("deletionTimestamp"):
        if text(pod, "status", "reason") == "NodeLost":
            status = "Unknown"
        elif text(pod, "status", "phase") not in ("Succeeded", "Failed"):
            status = "Terminating"
    return Summary(status, found.ready, found.restarts, found.last_restart)


def _own_status(pod: Fields) -> str:
    for condition in items(pod, "status", "conditions"):
        if condition.get("type") == "PodScheduled" and condition.get("reason") == "SchedulingGated":
            return "SchedulingGated"
    return text(pod, "status", "reason") or text(pod, "status", "phase")


@dataclass(slots=True)
class _Tally:
    """Sums over the containers looked at so far."""

    status: str = ""
    ready: int = 0
    restarts: int = 0
    last_restart: str = ""
    sidecar_restarts: int = 0
    sidecar_last_restart: str = ""

    def count(self, container: Mapping[str, Any]) -> None:
        self.restarts += container.get("restartCount") or 0
        self.last_restart = max(self.last_restart, text(container, "lastState", "terminated", "finishedAt"))


def _init_containers(pod: Fields) -> _Tally:
    """`status` stays empty when all of them have done their part."""
    tally = _Tally()
    specs = {spec.get("name"): spec for spec in items(pod, "spec", "initContainers")}
    for index, container in enumerate(items(pod, "status", "initContainerStatuses")):
        tally.count(container)
        sidecar = _restarts(specs.get(container.get("name"), {}))
        if sidecar:
            tally.sidecar_restarts += container.get("restartCount") or 0
            finished = text(container, "lastState", "terminated", "finishedAt")
            tally.sidecar_last_restart = max(tally.sidecar_last_restart, finished)
        terminated = obj(container, "state").get("terminated")
        if terminated is not None and not terminated.get("exitCode"):
            continue
        if sidecar and container.get("started"):
            tally.ready += bool(container.get("ready"))
            continue
        waiting = text(container, "state", "waiting", "reason")
        if terminated is not None:
            tally.status = f"Init:{_end(terminated)}"
        elif waiting and waiting != "PodInitializing":
            tally.status = f"Init:{waiting}"
        else:
            tally.status = f"Init:{index}/{len(specs)}"
        break
    return tally


def _main_containers(pod: Fields, init: _Tally) -> _Tally:
    tally = _Tally(
        status=_own_status(pod),
        ready=init.ready,
        restarts=init.sidecar_restarts,
        last_restart=init.sidecar_last_restart,
    )
    running = False
    for container in reversed(items(pod, "status", "containerStatuses")):
        tally.count(container)
        state = obj(container, "state")
        waiting = text(state, "waiting", "reason")
        if waiting:
            tally.status = waiting
        elif state.get("terminated") is not None:
            tally.status = _end(state["terminated"])
        elif container.get("ready") and state.get("running") is not None:
            running = True
            tally.ready += 1
    if tally.status == "Completed" and running:
        tally.status = "Running" if _condition(pod, "Ready") else "NotReady"
    return tally


def _end(terminated: Mapping[str, Any]) -> str:
    if terminated.get("reason"):
        return str(terminated["reason"])
    if terminated.get("signal"):
        return f"Signal:{terminated['signal']}"
    return f"ExitCode:{terminated.get('exitCode') or 0}"


def _restarts(init_container: Mapping[str, Any]) -> bool:
    """Is it a sidecar: an init container that keeps running?"""
    return init_container.get("restartPolicy") == "Always"


def _condition(pod: Fields, kind: str) -> bool:
    return any(
        condition.get("type") == kind and condition.get("status") == "True"
        for condition in items(pod, "status", "conditions")
    )


def _readiness_gates(pod: Fields) -> str:
    gates = items(pod, "spec", "readinessGates")
    if not gates:
        return "<none>"
    return f"{sum(_condition(pod, gate.get('conditionType', '')) for gate in gates)}/{len(gates)}"
