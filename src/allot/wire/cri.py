"""What a kubelet asks a container runtime: the CRI, v1, as far as the agent speaks it.

A pod is a sandbox, in which containers are created, started and stopped; what has ended stays until it is
removed. Exec, attach and port-forward answer with the address of a server of the runtime's own, where the
streams then go. Devices are handed over by the names that CDI specs give them (`CdiDevice`).
"""

from enum import IntEnum
from typing import Annotated, Final

from msgspec import field

from .channel import Streaming, Unary
from .message import UNSIGNED, Message

VERSION: Final = "v1"


class NamespaceMode(IntEnum):
    POD = 0
    CONTAINER = 1
    NODE = 2
    TARGET = 3


class SandboxState(IntEnum):
    READY = 0
    NOTREADY = 1


class ContainerState(IntEnum):
    CREATED = 0
    RUNNING = 1
    EXITED = 2
    UNKNOWN = 3


class ProfileType(IntEnum):
    RUNTIME_DEFAULT = 0
    UNCONFINED = 1
    LOCALHOST = 2


class Propagation(IntEnum):
    PRIVATE = 0
    HOST_TO_CONTAINER = 1
    BIDIRECTIONAL = 2


class EventType(IntEnum):
    CREATED = 0
    STARTED = 1
    STOPPED = 2
    DELETED = 3


# -- the runtime itself ---------------------------------------------------------------------------


class VersionRequest(Message, frozen=True):
    version: Annotated[str, 1] = ""


class VersionResponse(Message, frozen=True):
    version: Annotated[str, 1] = ""
    runtime_name: Annotated[str, 2] = ""
    runtime_version: Annotated[str, 3] = ""
    runtime_api_version: Annotated[str, 4] = ""


class StatusRequest(Message, frozen=True):
    verbose: Annotated[bool, 1] = False


class RuntimeCondition(Message, frozen=True):
    type: Annotated[str, 1] = ""
    status: Annotated[bool, 2] = False
    reason: Annotated[str, 3] = ""
    message: Annotated[str, 4] = ""


class RuntimeStatus(Message, frozen=True):
    conditions: Annotated[tuple[RuntimeCondition, ...], 1] = ()


class StatusResponse(Message, frozen=True):
    status: Annotated[RuntimeStatus | None, 1] = None
    info: Annotated[dict[str, str], 2] = field(default_factory=dict)  # when asked to be verbose: JSON


# -- sandboxes ------------------------------------------------------------------------------------


class Int64Value(Message, frozen=True):
    value: Annotated[int, 1] = 0


class UInt64Value(Message, frozen=True):
    value: Annotated[int, 1, UNSIGNED] = 0


class PodSandboxMetadata(Message, frozen=True):
    name: Annotated[str, 1] = ""
    uid: Annotated[str, 2] = ""
    namespace: Annotated[str, 3] = ""
    attempt: Annotated[int, 4] = 0


class NamespaceOption(Message, frozen=True):
    network: Annotated[NamespaceMode, 1] = NamespaceMode.POD
    pid: Annotated[NamespaceMode, 2] = NamespaceMode.POD
    ipc: Annotated[NamespaceMode, 3] = NamespaceMode.POD
    target_id: Annotated[str, 4] = ""


class SecurityProfile(Message, frozen=True):
    """Of seccomp, or of AppArmor."""

    profile_type: Annotated[ProfileType, 1] = ProfileType.RUNTIME_DEFAULT
    localhost_ref: Annotated[str, 2] = ""


class LinuxSandboxSecurityContext(Message, frozen=True):
    namespace_options: Annotated[NamespaceOption | None, 1] = None
    run_as_user: Annotated[Int64Value | None, 3] = None
    readonly_rootfs: Annotated[bool, 4] = False
    supplemental_groups: Annotated[tuple[int, ...], 5] = ()
    privileged: Annotated[bool, 6] = False
    run_as_group: Annotated[Int64Value | None, 8] = None
    seccomp: Annotated[SecurityProfile | None, 9] = None


class LinuxPodSandboxConfig(Message, frozen=True):
    cgroup_parent: Annotated[str, 1] = ""
    security_context: Annotated[LinuxSandboxSecurityContext | None, 2] = None
    sysctls: Annotated[dict[str, str], 3] = field(default_factory=dict)


