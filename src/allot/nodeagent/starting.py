"""Makes out of a container of a pod what a runtime is asked for, and out of what is wrong a reason to wait.

Volumes come first: no container begins before all that its pod mounts is there. Then its devices (N4), its
variables, and what it may use of the machine.
"""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from allot.api import Object, core, errors
from allot.base import Files
from allot.wire import cdi

from .deviceplugins import Lending
from .environment import BadEnvironment, Lookup, environment, expanded
from .fields import Around, hostname
from .giving import cdi_ids, given
from .life import FIRST_WAIT_S, Next, Trouble
from .limits import limits_of
from .logins import BadSecret, Entry, entries, logins_for
from .mounting import FailedMount, Volumes
from .preparing import Preparing
from .runtimes import Addresses, CannotStart, ContainerSpec, Login, Mount, Profile, SandboxSpec
from .telling import Telling
from .views import Container, Pod, PodSpec, SecurityProfile
from .volumes import data_of

NETWORK = "node.allot.dev/network"
"""An annotation: `own` gives a pod a network of its own, with loopback and what its devices bring."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a node is."""

    root: Path
    cdi_directories: tuple[Path, ...]
    address: str
    files: Files
    has_networks: bool = False  # a pod has a network of its own, and others reach it there

    @property
    def pods(self) -> Path:
        return self.root / "pods"

    def pod(self, uid: str) -> Path:
        return self.pods / f"{uid}.json"

    def message(self, uid: str, container: str, number: int) -> Path:
        """What an attempt leaves to be read."""
        return self.pods / uid / "containers" / container / str(number)


SAFE_SYSCTLS = frozenset(
    {
        "kernel.shm_rmid_forced",
        "net.ipv4.ip_local_port_range",
        "net.ipv4.ip_local_reserved_ports",
        "net.ipv4.ip_unprivileged_port_start",
        "net.ipv4.ping_group_range",
        "net.ipv4.tcp_fin_timeout",
        "net.ipv4.tcp_keepalive_intvl",
        "net.ipv4.tcp_keepalive_probes",
        "net.ipv4.tcp_keepalive_time",
        "net.ipv4.tcp_rmem",
        "net.ipv4.tcp_syncookies",
        "net.ipv4.tcp_wmem",
    }
)
"""Those of a pod's own namespaces, which kubelets let everybody set."""


class Never(Exception):
    """The container is written so that it cannot run here."""


