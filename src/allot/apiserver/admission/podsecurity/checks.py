"""What the levels of Pod Security forbid, one check a row. Pure.

A check is handed a pod's spec and metadata, and answers with what is wrong, by place, or with nothing.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

Fields = Mapping[str, Any]

ADDED_BASELINE: Final = frozenset(
    (
        "AUDIT_WRITE", "CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "KILL", "MKNOD", "NET_BIND_SERVICE",
        "SETFCAP", "SETGID", "SETPCAP", "SETUID", "SYS_CHROOT",
    )
)  # fmt: skip
SYSCTLS: Final[Mapping[str, int]] = {
    "kernel.shm_rmid_forced": 0,
    "net.ipv4.ip_local_port_range": 0,
    "net.ipv4.ip_unprivileged_port_start": 0,
    "net.ipv4.tcp_syncookies": 0,
    "net.ipv4.ping_group_range": 0,
    "net.ipv4.ip_local_reserved_ports": 27,
    "net.ipv4.tcp_keepalive_time": 29,
    "net.ipv4.tcp_fin_timeout": 29,
    "net.ipv4.tcp_keepalive_intvl": 29,
    "net.ipv4.tcp_keepalive_probes": 29,
    "net.ipv4.tcp_rmem": 32,
    "net.ipv4.tcp_wmem": 32,
}
"""Each with the minor version from which it counts as safe."""
SELINUX_TYPES: Final = ("", "container_t", "container_init_t", "container_kvm_t", "container_engine_t")
VOLUMES: Final = frozenset(
    (
        "configMap", "csi", "downwardAPI", "emptyDir", "ephemeral", "persistentVolumeClaim", "projected",
        "secret",
    )
)  # fmt: skip
APPARMOR: Final = "container.apparmor.security.beta.kubernetes.io/"


@dataclass(frozen=True, slots=True)
class Pod:
    spec: Fields
    annotations: Fields
    minor: int  # the version whose rules are asked for

    def containers(self) -> Iterator[Fields]:
        for name in ("initContainers", "containers", "ephemeralContainers"):
            yield from self.spec.get(name) or ()

    @property
    def is_windows(self) -> bool:
        return (self.spec.get("os") or {}).get("name") == "windows" and self.minor >= 25

    @property
    def context(self) -> Fields:
        return self.spec.get("securityContext") or {}


def context_of(container: Fields) -> Fields:
    return container.get("securityContext") or {}


@dataclass(frozen=True, slots=True)
class Check:
    level: str
    what: str  # begins the complaint
    find: Callable[[Pod], Iterator[str]]
    since: int = 0  # minor version


def complaints(level: str, pod: Pod) -> list[str]:
    """What is wrong with a pod by a level's rules."""
    levels = ("baseline",) if level == "baseline" else ("baseline", "restricted")
    found = []
    for check in CHECKS:
        if check.level in levels and check.since <= pod.minor:
            places = [*check.find(pod)]
            if places:
                found.append(f"{check.what} ({'; '.join(places)})")
    return found


def _named(names: Sequence[str], one: str = "container", many: str = "containers") -> str:
    quoted = ", ".join(f'"{name}"' for name in names)
    return f"{one if len(names) == 1 else many} {quoted}"


def _offenders(pod: Pod, wrong: Callable[[Fields], bool]) -> list[str]:
    return [one.get("name", "") for one in pod.containers() if wrong(one)]


# -- baseline ---------------------------------------------------------------------------------------


def _host_namespaces(pod: Pod) -> Iterator[str]:
    used = [f"{name}=true" for name in ("hostNetwork", "hostPID", "hostIPC") if pod.spec.get(name)]
    if used:
        yield ", ".join(used)


def _privileged(pod: Pod) -> Iterator[str]:
    names = _offenders(pod, lambda one: bool(context_of(one).get("privileged")))
    if names:
        yield f"{_named(names)} must not set securityContext.privileged=true"