class PodSandboxConfig(Message, frozen=True):
    metadata: Annotated[PodSandboxMetadata | None, 1] = None
    hostname: Annotated[str, 2] = ""
    log_directory: Annotated[str, 3] = ""
    labels: Annotated[dict[str, str], 6] = field(default_factory=dict)
    annotations: Annotated[dict[str, str], 7] = field(default_factory=dict)
    linux: Annotated[LinuxPodSandboxConfig | None, 8] = None


class RunPodSandboxRequest(Message, frozen=True):
    config: Annotated[PodSandboxConfig | None, 1] = None
    runtime_handler: Annotated[str, 2] = ""


class RunPodSandboxResponse(Message, frozen=True):
    pod_sandbox_id: Annotated[str, 1] = ""


class StopPodSandboxRequest(Message, frozen=True):
    pod_sandbox_id: Annotated[str, 1] = ""


class StopPodSandboxResponse(Message, frozen=True):
    pass


class RemovePodSandboxRequest(Message, frozen=True):
    pod_sandbox_id: Annotated[str, 1] = ""


class RemovePodSandboxResponse(Message, frozen=True):
    pass


class PodSandboxFilter(Message, frozen=True):
    id: Annotated[str, 1] = ""
    label_selector: Annotated[dict[str, str], 3] = field(default_factory=dict)


class ListPodSandboxRequest(Message, frozen=True):
    filter: Annotated[PodSandboxFilter | None, 1] = None


class PodSandbox(Message, frozen=True):
    id: Annotated[str, 1] = ""
    metadata: Annotated[PodSandboxMetadata | None, 2] = None
    state: Annotated[SandboxState, 3] = SandboxState.READY
    created_at: Annotated[int, 4] = 0
    labels: Annotated[dict[str, str], 5] = field(default_factory=dict)
    annotations: Annotated[dict[str, str], 6] = field(default_factory=dict)


class ListPodSandboxResponse(Message, frozen=True):
    items: Annotated[tuple[PodSandbox, ...], 1] = ()


class PodSandboxStatusRequest(Message, frozen=True):
    pod_sandbox_id: Annotated[str, 1] = ""
    verbose: Annotated[bool, 2] = False


class PodIP(Message, frozen=True):
    ip: Annotated[str, 1] = ""


class PodSandboxNetworkStatus(Message, frozen=True):
    ip: Annotated[str, 1] = ""  # empty: the machine's, or its network is gone
    additional_ips: Annotated[tuple[PodIP, ...], 2] = ()


class PodSandboxStatus(Message, frozen=True):
    id: Annotated[str, 1] = ""
    metadata: Annotated[PodSandboxMetadata | None, 2] = None
    state: Annotated[SandboxState, 3] = SandboxState.READY
    created_at: Annotated[int, 4] = 0
    network: Annotated[PodSandboxNetworkStatus | None, 5] = None


class PodSandboxStatusResponse(Message, frozen=True):
    status: Annotated[PodSandboxStatus | None, 1] = None


# -- containers -----------------------------------------------------------------------------------


class ImageSpec(Message, frozen=True):
    image: Annotated[str, 1] = ""
    annotations: Annotated[dict[str, str], 2] = field(default_factory=dict)
    user_specified_image: Annotated[str, 18] = ""


class ContainerMetadata(Message, frozen=True):
    name: Annotated[str, 1] = ""
    attempt: Annotated[int, 2] = 0


class KeyValue(Message, frozen=True):
    key: Annotated[str, 1] = ""
    value: Annotated[str, 2] = ""


class Mount(Message, frozen=True):
    container_path: Annotated[str, 1] = ""
    host_path: Annotated[str, 2] = ""
    readonly: Annotated[bool, 3] = False
    selinux_relabel: Annotated[bool, 4] = False
    propagation: Annotated[Propagation, 5] = Propagation.PRIVATE


class Device(Message, frozen=True):
    container_path: Annotated[str, 1] = ""
    host_path: Annotated[str, 2] = ""
    permissions: Annotated[str, 3] = ""


class CdiDevice(Message, frozen=True):
    name: Annotated[str, 1] = ""  # vendor/class=name


class LinuxContainerResources(Message, frozen=True):
    cpu_period: Annotated[int, 1] = 0
    cpu_quota: Annotated[int, 2] = 0
    cpu_shares: Annotated[int, 3] = 0
    memory_limit_in_bytes: Annotated[int, 4] = 0
    oom_score_adj: Annotated[int, 5] = 0
    cpuset_cpus: Annotated[str, 6] = ""
    cpuset_mems: Annotated[str, 7] = ""


