"""What monitoring agents ask a node: which container has which devices. Pure but for `handlers`' callbacks.

Containers and sidecars are listed, other init containers are not. Each claim of a container is listed with
all its devices, and each device with its own CDI names.
"""

from collections.abc import Callable, Iterable
from typing import NamedTuple

from allot.api import Object, core
from allot.wire import CallFailed, Code, Handler, podresources

from .giving import used
from .life import is_sidecar
from .told import Entry
from .views import Container, Pod

SOCKET = "pod-resources/kubelet.sock"


class Standing(NamedTuple):
    pod: Object
    entries: tuple[Entry, ...]


def handlers(standing: Callable[[], Iterable[Standing]]) -> list[Handler]:
    async def list_all(asked: podresources.ListPodResourcesRequest) -> podresources.ListPodResourcesResponse:
        return podresources.ListPodResourcesResponse(tuple(map(shown, standing())))

    async def list_old(
        asked: podresources.ListPodResourcesRequest,
    ) -> podresources.OldListPodResourcesResponse:
        return podresources.as_v1alpha1(await list_all(asked))

    async def get(asked: podresources.GetPodResourcesRequest) -> podresources.GetPodResourcesResponse:
        for one in standing():
            if (one.pod.name, one.pod.namespace) == (asked.pod_name, asked.pod_namespace):
                return podresources.GetPodResourcesResponse(shown(one))
        name = f"{asked.pod_namespace}/{asked.pod_name}"
        raise CallFailed(Code.NOT_FOUND, f"pod {name} is not on this node")

    async def allocatable(
        asked: podresources.AllocatableResourcesRequest,
    ) -> podresources.AllocatableResourcesResponse:
        return podresources.AllocatableResourcesResponse()  # device plugins' devices, of which there are none

    return [
        podresources.LIST.by(list_all),
        podresources.LIST_V1ALPHA1.by(list_old),
        podresources.GET.by(get),
        podresources.GET_ALLOCATABLE.by(allocatable),
    ]


def shown(standing: Standing) -> podresources.PodResources:
    spec = standing.pod.view(Pod).spec
    containers = (*filter(is_sidecar, spec.init_containers), *spec.containers)
    return podresources.PodResources(
        standing.pod.name,
        standing.pod.namespace,
        tuple(_container(standing, one) for one in containers),
    )


def _container(standing: Standing, container: Container) -> podresources.ContainerResources:
    names = used(standing.pod.view(core.Pod), container)
    entries = (entry for entry in standing.entries if entry.claim.name in names)
    return podresources.ContainerResources(container.name, dynamic_resources=tuple(map(_claim, entries)))


def _claim(entry: Entry) -> podresources.DynamicResource:
    devices = tuple(
        podresources.ClaimResource(
            tuple(map(podresources.CdiDevice, device.cdi_ids)),
            driver,
            device.pool,
            device.name,
            device.share_id or None,
        )
        for driver, part in entry.parts.items()
        for device in part.devices
    )
    return podresources.DynamicResource(entry.claim.name, entry.claim.namespace, devices)