def _capabilities(pod: Pod, allowed: frozenset[str]) -> Iterator[str]:
    def added(container: Fields) -> set[str]:
        return {*((context_of(container).get("capabilities") or {}).get("add") or ())} - allowed

    names = _offenders(pod, lambda one: bool(added(one)))
    if names:
        which = sorted(set().union(*(added(one) for one in pod.containers())))
        quoted = ", ".join(f'"{one}"' for one in which)
        yield f"{_named(names)} must not include {quoted} in securityContext.capabilities.add"


def _default_capabilities(pod: Pod) -> Iterator[str]:
    yield from _capabilities(pod, ADDED_BASELINE)


def _host_paths(pod: Pod) -> Iterator[str]:
    names = [one.get("name", "") for one in pod.spec.get("volumes") or () if one.get("hostPath") is not None]
    if names:
        yield _named(names, "volume", "volumes")


def _host_ports(pod: Pod) -> Iterator[str]:
    for one in pod.containers():
        ports = [str(port["hostPort"]) for port in one.get("ports") or () if port.get("hostPort")]
        if ports:
            word = "hostPort" if len(ports) == 1 else "hostPorts"
            yield f'container "{one.get("name", "")}" uses {word} {", ".join(ports)}'


def _probe_hosts(pod: Pod) -> Iterator[str]:
    def handlers(container: Fields) -> Iterator[Fields]:
        for name in ("livenessProbe", "readinessProbe", "startupProbe"):
            yield container.get(name) or {}
        for name in ("postStart", "preStop"):
            yield (container.get("lifecycle") or {}).get(name) or {}

    def names_host(container: Fields) -> bool:
        places = [one.get(how) or {} for one in handlers(container) for how in ("httpGet", "tcpSocket")]
        return any(one.get("host") for one in places)

    names = _offenders(pod, names_host)
    if names:
        yield f"{_named(names)} must not set a host in probes or lifecycle handlers"


def _apparmor(pod: Pod) -> Iterator[str]:
    def is_bad(profile: Fields | None) -> bool:
        return (profile or {}).get("type", "RuntimeDefault") not in ("RuntimeDefault", "Localhost")

    if is_bad(pod.context.get("appArmorProfile")):
        yield "pod must not set AppArmor profile type to Unconfined"
    names = _offenders(pod, lambda one: is_bad(context_of(one).get("appArmorProfile")))
    if names:
        yield f"{_named(names)} must not set AppArmor profile type to Unconfined"
    for key, value in sorted(pod.annotations.items()):
        is_safe = value in ("", "runtime/default") or str(value).startswith("localhost/")
        if key.startswith(APPARMOR) and not is_safe:
            yield f'annotation "{key}={value}"'


def _selinux(pod: Pod) -> Iterator[str]:
    for where, context in _contexts(pod):
        options = context.get("seLinuxOptions") or {}
        if (options.get("type") or "") not in SELINUX_TYPES:
            yield f'{where} set forbidden securityContext.seLinuxOptions: type "{options["type"]}"'
        for name in ("user", "role"):
            if options.get(name):
                yield f"{where} set forbidden securityContext.seLinuxOptions: {name} may not be set"


def _contexts(pod: Pod) -> Iterator[tuple[str, Fields]]:
    yield "pod", pod.context
    for one in pod.containers():
        yield f'container "{one.get("name", "")}"', context_of(one)


def _proc_mount(pod: Pod) -> Iterator[str]:
    names = _offenders(pod, lambda one: context_of(one).get("procMount") not in (None, "", "Default"))
    if names:
        yield f"{_named(names)} must not set securityContext.procMount"


def _unconfined(pod: Pod) -> Iterator[str]:
    for where, context in _contexts(pod):
        if (context.get("seccompProfile") or {}).get("type") == "Unconfined":
            yield f'{where} must not set securityContext.seccompProfile.type to "Unconfined"'


def _sysctls(pod: Pod) -> Iterator[str]:
    names = [one.get("name", "") for one in pod.context.get("sysctls") or ()]
    bad = [name for name in names if name not in SYSCTLS or SYSCTLS[name] > pod.minor]
    if bad:
        yield ", ".join(bad)