class Capability(Message, frozen=True):
    add_capabilities: Annotated[tuple[str, ...], 1] = ()
    drop_capabilities: Annotated[tuple[str, ...], 2] = ()


class LinuxContainerSecurityContext(Message, frozen=True):
    capabilities: Annotated[Capability | None, 1] = None
    privileged: Annotated[bool, 2] = False
    namespace_options: Annotated[NamespaceOption | None, 3] = None
    run_as_user: Annotated[Int64Value | None, 5] = None
    run_as_username: Annotated[str, 6] = ""
    readonly_rootfs: Annotated[bool, 7] = False
    supplemental_groups: Annotated[tuple[int, ...], 8] = ()
    no_new_privs: Annotated[bool, 11] = False
    run_as_group: Annotated[Int64Value | None, 12] = None
    masked_paths: Annotated[tuple[str, ...], 13] = ()
    readonly_paths: Annotated[tuple[str, ...], 14] = ()
    seccomp: Annotated[SecurityProfile | None, 15] = None
    apparmor: Annotated[SecurityProfile | None, 16] = None


class LinuxContainerConfig(Message, frozen=True):
    resources: Annotated[LinuxContainerResources | None, 1] = None
    security_context: Annotated[LinuxContainerSecurityContext | None, 2] = None


class ContainerConfig(Message, frozen=True):
    metadata: Annotated[ContainerMetadata | None, 1] = None
    image: Annotated[ImageSpec | None, 2] = None
    command: Annotated[tuple[str, ...], 3] = ()
    args: Annotated[tuple[str, ...], 4] = ()
    working_dir: Annotated[str, 5] = ""
    envs: Annotated[tuple[KeyValue, ...], 6] = ()
    mounts: Annotated[tuple[Mount, ...], 7] = ()
    devices: Annotated[tuple[Device, ...], 8] = ()
    labels: Annotated[dict[str, str], 9] = field(default_factory=dict)
    annotations: Annotated[dict[str, str], 10] = field(default_factory=dict)
    log_path: Annotated[str, 11] = ""  # from the sandbox's log directory
    stdin: Annotated[bool, 12] = False
    stdin_once: Annotated[bool, 13] = False
    tty: Annotated[bool, 14] = False
    linux: Annotated[LinuxContainerConfig | None, 15] = None
    cdi_devices: Annotated[tuple[CdiDevice, ...], 17] = ()


class CreateContainerRequest(Message, frozen=True):
    pod_sandbox_id: Annotated[str, 1] = ""
    config: Annotated[ContainerConfig | None, 2] = None
    sandbox_config: Annotated[PodSandboxConfig | None, 3] = None


class CreateContainerResponse(Message, frozen=True):
    container_id: Annotated[str, 1] = ""


class StartContainerRequest(Message, frozen=True):
    container_id: Annotated[str, 1] = ""


class StartContainerResponse(Message, frozen=True):
    pass


class StopContainerRequest(Message, frozen=True):
    container_id: Annotated[str, 1] = ""
    timeout: Annotated[int, 2] = 0  # in seconds, then it is killed; 0: at once


class StopContainerResponse(Message, frozen=True):
    pass


class RemoveContainerRequest(Message, frozen=True):
    container_id: Annotated[str, 1] = ""


class RemoveContainerResponse(Message, frozen=True):
    pass


class ContainerFilter(Message, frozen=True):
    id: Annotated[str, 1] = ""
    pod_sandbox_id: Annotated[str, 3] = ""
    label_selector: Annotated[dict[str, str], 4] = field(default_factory=dict)


class ListContainersRequest(Message, frozen=True):
    filter: Annotated[ContainerFilter | None, 1] = None


class Container(Message, frozen=True):
    id: Annotated[str, 1] = ""
    pod_sandbox_id: Annotated[str, 2] = ""
    metadata: Annotated[ContainerMetadata | None, 3] = None
    image: Annotated[ImageSpec | None, 4] = None
    image_ref: Annotated[str, 5] = ""
    state: Annotated[ContainerState, 6] = ContainerState.CREATED
    created_at: Annotated[int, 7] = 0
    labels: Annotated[dict[str, str], 8] = field(default_factory=dict)
    annotations: Annotated[dict[str, str], 9] = field(default_factory=dict)


class ListContainersResponse(Message, frozen=True):
    containers: Annotated[tuple[Container, ...], 1] = ()


