"""The cluster read once, with the rights of whoever asks: for questions from outside.

A running scheduler follows the cluster; a person asks about one moment. What the person may
not read is left out and said, since the answer may then be wrong. Whoever may read one
namespace only gets as far as that goes.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from allot.allocation import Features
from allot.api import Gates, Object, errors, resource
from allot.base import InvariantBroken
from allot.client import Client
from allot.informers import Key, ResourceId

from .intake import CLAIMS, CLASSES, NODES, PODS, SLICES, TAINT_RULES
from .node import NodeInfo
from .pod import PodInfo
from .snapshot import Snapshot


@dataclass(frozen=True, slots=True)
class Reading:
    snapshot: Snapshot
    pods: Mapping[Key, PodInfo]
    unread: tuple[str, ...]  # what may not be read, and why


async def read(client: Client, gates: Gates, namespace: str = "") -> Reading:
    """The namespace is the one that is asked about."""
    unread: list[str] = []

    async def every(what: ResourceId) -> list[Object]:
        try:
            return await _listed(client, what)
        except (errors.Forbidden, errors.NotFound) as refused:
            return await some(what, refused)

    async def some(what: ResourceId, refused: errors.ApiError) -> list[Object]:
        if what.namespaced and namespace:
            try:
                found = await _listed(client, what, namespace)
            except (errors.Forbidden, errors.NotFound):
                pass
            else:
                unread.append(f"{what.plural} of namespaces other than {namespace}: {refused}")
                return found
        unread.append(f"{what.plural}: {refused}")
        return []

    snapshot = Snapshot(Features.from_gates(gates), extended=gates["DRAExtendedResource"])

    def take(object: Object, into: Callable[[Object], object]) -> bool:
        """Whether it could be taken in: what cannot be read is left out and said."""
        try:
            into(object)
        except InvariantBroken:
            raise
        except Exception as bad:
            unread.append(f"{object.kind or 'object'} {Key.of(object)} cannot be read: {bad}")
            return False
        return True

    for object in await every(CLASSES):
        take(object, lambda one: snapshot.put_class(one.view(resource.DeviceClass)))
    for object in await every(NODES):
        take(object, lambda one: snapshot.put_node(NodeInfo.of(one)))
    for object in await every(SLICES):
        take(object, lambda one: snapshot.inventory.apply(one.view(resource.ResourceSlice)))
    for object in await every(TAINT_RULES):
        take(object, lambda one: snapshot.inventory.apply_taint_rule(one.view(resource.DeviceTaintRule)))
    for object in await every(CLAIMS):
        if not take(object, snapshot.put_claim):
            snapshot.put_unreadable(object)
    pods: list[PodInfo] = []
    for object in await every(PODS):
        take(object, lambda one: pods.append(PodInfo.of(one)))
    for pod in (one for one in pods if not one.view.is_finished):
        if pod.spec.node_name:
            snapshot.place(pod, pod.spec.node_name)
        elif pod.status.nominated_node_name and not pod.is_deleting:
            snapshot.nominate(pod, pod.status.nominated_node_name)
    return Reading(snapshot, {pod.key: pod for pod in pods}, tuple(unread))


async def _listed(client: Client, what: ResourceId, namespace: str = "") -> list[Object]:
    listing = client.resource(what.group, what.version, what.plural, namespaced=what.namespaced)
    found: list[Object] = []
    async for page in listing.pages(namespace):
        found += page.objects
    return found
