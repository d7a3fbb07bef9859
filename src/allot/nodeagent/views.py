"""What an agent reads of pods beside what a scheduler does (`api.core`): how containers are run."""

from collections.abc import Mapping
from typing import Any

import msgspec

from allot.api import meta

Port = int | str
"""A number, or the name of one of the container's ports."""


class ClaimUse(meta.View, frozen=True):
    name: str = ""
    request: str = ""


class Resources(meta.View, frozen=True):
    claims: tuple[ClaimUse, ...] = ()
    requests: Mapping[str, str] = {}
    limits: Mapping[str, str] = {}


# -- variables ----------------------------------------------------------------------------------


class FieldRef(meta.View, frozen=True):
    field_path: str = ""


class ResourceRef(meta.View, frozen=True):
    container_name: str = ""
    resource: str = ""
    divisor: str | int = "0"


class KeyRef(meta.View, frozen=True):
    name: str = ""
    key: str = ""
    optional: bool = False


class EnvSource(meta.View, frozen=True):
    """One of these is set, or one that is not known here."""

    field_ref: FieldRef | None = None
    resource_field_ref: ResourceRef | None = None
    config_map_key_ref: KeyRef | None = None
    secret_key_ref: KeyRef | None = None


class EnvVar(meta.View, frozen=True):
    name: str = ""
    value: str = ""
    value_from: EnvSource | None = None


# -- what is done to a container ----------------------------------------------------------------


class Exec(meta.View, frozen=True):
    command: tuple[str, ...] = ()


class Header(meta.View, frozen=True):
    name: str = ""
    value: str = ""


class HttpGet(meta.View, frozen=True):
    path: str = "/"
    port: Port = 0
    host: str = ""
    scheme: str = "HTTP"
    http_headers: tuple[Header, ...] = ()


class TcpSocket(meta.View, frozen=True):
    port: Port = 0
    host: str = ""


class Grpc(meta.View, frozen=True):
    port: int = 0
    service: str = ""


class Sleep(meta.View, frozen=True):
    seconds: int = 0


class Handler(meta.View, frozen=True):
    """One of these is set."""

    exec: Exec | None = None
    http_get: HttpGet | None = None
    tcp_socket: TcpSocket | None = None
    grpc: Grpc | None = None
    sleep: Sleep | None = None


class Probe(Handler, frozen=True):
    initial_delay_seconds: int = 0
    timeout_seconds: int = 1
    period_seconds: int = 10
    success_threshold: int = 1
    failure_threshold: int = 3
    termination_grace_period_seconds: int | None = None


class Lifecycle(meta.View, frozen=True):
    post_start: Handler | None = None
    pre_stop: Handler | None = None
    stop_signal: str = ""


class ExitCodes(meta.View, frozen=True):
    operator: str = ""
    values: tuple[int, ...] = ()


class RestartRule(meta.View, frozen=True):
    action: str = ""
    exit_codes: ExitCodes | None = None


# -- what a container has -----------------------------------------------------------------------


class VolumeMount(meta.View, frozen=True):
    name: str = ""
    mount_path: str = ""
    read_only: bool = False
    sub_path: str = ""
    sub_path_expr: str = ""
    mount_propagation: str = "None"


class ContainerPort(meta.View, frozen=True):
    name: str = ""
    container_port: int = 0


class Capabilities(meta.View, frozen=True):
    add: tuple[str, ...] = ()
    drop: tuple[str, ...] = ()


class SecurityProfile(meta.View, frozen=True):
    type: str = ""
    localhost_profile: str = ""


class Sysctl(meta.View, frozen=True):
    name: str = ""
    value: str = ""


class SecurityContext(meta.View, frozen=True):
    """Of a container, or of a pod for all of its containers."""

    run_as_user: int | None = None
    run_as_group: int | None = None
    run_as_non_root: bool | None = None
    fs_group: int | None = None
    supplemental_groups: tuple[int, ...] = ()
    privileged: bool = False
    allow_privilege_escalation: bool | None = None
    read_only_root_filesystem: bool = False
    capabilities: Capabilities = Capabilities()
    proc_mount: str = "Default"
    seccomp_profile: SecurityProfile | None = None
    app_armor_profile: SecurityProfile | None = None
    sysctls: tuple[Sysctl, ...] = ()