class Starting:
    def __init__(
        self,
        place: Place,
        preparing: Preparing,
        lending: Lending,
        lookup: Lookup,
        volumes: Volumes,
        around: Callable[[], Around],
        telling: Telling,
    ) -> None:
        self._place, self._preparing, self._lending = place, preparing, lending
        self._lookup, self._volumes, self._around = lookup, volumes, around
        self._telling = telling

    async def make_volumes(self, pod: Object) -> None:
        """Raises FailedMount."""
        await self._volumes.make(pod, self._around())

    async def remove_volumes(self, uid: str) -> None:
        await self._volumes.remove(uid)

    async def oversized(self, pod: Object) -> str:
        return await self._volumes.oversized(pod)

    async def refresh_volumes(self, pod: Object) -> None:
        await self._volumes.refresh(pod, self._around())

    async def spec(self, pod: Object, next: Next, addresses: Addresses) -> ContainerSpec:
        """In a pod with these addresses. Raises what `trouble` knows."""
        container, spec = next.container, pod.view(Pod).spec
        _require_user(container, spec)
        devices = given(pod.view(core.Pod), container, self._preparing.heeded(pod.uid))
        around = self._around()._replace(own=addresses or ())
        env = await environment(pod, container, around, self._lookup)
        lent = await self._lending.given(pod.uid, container.name)
        names = tuple(dict.fromkeys((*cdi_ids(devices), *lent.cdi_ids)))
        mounts = await asyncio.to_thread(self._mounts, pod, next, env)
        logins = await self._logins(pod, container, spec)
        own, of_pod = container.security_context, spec.security_context
        return ContainerSpec(
            pod=self.sandbox(pod),
            name=container.name,
            number=next.number,
            image=container.image,
            command=tuple(expanded(word, env) for word in container.command),
            args=tuple(expanded(word, env) for word in container.args),
            env={**env, **lent.env},
            directory=container.working_dir,
            edits=await asyncio.to_thread(self._edits, names),
            cdi_devices=names,
            mounts=(*mounts, *lent.mounts),
            devices=lent.devices,
            limits=limits_of(container.resources),
            user=own.run_as_user if own.run_as_user is not None else of_pod.run_as_user,
            group=own.run_as_group if own.run_as_group is not None else of_pod.run_as_group,
            groups=_groups(spec),
            read_only_root=own.read_only_root_filesystem,
            privileged=own.privileged,
            capabilities_added=own.capabilities.add,
            capabilities_dropped=own.capabilities.drop,
            may_gain_rights=own.allow_privilege_escalation is not False,
            must_not_be_root=_must_not_be_root(container, spec),
            hides_proc=own.proc_mount != "Unmasked",
            seccomp=self._seccomp(own.seccomp_profile or of_pod.seccomp_profile),
            apparmor=_profile(own.app_armor_profile or of_pod.app_armor_profile),
            tty=container.tty,
            stdin=container.stdin,
            stdin_once=container.stdin_once,
            crashes=next.crashes,
            termination_message_path=container.termination_message_path,
            annotations=lent.annotations,
            pull_policy=container.image_pull_policy or "IfNotPresent",
            logins=logins,
        )

    async def _logins(self, pod: Object, container: Container, spec: PodSpec) -> tuple[Login, ...]:
        """Of the secrets that are there and hold some; of the others the pod is told, and may do without."""
        found, wrong = list[Entry](), list[str]()
        for ref in spec.image_pull_secrets:
            try:
                secret = await self._lookup("secrets", pod.namespace, ref.name)
                found += entries(data_of(secret.fields, is_secret=True))
            except (errors.NotFound, errors.Forbidden):
                wrong.append(f"{ref.name}: there is none")
            except BadSecret as why:
                wrong.append(f"{ref.name}: {why}")
        if wrong:
            self._telling.no_pull_secrets(pod, wrong)
        return logins_for(container.image, found)

    def _seccomp(self, wanted: SecurityProfile | None) -> Profile | None:
        found = _profile(wanted)
        if found is None or found.type != "Localhost":
            return found
        return found._replace(name=str(self._place.root / "seccomp" / found.name))

    def sandbox(self, pod: Object) -> SandboxSpec:
        """Raises Never."""
        spec = pod.view(Pod).spec
        _require_safe(spec)
        return SandboxSpec(
            pod.uid,
            pod.name,
            pod.namespace,
            hostname(pod),
            labels=pod.metadata.labels or {},
            annotations=pod.metadata.annotations or {},
            host_network=spec.host_network or not self._has_network(pod),
            host_pid=spec.host_pid,
            host_ipc=spec.host_ipc,
            user=spec.security_context.run_as_user,
            group=spec.security_context.run_as_group,
            groups=_groups(spec),
            sysctls={one.name: one.value for one in spec.security_context.sysctls},
        )

    def _has_network(self, pod: Object) -> bool:
        """Where nobody connects networks of pods, one of its own is for a pod that asks for it."""
        return self._place.has_networks or (pod.metadata.annotations or {}).get(NETWORK) == "own"

    def _mounts(self, pod: Object, next: Next, env: dict[str, str]) -> tuple[Mount, ...]:
        """And the file that it may leave a message in."""
        container, files = next.container, self._place.files
        found = self._volumes.mounts(pod, container, env)
        if not container.termination_message_path:
            return found
        path = self._place.message(pod.uid, container.name, next.number)
        if files.kind(path) is None:
            files.place_directory(path.parent, 0o755)
            files.place(path, b"", 0o666)
        return (*found, Mount(str(path), container.termination_message_path, is_optional=True))

    def _edits(self, names: Sequence[str]) -> cdi.ContainerEdits:
        if not names:
            return cdi.ContainerEdits()
        return cdi.catalogue(self._place.cdi_directories, self._place.files).edits(names)


_SOON_S = 1.0

TROUBLES = (Never, BadEnvironment, errors.ApiError, FailedMount, CannotStart, cdi.Unresolvable, OSError)


def trouble(wrong: Exception, now: float) -> Trouble:
    """Why a container waits, in the words of a kubelet.

    Whose image could not be pulled soon reads that it waits for that: the runtime decides when to pull again.
    """
    has_no_image = isinstance(wrong, CannotStart) and wrong.reason == "ErrImagePull"
    retry_at = now + (_SOON_S if has_no_image else FIRST_WAIT_S)
    match wrong:
        case Never():
            return Trouble("CreateContainerConfigError", str(wrong))
        case BadEnvironment() | errors.ApiError():
            return Trouble("CreateContainerConfigError", str(wrong), retry_at)
        case FailedMount():
            return Trouble("ContainerCreating", str(wrong), retry_at)
        case CannotStart():
            return Trouble(wrong.reason, str(wrong), retry_at)
        case _:
            return Trouble("CreateContainerError", str(wrong), retry_at)


def _must_not_be_root(container: Container, spec: PodSpec) -> bool:
    own, of_pod = container.security_context.run_as_non_root, spec.security_context.run_as_non_root
    return bool(own if own is not None else of_pod)


def _require_user(container: Container, spec: PodSpec) -> None:
    own, of_pod = container.security_context, spec.security_context
    user = own.run_as_user if own.run_as_user is not None else of_pod.run_as_user
    if _must_not_be_root(container, spec) and user == 0:
        raise Never(f"container {container.name}: runAsUser is 0, which breaks its runAsNonRoot policy")


def _require_safe(spec: PodSpec) -> None:
    unsafe = [one.name for one in spec.security_context.sysctls if one.name not in SAFE_SYSCTLS]
    if unsafe:
        raise Never(f"sysctls {', '.join(unsafe)}: others than this pod would feel them")


def _profile(wanted: SecurityProfile | None) -> Profile | None:
    return Profile(wanted.type, wanted.localhost_profile) if wanted is not None else None


def _groups(spec: PodSpec) -> tuple[int, ...]:
    own, context = spec.security_context.supplemental_groups, spec.security_context
    return (*own, context.fs_group) if context.fs_group is not None else own