class ContainerStatusRequest(Message, frozen=True):
    container_id: Annotated[str, 1] = ""
    verbose: Annotated[bool, 2] = False


class ContainerStatus(Message, frozen=True):
    id: Annotated[str, 1] = ""
    metadata: Annotated[ContainerMetadata | None, 2] = None
    state: Annotated[ContainerState, 3] = ContainerState.CREATED
    created_at: Annotated[int, 4] = 0  # in nanoseconds, and so are the next two
    started_at: Annotated[int, 5] = 0
    finished_at: Annotated[int, 6] = 0
    exit_code: Annotated[int, 7] = 0
    image: Annotated[ImageSpec | None, 8] = None
    image_ref: Annotated[str, 9] = ""
    reason: Annotated[str, 10] = ""
    message: Annotated[str, 11] = ""
    labels: Annotated[dict[str, str], 12] = field(default_factory=dict)
    annotations: Annotated[dict[str, str], 13] = field(default_factory=dict)
    log_path: Annotated[str, 15] = ""


class ContainerStatusResponse(Message, frozen=True):
    status: Annotated[ContainerStatus | None, 1] = None


class ReopenContainerLogRequest(Message, frozen=True):
    container_id: Annotated[str, 1] = ""


class ReopenContainerLogResponse(Message, frozen=True):
    pass


class GetEventsRequest(Message, frozen=True):
    pass


class ContainerEventResponse(Message, frozen=True):
    container_id: Annotated[str, 1] = ""
    container_event_type: Annotated[EventType, 2] = EventType.CREATED
    created_at: Annotated[int, 3] = 0


# -- what happens in them -------------------------------------------------------------------------


class ExecSyncRequest(Message, frozen=True):
    container_id: Annotated[str, 1] = ""
    cmd: Annotated[tuple[str, ...], 2] = ()
    timeout: Annotated[int, 3] = 0  # in seconds; 0: none


class ExecSyncResponse(Message, frozen=True):
    stdout: Annotated[bytes, 1] = b""
    stderr: Annotated[bytes, 2] = b""
    exit_code: Annotated[int, 3] = 0


class ExecRequest(Message, frozen=True):
    container_id: Annotated[str, 1] = ""
    cmd: Annotated[tuple[str, ...], 2] = ()
    tty: Annotated[bool, 3] = False
    stdin: Annotated[bool, 4] = False
    stdout: Annotated[bool, 5] = False
    stderr: Annotated[bool, 6] = False


class ExecResponse(Message, frozen=True):
    url: Annotated[str, 1] = ""


class AttachRequest(Message, frozen=True):
    container_id: Annotated[str, 1] = ""
    stdin: Annotated[bool, 2] = False
    tty: Annotated[bool, 3] = False
    stdout: Annotated[bool, 4] = False
    stderr: Annotated[bool, 5] = False


class AttachResponse(Message, frozen=True):
    url: Annotated[str, 1] = ""


class PortForwardRequest(Message, frozen=True):
    pod_sandbox_id: Annotated[str, 1] = ""
    port: Annotated[tuple[int, ...], 2] = ()


class PortForwardResponse(Message, frozen=True):
    url: Annotated[str, 1] = ""


class ContainerStatsFilter(Message, frozen=True):
    id: Annotated[str, 1] = ""
    pod_sandbox_id: Annotated[str, 2] = ""
    label_selector: Annotated[dict[str, str], 3] = field(default_factory=dict)


class ListContainerStatsRequest(Message, frozen=True):
    filter: Annotated[ContainerStatsFilter | None, 1] = None


class ContainerAttributes(Message, frozen=True):
    id: Annotated[str, 1] = ""
    metadata: Annotated[ContainerMetadata | None, 2] = None
    labels: Annotated[dict[str, str], 3] = field(default_factory=dict)


class CpuUsage(Message, frozen=True):
    timestamp: Annotated[int, 1] = 0
    usage_core_nano_seconds: Annotated[UInt64Value | None, 2] = None


class MemoryUsage(Message, frozen=True):
    timestamp: Annotated[int, 1] = 0
    working_set_bytes: Annotated[UInt64Value | None, 2] = None


class ContainerStats(Message, frozen=True):
    attributes: Annotated[ContainerAttributes | None, 1] = None
    cpu: Annotated[CpuUsage | None, 2] = None
    memory: Annotated[MemoryUsage | None, 3] = None


