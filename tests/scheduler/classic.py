"""Classic claims, their classes and PodSchedulings, small, as the scheduler reads them."""

from collections.abc import Mapping, Sequence
from typing import Any

from allot.allocation import Node
from allot.api import Object, encode
from allot.informers import Key
from allot.scheduler.claim import ClaimInfo
from allot.scheduler.negotiating import Stand, Told, Want
from allot.scheduler.talk import Talk

DRIVER = "gpu.example.com"
API_VERSION = "resource.k8s.io/v1alpha1"


def claim(
    name: str,
    on: str | None = None,
    users: Sequence[str] = (),
    *,
    version: int = 1,
    uid: str = "",
    mode: str = "WaitForFirstConsumer",
    resource_class: str = "gpu",
    shareable: bool = False,
    deallocating: bool = False,
    deleting: bool = False,
    owner: str = "",
) -> Object:
    """`on` is the node for which it is allocated; empty: every node may use it; None: it is not."""
    metadata: dict[str, Any] = {"name": name, "namespace": "default", "uid": uid or f"uid-{name}"}
    metadata["resourceVersion"] = str(version)
    if owner:
        metadata["ownerReferences"] = [_owner(owner)]
    if deleting:
        metadata["deletionTimestamp"] = "2026-01-01T11:00:00Z"
    spec = {
        "resourceClassName": resource_class,
        "allocationMode": mode,
        "devices": {"requests": [{"name": "classic", "exactly": {"deviceClassName": resource_class}}]},
    }
    status: dict[str, Any] = {}
    if on is not None:
        status = {"driverName": DRIVER, "allocation": {"shareable": shareable, "resourceHandle": name}}
        if on:
            term = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [on]}]}
            status["allocation"]["nodeSelector"] = {"nodeSelectorTerms": [term]}
        status["reservedFor"] = [{"resource": "pods", "name": one, "uid": f"uid-of-{one}"} for one in users]
        status["deallocationRequested"] = deallocating
    return Object(encode({"metadata": metadata, "spec": spec, "status": status}))


def resource_class(
    name: str = "gpu", driver: str = DRIVER, suitable: Mapping[str, str] | None = None
) -> Object:
    fields: dict[str, Any] = {"apiVersion": API_VERSION, "kind": "ResourceClass", "driverName": driver}
    fields["metadata"] = {"name": name, "uid": f"uid-{name}", "resourceVersion": "1"}
    if suitable is not None:
        wanted = [{"key": key, "operator": "In", "values": [value]} for key, value in suitable.items()]
        fields["suitableNodes"] = {"nodeSelectorTerms": [{"matchExpressions": wanted}]}
    return Object(encode(fields))


def scheduling(
    pod: str = "p",
    nodes: Sequence[str] = (),
    selected: str = "",
    answers: Mapping[str, Sequence[str]] | None = None,
    *,
    owner: str = "",
    version: int = 1,
) -> Object:
    """`owner` is the name of the pod whose uid it carries, if that is another than the one of its name."""
    reference = {**_owner(pod), "uid": f"uid-of-{owner or pod}"}
    metadata = {"name": pod, "namespace": "default", "uid": f"uid-talk-{owner or pod}"}
    said = [{"name": name, "unsuitableNodes": list(no)} for name, no in (answers or {}).items()]
    return Object(
        encode(
            {
                "apiVersion": API_VERSION,
                "kind": "PodScheduling",
                "metadata": {
                    **metadata,
                    "ownerReferences": [reference],
                    "resourceVersion": str(version),
                    "creationTimestamp": "2026-01-01T12:00:00Z",
                },
                "spec": {"selectedNode": selected, "potentialNodes": list(nodes)},
                "status": {"resourceClaims": said},
            }
        )
    )


def talk(pod: str = "p", *nodes: str, selected: str = "", **answers: Sequence[str]) -> Talk:
    return Talk.of(scheduling(pod, nodes, selected, answers))


def want(name: str, driver: str = DRIVER) -> Want:
    """Its entry in the pod's spec has another name than the claim."""
    return Want(f"entry-{name}", ClaimInfo.of(claim(name)), driver)


def stand(name: str, now: Object | None = None, *, gone: bool = False) -> Stand:
    found = None if gone else ClaimInfo.of(now if now is not None else claim(name))
    return Stand(want(name), found)


def told(
    known: Talk | None, *stands: Stand, now_s: float = 0.0, best: str = "", offered: Sequence[str] = ()
) -> Told:
    return Told("uid-of-p", known, stands, now_s, best=best, offered=tuple(offered))


def place(name: str) -> Node:
    return Node(name, {"kubernetes.io/hostname": name}, frozenset())


def key(name: str) -> Key:
    return Key("default", name)


def _owner(pod: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Pod", "name": pod, "uid": f"uid-of-{pod}", "controller": True}
