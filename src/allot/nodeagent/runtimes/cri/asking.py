"""What a runtime is asked for: a pod and its containers in the CRI's words. Pure.

Labels say whose everything is, under the names that kubelets use, so that other tools of the CRI show pods
and containers by their names; and under `ROOT` of which agent, so that several agents of one runtime leave
each other's alone (N5).
"""

from collections.abc import Mapping
from typing import Final

from msgspec.structs import replace

from allot.wire import cri

from ..contract import CannotStart, ContainerSpec, Limits, Mount, Profile, SandboxSpec

POD_NAME: Final = "io.kubernetes.pod.name"
POD_NAMESPACE: Final = "io.kubernetes.pod.namespace"
POD_UID: Final = "io.kubernetes.pod.uid"
CONTAINER: Final = "io.kubernetes.container.name"
ROOT: Final = "allot.dev/root"
CRASHES: Final = "allot.dev/crashes"  # annotations, and so are the next two
LOGS: Final = "allot.dev/log-directory"
NETWORK: Final = "allot.dev/network"
_HOST: Final = "host"

_FILE_NAME_MAX: Final = 255
CPU_PERIOD_US: Final = 100_000

MASKED: Final = (
    "/proc/asound",
    "/proc/acpi",
    "/proc/interrupts",
    "/proc/kcore",
    "/proc/keys",
    "/proc/latency_stats",
    "/proc/timer_list",
    "/proc/timer_stats",
    "/proc/sched_debug",
    "/proc/scsi",
    "/sys/firmware",
    "/sys/devices/virtual/powercap",
)
READ_ONLY: Final = ("/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger")
"""As kubelets ask for them: a runtime that is asked for none hides none."""

_PROFILES: Final = {
    "RuntimeDefault": cri.ProfileType.RUNTIME_DEFAULT,
    "Unconfined": cri.ProfileType.UNCONFINED,
    "Localhost": cri.ProfileType.LOCALHOST,
}
_PROPAGATIONS: Final = {
    "None": cri.Propagation.PRIVATE,
    "HostToContainer": cri.Propagation.HOST_TO_CONTAINER,
    "Bidirectional": cri.Propagation.BIDIRECTIONAL,
}


def own(root: str) -> dict[str, str]:
    return {ROOT: root}


def of_pod(root: str, pod_uid: str) -> dict[str, str]:
    return {ROOT: root, POD_UID: pod_uid}


def is_on_host(sandbox: cri.PodSandbox | cri.PodSandboxConfig) -> bool:
    """It has the machine's network."""
    return sandbox.annotations.get(NETWORK) == _HOST


def log_directory(pod: SandboxSpec, root: str) -> str:
    if pod.log_directory:
        return pod.log_directory
    room = _FILE_NAME_MAX - len(pod.namespace) - len(pod.pod_uid) - 2
    return f"{root}/logs/{pod.namespace}_{pod.name[:room]}_{pod.pod_uid}"


def log_path(container: ContainerSpec) -> str:
    """From the pod's log directory."""
    return f"{container.name}/{container.number}.log"


def sandbox(pod: SandboxSpec, root: str, attempt: int, *, has_network: bool) -> cri.PodSandboxConfig:
    """Without a network of its own for pods, a pod has the machine's."""
    is_host = pod.host_network or not has_network
    return cri.PodSandboxConfig(
        cri.PodSandboxMetadata(pod.name, pod.pod_uid, pod.namespace, attempt),
        "" if is_host else pod.hostname,  # with its network a pod has the machine's name
        log_directory(pod, root),
        {**pod.labels, **_labels(pod), ROOT: root},
        {**pod.annotations, LOGS: log_directory(pod, root), **({NETWORK: _HOST} if is_host else {})},
        cri.LinuxPodSandboxConfig(
            security_context=cri.LinuxSandboxSecurityContext(
                namespace_options=_namespaces(pod, is_host),
                run_as_user=_number(pod.user),
                supplemental_groups=pod.groups,
                run_as_group=_number(pod.group) if pod.user is not None else None,
                seccomp=cri.SecurityProfile(),  # nothing of a pod's own runs there
            ),
            sysctls=dict(pod.sysctls),
        ),
    )