class ListContainerStatsResponse(Message, frozen=True):
    stats: Annotated[tuple[ContainerStats, ...], 1] = ()


# -- images ---------------------------------------------------------------------------------------


class Image(Message, frozen=True):
    id: Annotated[str, 1] = ""
    repo_tags: Annotated[tuple[str, ...], 2] = ()
    repo_digests: Annotated[tuple[str, ...], 3] = ()
    size: Annotated[int, 4, UNSIGNED] = 0
    uid: Annotated[Int64Value | None, 5] = None  # whom it wants to run as, by number or by name
    username: Annotated[str, 6] = ""


class ImageStatusRequest(Message, frozen=True):
    image: Annotated[ImageSpec | None, 1] = None
    verbose: Annotated[bool, 2] = False


class ImageStatusResponse(Message, frozen=True):
    image: Annotated[Image | None, 1] = None  # None: there is none


class AuthConfig(Message, frozen=True):
    username: Annotated[str, 1] = ""
    password: Annotated[str, 2] = ""


class PullImageRequest(Message, frozen=True):
    image: Annotated[ImageSpec | None, 1] = None
    auth: Annotated[AuthConfig | None, 2] = None
    sandbox_config: Annotated[PodSandboxConfig | None, 3] = None


class PullImageResponse(Message, frozen=True):
    image_ref: Annotated[str, 1] = ""


_RUNTIME: Final = "runtime.v1.RuntimeService"
_IMAGES: Final = "runtime.v1.ImageService"

GET_VERSION: Final = Unary(_RUNTIME, "Version", VersionRequest, VersionResponse)
GET_STATUS: Final = Unary(_RUNTIME, "Status", StatusRequest, StatusResponse)
RUN_SANDBOX: Final = Unary(_RUNTIME, "RunPodSandbox", RunPodSandboxRequest, RunPodSandboxResponse)
STOP_SANDBOX: Final = Unary(_RUNTIME, "StopPodSandbox", StopPodSandboxRequest, StopPodSandboxResponse)
REMOVE_SANDBOX: Final = Unary(_RUNTIME, "RemovePodSandbox", RemovePodSandboxRequest, RemovePodSandboxResponse)
LIST_SANDBOXES: Final = Unary(_RUNTIME, "ListPodSandbox", ListPodSandboxRequest, ListPodSandboxResponse)
SANDBOX_STATUS: Final = Unary(_RUNTIME, "PodSandboxStatus", PodSandboxStatusRequest, PodSandboxStatusResponse)
CREATE: Final = Unary(_RUNTIME, "CreateContainer", CreateContainerRequest, CreateContainerResponse)
START: Final = Unary(_RUNTIME, "StartContainer", StartContainerRequest, StartContainerResponse)
STOP: Final = Unary(_RUNTIME, "StopContainer", StopContainerRequest, StopContainerResponse)
REMOVE: Final = Unary(_RUNTIME, "RemoveContainer", RemoveContainerRequest, RemoveContainerResponse)
LIST: Final = Unary(_RUNTIME, "ListContainers", ListContainersRequest, ListContainersResponse)
CONTAINER_STATUS: Final = Unary(_RUNTIME, "ContainerStatus", ContainerStatusRequest, ContainerStatusResponse)
REOPEN_LOG: Final = Unary(
    _RUNTIME, "ReopenContainerLog", ReopenContainerLogRequest, ReopenContainerLogResponse
)
EVENTS: Final = Streaming(_RUNTIME, "GetContainerEvents", GetEventsRequest, ContainerEventResponse)
EXEC_SYNC: Final = Unary(_RUNTIME, "ExecSync", ExecSyncRequest, ExecSyncResponse)
EXEC: Final = Unary(_RUNTIME, "Exec", ExecRequest, ExecResponse)
ATTACH: Final = Unary(_RUNTIME, "Attach", AttachRequest, AttachResponse)
PORT_FORWARD: Final = Unary(_RUNTIME, "PortForward", PortForwardRequest, PortForwardResponse)
STATS: Final = Unary(_RUNTIME, "ListContainerStats", ListContainerStatsRequest, ListContainerStatsResponse)
IMAGE_STATUS: Final = Unary(_IMAGES, "ImageStatus", ImageStatusRequest, ImageStatusResponse)
PULL: Final = Unary(_IMAGES, "PullImage", PullImageRequest, PullImageResponse)
