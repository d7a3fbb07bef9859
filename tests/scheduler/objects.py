"""Small pods and nodes as the scheduler reads them; every argument has a default."""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from allot.api import Object
from allot.scheduler.node import NodeInfo
from allot.scheduler.pod import PodInfo

_encoder = msgspec.json.Encoder()


def pod(
    name: str = "p",
    *,
    priority: int = 0,
    created: int = 0,
    labels: Mapping[str, str] | None = None,
    requests: Mapping[str, str] | None = None,
    status: Mapping[str, Any] | None = None,
    uid: str = "",
    **spec: Any,
) -> PodInfo:
    fields = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": "default",
            "uid": uid or f"uid-of-{name}",
            "creationTimestamp": f"2026-01-01T00:{created // 60:02}:{created % 60:02}Z",
            "labels": dict(labels or {}),
        },
        "spec": {
            "containers": [{"name": "main", "resources": {"requests": dict(requests or {})}}],
            "priority": priority,
            **spec,
        },
        "status": dict(status or {}),
    }
    return PodInfo.of(Object(_encoder.encode(fields)))


def node(
    name: str = "n",
    *,
    labels: Mapping[str, str] | None = None,
    allocatable: Mapping[str, str] | None = None,
    compute: Sequence[Mapping[str, Any]] = (),
    **spec: Any,
) -> NodeInfo:
    fields = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "uid": f"uid-of-{name}", "labels": dict(labels or {})},
        "spec": spec,
        "status": {
            "allocatable": {"cpu": "4", "memory": "8Gi", "pods": "110", **(allocatable or {})},
            "computeResources": list(compute),
        },
    }
    return NodeInfo.of(Object(_encoder.encode(fields)))