def container(
    spec: ContainerSpec, root: str, image: cri.Image, sandbox: cri.PodSandboxConfig
) -> tuple[cri.ContainerConfig, cri.PodSandboxConfig]:
    """And the sandbox as it allows for this container: one that is privileged needs one that is too."""
    linux = sandbox.linux
    assert linux is not None and linux.security_context is not None
    config = cri.ContainerConfig(
        cri.ContainerMetadata(spec.name, spec.number),
        cri.ImageSpec(image.id, user_specified_image=spec.image),
        spec.command,
        spec.args,
        spec.directory,
        tuple(cri.KeyValue(name, value) for name, value in spec.env.items()),
        tuple(map(_mount, spec.mounts)),
        tuple(
            cri.Device(one.path, one.host_path or one.path, one.permissions or "rwm") for one in spec.devices
        ),
        {**_labels(spec.pod), CONTAINER: spec.name, ROOT: root},
        {**spec.annotations, CRASHES: str(spec.crashes)},
        log_path(spec),
        spec.stdin,
        spec.stdin_once,
        spec.tty,
        cri.LinuxContainerConfig(
            _resources(spec.limits), _security(spec, image, linux.security_context.namespace_options)
        ),
        tuple(cri.CdiDevice(name) for name in spec.cdi_devices),
    )
    security = replace(linux.security_context, privileged=spec.privileged)
    return config, replace(sandbox, linux=replace(linux, security_context=security))


def require_user(spec: ContainerSpec, image: cri.Image) -> None:
    """Raises CannotStart: one that must not be root would be, as far as anybody can know."""
    user = spec.user if spec.user is not None else spec.pod.user
    if not spec.must_not_be_root or user is not None:
        return
    if image.username:
        why = f"its image runs as {image.username!r}, which may be root; a runAsUser would say"
    elif image.uid is None or image.uid.value == 0:
        why = "its image runs as root"
    else:
        return
    raise CannotStart(f"container {spec.name} has runAsNonRoot, and {why}", "CreateContainerConfigError")


def _labels(pod: SandboxSpec) -> Mapping[str, str]:
    return {POD_NAME: pod.name, POD_NAMESPACE: pod.namespace, POD_UID: pod.pod_uid}


def _namespaces(pod: SandboxSpec, is_host: bool) -> cri.NamespaceOption:
    node, mode = cri.NamespaceMode.NODE, cri.NamespaceMode
    return cri.NamespaceOption(
        network=node if is_host else mode.POD,
        pid=node if pod.host_pid else mode.CONTAINER,
        ipc=node if pod.host_ipc else mode.POD,
    )


def _security(
    spec: ContainerSpec, image: cri.Image, namespaces: cri.NamespaceOption | None
) -> cri.LinuxContainerSecurityContext:
    user, username = _number(spec.user if spec.user is not None else spec.pod.user), ""
    group = spec.group if spec.group is not None else spec.pod.group
    if user is None and group is not None:  # the CRI takes a group with a user only: the image's
        user, username = image.uid, image.username
        if user is None and not username:
            user = cri.Int64Value(0)
    hides = spec.hides_proc and not spec.privileged
    return cri.LinuxContainerSecurityContext(
        cri.Capability(tuple(spec.capabilities_added), tuple(spec.capabilities_dropped)),
        spec.privileged,
        namespaces,
        user,
        username,
        spec.read_only_root,
        tuple(dict.fromkeys((*spec.pod.groups, *spec.groups))),
        no_new_privs=not spec.may_gain_rights,
        run_as_group=_number(group),
        masked_paths=MASKED if hides else (),
        readonly_paths=READ_ONLY if hides else (),
        seccomp=_profile(Profile("Unconfined") if spec.privileged else spec.seccomp),
        apparmor=_profile(spec.apparmor),
    )


def _profile(wanted: Profile | None) -> cri.SecurityProfile | None:
    return cri.SecurityProfile(_PROFILES[wanted.type], wanted.name) if wanted is not None else None


def _resources(limits: Limits) -> cri.LinuxContainerResources:
    return cri.LinuxContainerResources(
        cpu_period=CPU_PERIOD_US if limits.cpu_quota_us is not None else 0,
        cpu_quota=limits.cpu_quota_us or 0,
        cpu_shares=limits.cpu_shares or 0,
        memory_limit_in_bytes=limits.memory_bytes or 0,
        cpuset_cpus=limits.cpus,
    )


def _mount(mount: Mount) -> cri.Mount:
    return cri.Mount(
        mount.container_path,
        mount.host_path,
        mount.read_only,
        propagation=_PROPAGATIONS[mount.propagation],
    )


def _number(value: int | None) -> cri.Int64Value | None:
    return cri.Int64Value(value) if value is not None else None