class Container(meta.View, frozen=True):
    name: str = ""
    image: str = ""
    image_pull_policy: str = ""
    command: tuple[str, ...] = ()
    args: tuple[str, ...] = ()
    working_dir: str = ""
    env: tuple[EnvVar, ...] = ()
    env_from: tuple[Mapping[str, Any], ...] = ()
    ports: tuple[ContainerPort, ...] = ()
    volume_mounts: tuple[VolumeMount, ...] = ()
    restart_policy: str | None = None  # of init containers; Always: a sidecar
    restart_policy_rules: tuple[RestartRule, ...] = ()
    resources: Resources = Resources()
    security_context: SecurityContext = SecurityContext()
    lifecycle: Lifecycle = Lifecycle()
    startup_probe: Probe | None = None
    readiness_probe: Probe | None = None
    liveness_probe: Probe | None = None
    termination_message_path: str = "/dev/termination-log"
    termination_message_policy: str = "File"
    stdin: bool = False
    stdin_once: bool = False
    tty: bool = False


# -- volumes ------------------------------------------------------------------------------------


class Item(meta.View, frozen=True):
    key: str = ""
    path: str = ""
    mode: int | None = None


class ConfigMapFiles(meta.View, frozen=True):
    """Of a volume, or of one source of a projected one; secrets have the same form there."""

    name: str = ""
    items: tuple[Item, ...] = ()
    default_mode: int | None = None
    optional: bool = False


class SecretFiles(meta.View, frozen=True):
    secret_name: str = ""
    items: tuple[Item, ...] = ()
    default_mode: int | None = None
    optional: bool = False


class FieldFile(meta.View, frozen=True):
    path: str = ""
    field_ref: FieldRef | None = None
    resource_field_ref: ResourceRef | None = None
    mode: int | None = None


class FieldFiles(meta.View, frozen=True):
    items: tuple[FieldFile, ...] = ()
    default_mode: int | None = None


class TokenFile(meta.View, frozen=True):
    audience: str = ""
    expiration_seconds: int = 3600
    path: str = ""


class Projection(meta.View, frozen=True):
    """One of these is set, or one that is not known here."""

    config_map: ConfigMapFiles | None = None
    secret: ConfigMapFiles | None = None
    downward_api: FieldFiles | None = msgspec.field(name="downwardAPI", default=None)
    service_account_token: TokenFile | None = None


class Projected(meta.View, frozen=True):
    sources: tuple[Projection, ...] = ()
    default_mode: int | None = None


class EmptyDir(meta.View, frozen=True):
    medium: str = ""  # or Memory, or HugePages
    size_limit: str | int | None = None


class HostPath(meta.View, frozen=True):
    path: str = ""
    type: str = ""


class Volume(meta.View, frozen=True):
    """One source is set, or one that is not known here."""

    name: str = ""
    config_map: ConfigMapFiles | None = None
    secret: SecretFiles | None = None
    downward_api: FieldFiles | None = msgspec.field(name="downwardAPI", default=None)
    projected: Projected | None = None
    empty_dir: EmptyDir | None = None
    host_path: HostPath | None = None


# -- pods ---------------------------------------------------------------------------------------


class LocalRef(meta.View, frozen=True):
    """Something of the pod's own namespace."""

    name: str = ""


class PodSpec(meta.View, frozen=True):
    containers: tuple[Container, ...] = ()
    init_containers: tuple[Container, ...] = ()
    ephemeral_containers: tuple[Container, ...] = ()
    volumes: tuple[Volume, ...] = ()
    restart_policy: str = ""
    active_deadline_seconds: int | None = None
    termination_grace_period_seconds: int = 30
    security_context: SecurityContext = SecurityContext()
    image_pull_secrets: tuple[LocalRef, ...] = ()
    service_account_name: str = ""
    automount_service_account_token: bool | None = None
    host_network: bool = False
    host_pid: bool = msgspec.field(name="hostPID", default=False)
    host_ipc: bool = msgspec.field(name="hostIPC", default=False)
    hostname: str = ""

    @property
    def every_container(self) -> tuple[Container, ...]:
        return (*self.init_containers, *self.containers, *self.ephemeral_containers)


class ContainerStatus(meta.View, frozen=True):
    name: str = ""
    ready: bool = False
    started: bool | None = None
    restart_count: int = 0


class PodStatus(meta.View, frozen=True):
    start_time: str = ""
    container_statuses: tuple[ContainerStatus, ...] = ()
    init_container_statuses: tuple[ContainerStatus, ...] = ()


class Pod(meta.View, frozen=True):
    spec: PodSpec = PodSpec()
    status: PodStatus = PodStatus()
