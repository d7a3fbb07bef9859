"""The cluster read once, with the rights of whoever asks: for questions from outside.

A running scheduler follows the cluster; a person asks about one moment. What the person may
not read is left out and said, since the answer may then be wrong.
"""

from dataclasses import dataclass

from allot.allocation import BadSlice, Features
from allot.api import Gates, Object, errors, resource
from allot.client import Client
from allot.informers import ResourceId

from .intake import CLAIMS, CLASSES, NODES, PODS, SLICES, TAINT_RULES
from .node import NodeInfo
from .pod import PodInfo
from .snapshot import Snapshot


@dataclass(frozen=True, slots=True)
class Reading:
    snapshot: Snapshot
    pending: tuple[PodInfo, ...]  # pods that have no node
    unread: tuple[str, ...]  # what may not be read, and why

    def pod(self, namespace: str, name: str) -> PodInfo | None:
        """A pod that waits, or that is on a node."""
        waiting = (one for one in self.pending if one.key == (namespace, name))
        placed = (one for node in self.snapshot.nodes() for one in node.pods.values())
        return next(waiting, None) or next((one for one in placed if one.key == (namespace, name)), None)


async def read(client: Client, gates: Gates) -> Reading:
    unread: list[str] = []

    async def every(what: ResourceId) -> list[Object]:
        found: list[Object] = []
        listing = client.resource(what.group, what.version, what.plural, namespaced=what.namespaced)
        try:
            async for page in listing.pages():
                found += page.objects
        except (errors.Forbidden, errors.NotFound) as refused:
            unread.append(f"{what.plural}: {refused}")
        return found

    snapshot = Snapshot(Features.from_gates(gates), extended=gates["DRAExtendedResource"])
    for object in await every(CLASSES):
        snapshot.put_class(object.view(resource.DeviceClass))
    for object in await every(NODES):
        snapshot.put_node(NodeInfo.of(object))
    for object in await every(SLICES):
        try:
            snapshot.inventory.apply(object.view(resource.ResourceSlice))
        except BadSlice as bad:
            unread.append(f"slice {object.name}: {bad}")
    for object in await every(TAINT_RULES):
        snapshot.inventory.apply_taint_rule(object.view(resource.DeviceTaintRule))
    for object in await every(CLAIMS):
        snapshot.put_claim(object)
    pending = []
    for object in await every(PODS):
        pod = PodInfo.of(object)
        if pod.view.is_finished:
            continue
        if pod.spec.node_name:
            snapshot.place(pod, pod.spec.node_name)
        else:
            pending.append(pod)
    return Reading(snapshot, tuple(pending), tuple(unread))
