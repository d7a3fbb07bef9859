"""The nodes whose life a process leads, what it hears of them, and how each of them speaks.

Every node writes with the rights of `system:node:NAME`, so that the node authorizer and node
restriction judge it like any other. What it reads may be read once for many of them.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

from allot.api import Object, core
from allot.base import Clock
from allot.client import Client
from allot.informers import Index, Informer, ResourceId, Telemetry

PODS = ResourceId("", "v1", "pods")
CLAIMS = ResourceId("resource.k8s.io", "v1", "resourceclaims")
NODES = ResourceId("", "v1", "nodes", namespaced=False)
PREPARED = ResourceId("node.allot.dev", "v1alpha1", "preparedclaims", namespaced=False)
FOLLOWED = (PODS, CLAIMS, NODES, PREPARED)


class Heard(NamedTuple):
    """Informers of what `FOLLOWED` names, in its order."""

    pods: Informer
    claims: Informer
    nodes: Informer
    prepared: Informer

    def node(self, name: str) -> Object | None:
        return self.nodes.cache.get(name)


@dataclass(frozen=True, slots=True)
class Hosts:
    is_ours: Callable[[Object], bool]
    client: Callable[[str], Client]
    clock: Clock
    telemetry: Telemetry
    name: str = "node"
    """Of the work queues, in metrics and logs."""


def node_of(pod: Object) -> str:
    return pod.view(core.Pod).spec.node_name


def pods_by_node(pods: Informer) -> Index:
    return pods.cache.index("pods of a node", _node_names)


def _node_names(pod: Object) -> tuple[str, ...]:
    name = node_of(pod)
    return (name,) if name else ()


def owner_reference(node: Object) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Node", "name": node.name, "uid": node.uid}
