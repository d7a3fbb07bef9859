"""The nodes whose life a process leads, what it hears of them, and how each of them speaks.

Every node writes with the rights of `system:node:NAME`, so that the node authorizer and node
restriction judge it like any other. What it reads may be read once for many of them.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

from msgspec import structs

from allot.api import Object, core, errors
from allot.base import Clock
from allot.client import Client
from allot.informers import WORKERS, Index, Informer, Informers, ResourceId, Telemetry

PODS = ResourceId("", "v1", "pods")
CLAIMS = ResourceId("resource.k8s.io", "v1", "resourceclaims")
NODES = ResourceId("", "v1", "nodes", namespaced=False)
PREPARED = ResourceId("node.allot.dev", "v1alpha1", "preparedclaims", namespaced=False)
FOLLOWED: tuple[ResourceId | None, ...] = (PODS, CLAIMS, NODES, PREPARED)


def own(node: str) -> tuple[ResourceId | None, ...]:
    """The same, as far as a node may read it with its own rights."""
    named = f"metadata.name={node}"
    pods = structs.replace(PODS, field_selector=f"spec.nodeName={node}")
    return pods, None, *(structs.replace(one, field_selector=named) for one in (NODES, PREPARED))


SHARED: tuple[ResourceId | None, ...] = (PODS, None, NODES, PREPARED)
"""What nodes of one process read together, claims left out: each asks for its own."""


async def lists_prepared(client: Client, node: str) -> bool:
    """Whether the server has lists of prepared claims: a Kubernetes has not."""
    try:
        await client.resource(PREPARED.group, PREPARED.version, PREPARED.plural, namespaced=False).get(node)
    except errors.NotFound as missing:
        return bool(missing.name)  # of that name there is none; else of that kind there are none
    return True


class Heard(NamedTuple):
    """Informers of what `FOLLOWED` names, in its order."""

    pods: Informer
    claims: Informer | None  # None: they may not be listed, and are asked for by name
    nodes: Informer
    prepared: Informer | None  # None: the server has no such lists, and nodes keep theirs to themselves

    @classmethod
    def of(cls, informers: Informers, followed: Iterable[ResourceId | None]) -> "Heard":
        """In use until each of its informers is given back."""
        return cls(*(informers.use(one) if one is not None else None for one in followed))  # type: ignore[arg-type]

    @property
    def informers(self) -> tuple[Informer, ...]:
        return tuple(one for one in self if one is not None)

    def node(self, name: str) -> Object | None:
        return self.nodes.cache.get(name)


@dataclass(frozen=True, slots=True)
class Hosts:
    """`complain` is told of a pod what its node cannot do for it: a reason, and a message."""

    is_ours: Callable[[Object], bool]
    client: Callable[[str], Client]
    clock: Clock
    telemetry: Telemetry
    name: str = "node"
    """Of the work queues, in metrics and logs."""
    complain: Callable[[Object, str, str], None] = lambda pod, reason, message: None
    keeps_ended: bool = False
    """What has ended stays on the machine until the pod goes from the API."""
    may_be_ours: Callable[[str], bool] = lambda name: True
    """By its name alone: False of nodes that others play, where one hears of those too."""
    workers: int = WORKERS
    """Pods that are looked after at one moment; deeds of real machines take long."""


def node_of(pod: Object) -> str:
    return pod.view(core.Pod).spec.node_name


def pods_by_node(pods: Informer) -> Index:
    return pods.cache.index("pods of a node", _node_names)


def _node_names(pod: Object) -> tuple[str, ...]:
    name = node_of(pod)
    return (name,) if name else ()


def owner_reference(node: Object) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Node", "name": node.name, "uid": node.uid}
