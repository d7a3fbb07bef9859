"""Pods.

A pod is bound, run and ended by others; here is what the API itself knows: what
a pod means when it does not say, which pods make sense, and what may change in
one that exists. The rules of the spec are in `podspec`, since templates share
them.
"""

from ...kind import Fields, Kind, Occasion, Rules, Version
from ..podspec import default_pod, qos_class
from ..reading import items, section, text
from . import pod_columns

GATED = {
    "type": "PodScheduled",
    "status": "False",
    "reason": "SchedulingGated",
    "message": "Scheduling is blocked due to non-empty scheduling gates",
}


def _prepare_create(pod: Fields, occasion: Occasion) -> None:
    spec = section(pod, "spec")
    status = pod["status"] = {"phase": "Pending", "qosClass": qos_class(spec)}
    if items(spec, "schedulingGates"):
        status["conditions"] = [dict(GATED)]


POD = Kind(
    group="",
    kind="Pod",
    plural="pods",
    singular="pod",
    short_names=("po",),
    categories=("all",),
    versions=(Version("v1", "io.k8s.api.core.v1.Pod", default=lambda pod, now: default_pod(pod)),),
    hub="v1",
    has_status=True,
    other_subresources=("binding", "eviction", "log"),
    counts_generation=True,
    rules=Rules(prepare_create=_prepare_create),
    columns=pod_columns.COLUMNS,
    cells_at=pod_columns.cells,
    selectable={
        "spec.nodeName": lambda pod: text(pod, "spec", "nodeName"),
        "spec.restartPolicy": lambda pod: text(pod, "spec", "restartPolicy"),
        "spec.schedulerName": lambda pod: text(pod, "spec", "schedulerName"),
        "spec.serviceAccountName": lambda pod: text(pod, "spec", "serviceAccountName"),
        "spec.hostNetwork": lambda pod: "true" if pod["spec"].get("hostNetwork") else "false",
        "status.phase": lambda pod: text(pod, "status", "phase"),
        "status.podIP": lambda pod: text(pod, "status", "podIP"),
        "status.podIPs": lambda pod: _addresses(pod),
        "status.nominatedNodeName": lambda pod: text(pod, "status", "nominatedNodeName"),
    },
)


def _addresses(pod: Fields) -> str:
    return ",".join(str(entry.get("ip", "")) for entry in items(pod, "status", "podIPs"))
