"""Device plugins (v1beta1): the older way to offer devices, counted under one name.

A plugin registers at the kubelet's own socket, or is found like a DRA driver (`registration`); then
the kubelet watches its devices, and asks for some of them when it starts a container.

A device may have properties (KEP-14). They travel under a number of ours, far above those in use and never
to be given to anything else: a kubelet skips it, and a plugin that sends none sends the bytes that it always
sent.
"""

from typing import Annotated, Final

from msgspec import field

from .channel import Streaming, Unary
from .message import Message

VERSION: Final = "v1beta1"
HEALTHY: Final = "Healthy"
UNHEALTHY: Final = "Unhealthy"
PROPERTIES: Final = 1014
"""The number of a device's properties."""


class Empty(Message, frozen=True):
    pass


class DevicePluginOptions(Message, frozen=True):
    pre_start_required: Annotated[bool, 1] = False
    get_preferred_allocation_available: Annotated[bool, 2] = False


class RegisterRequest(Message, frozen=True):
    version: Annotated[str, 1] = ""
    endpoint: Annotated[str, 2] = ""  # the name of its socket in the kubelet's directory of device plugins
    resource_name: Annotated[str, 3] = ""
    options: Annotated[DevicePluginOptions | None, 4] = None


class NumaNode(Message, frozen=True):
    id: Annotated[int, 1] = 0


class TopologyInfo(Message, frozen=True):
    nodes: Annotated[tuple[NumaNode, ...], 1] = ()


class Device(Message, frozen=True):
    id: Annotated[str, 1] = ""
    health: Annotated[str, 2] = ""
    topology: Annotated[TopologyInfo | None, 3] = None
    properties: Annotated[dict[str, str], PROPERTIES] = field(default_factory=dict)


class ListAndWatchResponse(Message, frozen=True):
    devices: Annotated[tuple[Device, ...], 1] = ()


class ContainerPreferredAllocationRequest(Message, frozen=True):
    available_device_ids: Annotated[tuple[str, ...], 1] = ()
    must_include_device_ids: Annotated[tuple[str, ...], 2] = ()
    allocation_size: Annotated[int, 3] = 0


class PreferredAllocationRequest(Message, frozen=True):
    container_requests: Annotated[tuple[ContainerPreferredAllocationRequest, ...], 1] = ()


class ContainerPreferredAllocationResponse(Message, frozen=True):
    device_ids: Annotated[tuple[str, ...], 1] = ()


class PreferredAllocationResponse(Message, frozen=True):
    container_responses: Annotated[tuple[ContainerPreferredAllocationResponse, ...], 1] = ()


class ContainerAllocateRequest(Message, frozen=True):
    devices_ids: Annotated[tuple[str, ...], 1] = ()


class AllocateRequest(Message, frozen=True):
    container_requests: Annotated[tuple[ContainerAllocateRequest, ...], 1] = ()


class Mount(Message, frozen=True):
    container_path: Annotated[str, 1] = ""
    host_path: Annotated[str, 2] = ""
    read_only: Annotated[bool, 3] = False


class DeviceSpec(Message, frozen=True):
    container_path: Annotated[str, 1] = ""
    host_path: Annotated[str, 2] = ""
    permissions: Annotated[str, 3] = ""


class CdiDevice(Message, frozen=True):
    name: Annotated[str, 1] = ""


class ContainerAllocateResponse(Message, frozen=True):
    envs: Annotated[dict[str, str], 1] = field(default_factory=dict)
    mounts: Annotated[tuple[Mount, ...], 2] = ()
    devices: Annotated[tuple[DeviceSpec, ...], 3] = ()
    annotations: Annotated[dict[str, str], 4] = field(default_factory=dict)
    cdi_devices: Annotated[tuple[CdiDevice, ...], 5] = ()


class AllocateResponse(Message, frozen=True):
    container_responses: Annotated[tuple[ContainerAllocateResponse, ...], 1] = ()


class PreStartContainerRequest(Message, frozen=True):
    devices_ids: Annotated[tuple[str, ...], 1] = ()


class PreStartContainerResponse(Message, frozen=True):
    pass


REGISTER: Final = Unary("v1beta1.Registration", "Register", RegisterRequest, Empty)

_SERVICE = "v1beta1.DevicePlugin"
GET_OPTIONS: Final = Unary(_SERVICE, "GetDevicePluginOptions", Empty, DevicePluginOptions)
LIST_AND_WATCH: Final = Streaming(_SERVICE, "ListAndWatch", Empty, ListAndWatchResponse)
GET_PREFERRED: Final = Unary(
    _SERVICE, "GetPreferredAllocation", PreferredAllocationRequest, PreferredAllocationResponse
)
ALLOCATE: Final = Unary(_SERVICE, "Allocate", AllocateRequest, AllocateResponse)
PRE_START: Final = Unary(_SERVICE, "PreStartContainer", PreStartContainerRequest, PreStartContainerResponse)