def _windows_host(pod: Pod) -> Iterator[str]:
    for where, context in _contexts(pod):
        if (context.get("windowsOptions") or {}).get("hostProcess"):
            yield f"{where} must not set securityContext.windowsOptions.hostProcess=true"


# -- restricted -------------------------------------------------------------------------------------


def _volume_types(pod: Pod) -> Iterator[str]:
    for one in pod.spec.get("volumes") or ():
        kinds = [name for name, value in one.items() if name != "name" and value is not None]
        for kind in kinds:
            if kind not in VOLUMES:
                yield f'volume "{one.get("name", "")}" uses restricted volume type "{kind}"'


def _privilege_escalation(pod: Pod) -> Iterator[str]:
    if pod.is_windows:
        return
    names = _offenders(pod, lambda one: context_of(one).get("allowPrivilegeEscalation") is not False)
    if names:
        yield f"{_named(names)} must set securityContext.allowPrivilegeEscalation=false"


def _non_root(pod: Pod) -> Iterator[str]:
    whole = pod.context.get("runAsNonRoot")
    if whole is False:
        yield "pod must not set securityContext.runAsNonRoot=false"
    explicit = _offenders(pod, lambda one: context_of(one).get("runAsNonRoot") is False)
    if explicit:
        yield f"{_named(explicit)} must not set securityContext.runAsNonRoot=false"
    silent = _offenders(pod, lambda one: context_of(one).get("runAsNonRoot") is None)
    if silent and whole is None:
        yield f"pod or {_named(silent)} must set securityContext.runAsNonRoot=true"


def _root_user(pod: Pod) -> Iterator[str]:
    if pod.context.get("runAsUser") == 0:
        yield "pod must not set runAsUser=0"
    names = _offenders(pod, lambda one: context_of(one).get("runAsUser") == 0)
    if names:
        yield f"{_named(names)} must not set runAsUser=0"


def _seccomp(pod: Pod) -> Iterator[str]:
    if pod.is_windows:
        return
    good = ("RuntimeDefault", "Localhost")

    def type_of(context: Fields) -> str | None:
        return (context.get("seccompProfile") or {}).get("type")

    silent = _offenders(pod, lambda one: type_of(context_of(one)) is None)
    if silent and type_of(pod.context) not in good:
        yield (
            f"pod or {_named(silent)} must set securityContext.seccompProfile.type"
            ' to "RuntimeDefault" or "Localhost"'
        )


def _all_dropped(pod: Pod) -> Iterator[str]:
    if pod.is_windows:
        return

    def keeps(container: Fields) -> bool:
        return "ALL" not in ((context_of(container).get("capabilities") or {}).get("drop") or ())

    names = _offenders(pod, keeps)
    if names:
        yield f'{_named(names)} must set securityContext.capabilities.drop=["ALL"]'
    yield from _capabilities(pod, frozenset({"NET_BIND_SERVICE"}))


CHECKS: Final = (
    Check("baseline", "forbidden AppArmor profile", _apparmor),
    Check("baseline", "non-default capabilities", _default_capabilities),
    Check("baseline", "host namespaces", _host_namespaces),
    Check("baseline", "hostPath volumes", _host_paths),
    Check("baseline", "hostPort", _host_ports),
    Check("baseline", "probe or lifecycle host", _probe_hosts, since=34),
    Check("baseline", "hostProcess", _windows_host),
    Check("baseline", "privileged", _privileged),
    Check("baseline", "procMount", _proc_mount),
    Check("baseline", "seLinuxOptions", _selinux),
    Check("baseline", "seccompProfile", _unconfined),
    Check("baseline", "forbidden sysctls", _sysctls),
    Check("restricted", "allowPrivilegeEscalation != false", _privilege_escalation, since=8),
    Check("restricted", "unrestricted capabilities", _all_dropped, since=22),
    Check("restricted", "restricted volume types", _volume_types),
    Check("restricted", "runAsNonRoot != true", _non_root),
    Check("restricted", "runAsUser=0", _root_user, since=23),
    Check("restricted", "seccompProfile", _seccomp, since=19),
)
