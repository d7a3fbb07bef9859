"""What a kubelet tells monitoring agents: which container has which devices.

v1alpha1 knows only `List` and devices of device plugins.
"""

from typing import Annotated, Final

from .channel import Unary
from .message import UNSIGNED, Message


class NumaNode(Message, frozen=True):
    id: Annotated[int, 1] = 0


class TopologyInfo(Message, frozen=True):
    nodes: Annotated[tuple[NumaNode, ...], 1] = ()


class ContainerDevices(Message, frozen=True):
    resource_name: Annotated[str, 1] = ""
    device_ids: Annotated[tuple[str, ...], 2] = ()
    topology: Annotated[TopologyInfo | None, 3] = None


class ContainerMemory(Message, frozen=True):
    memory_type: Annotated[str, 1] = ""
    size: Annotated[int, 2, UNSIGNED] = 0
    topology: Annotated[TopologyInfo | None, 3] = None


class CdiDevice(Message, frozen=True):
    name: Annotated[str, 1] = ""


class ClaimResource(Message, frozen=True):
    cdi_devices: Annotated[tuple[CdiDevice, ...], 1] = ()
    driver_name: Annotated[str, 2] = ""
    pool_name: Annotated[str, 3] = ""
    device_name: Annotated[str, 4] = ""
    share_id: Annotated[str | None, 5] = None


class DynamicResource(Message, frozen=True):
    claim_name: Annotated[str, 2] = ""
    claim_namespace: Annotated[str, 3] = ""
    claim_resources: Annotated[tuple[ClaimResource, ...], 4] = ()


class ContainerResources(Message, frozen=True):
    name: Annotated[str, 1] = ""
    devices: Annotated[tuple[ContainerDevices, ...], 2] = ()
    cpu_ids: Annotated[tuple[int, ...], 3] = ()
    memory: Annotated[tuple[ContainerMemory, ...], 4] = ()
    dynamic_resources: Annotated[tuple[DynamicResource, ...], 5] = ()


class PodResources(Message, frozen=True):
    name: Annotated[str, 1] = ""
    namespace: Annotated[str, 2] = ""
    containers: Annotated[tuple[ContainerResources, ...], 3] = ()
    cpu_ids: Annotated[tuple[int, ...], 4] = ()
    memory: Annotated[tuple[ContainerMemory, ...], 5] = ()


class ListPodResourcesRequest(Message, frozen=True):
    pass


class ListPodResourcesResponse(Message, frozen=True):
    pod_resources: Annotated[tuple[PodResources, ...], 1] = ()


class GetPodResourcesRequest(Message, frozen=True):
    pod_name: Annotated[str, 1] = ""
    pod_namespace: Annotated[str, 2] = ""


class GetPodResourcesResponse(Message, frozen=True):
    pod_resources: Annotated[PodResources | None, 1] = None


class AllocatableResourcesRequest(Message, frozen=True):
    pass


class AllocatableResourcesResponse(Message, frozen=True):
    devices: Annotated[tuple[ContainerDevices, ...], 1] = ()
    cpu_ids: Annotated[tuple[int, ...], 2] = ()
    memory: Annotated[tuple[ContainerMemory, ...], 3] = ()


class OldContainerDevices(Message, frozen=True):
    """v1alpha1's, and so are the next three."""

    resource_name: Annotated[str, 1] = ""
    device_ids: Annotated[tuple[str, ...], 2] = ()


class OldContainerResources(Message, frozen=True):
    name: Annotated[str, 1] = ""
    devices: Annotated[tuple[OldContainerDevices, ...], 2] = ()


class OldPodResources(Message, frozen=True):
    name: Annotated[str, 1] = ""
    namespace: Annotated[str, 2] = ""
    containers: Annotated[tuple[OldContainerResources, ...], 3] = ()


class OldListPodResourcesResponse(Message, frozen=True):
    pod_resources: Annotated[tuple[OldPodResources, ...], 1] = ()


_SERVICE = "v1.PodResourcesLister"
LIST: Final = Unary(_SERVICE, "List", ListPodResourcesRequest, ListPodResourcesResponse)
GET: Final = Unary(_SERVICE, "Get", GetPodResourcesRequest, GetPodResourcesResponse)
GET_ALLOCATABLE: Final = Unary(
    _SERVICE, "GetAllocatableResources", AllocatableResourcesRequest, AllocatableResourcesResponse
)
LIST_V1ALPHA1: Final = Unary(
    "v1alpha1.PodResourcesLister", "List", ListPodResourcesRequest, OldListPodResourcesResponse
)


def as_v1alpha1(answer: ListPodResourcesResponse) -> OldListPodResourcesResponse:
    return OldListPodResourcesResponse(
        tuple(
            OldPodResources(pod.name, pod.namespace, tuple(map(_old_container, pod.containers)))
            for pod in answer.pod_resources
        )
    )


def _old_container(container: ContainerResources) -> OldContainerResources:
    devices = (OldContainerDevices(one.resource_name, one.device_ids) for one in container.devices)
    return OldContainerResources(container.name, tuple(devices))
