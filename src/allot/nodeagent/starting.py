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
from .fields import Around
from .giving import cdi_ids, given
from .life import Next, Trouble
from .limits import limits_of
from .mounting import FailedMount, Volumes
from .preparing import Preparing
from .runtimes import CannotStart, ContainerSpec, Mount, SandboxSpec
from .views import Container, Pod, PodSpec

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
    ) -> None:
        self._place, self._preparing, self._lending = place, preparing, lending
        self._lookup, self._volumes, self._around = lookup, volumes, around

    async def make_volumes(self, pod: Object) -> None:
        """Raises FailedMount."""
        await self._volumes.make(pod, self._around())

    async def remove_volumes(self, uid: str) -> None:
        await self._volumes.remove(uid)

    async def refresh_volumes(self, pod: Object) -> None:
        await self._volumes.refresh(pod, self._around())

    async def spec(self, pod: Object, next: Next) -> ContainerSpec:
        """Raises what `trouble` knows."""
        container, spec = next.container, pod.view(Pod).spec
        _require_user(container, spec)
        devices = given(pod.view(core.Pod), container, self._preparing.heeded(pod.uid))
        env = await environment(pod, container, self._around(), self._lookup)
        lent = await self._lending.given(pod.uid, container.name)
        names = tuple(dict.fromkeys((*cdi_ids(devices), *lent.cdi_ids)))
        mounts = await asyncio.to_thread(self._mounts, pod, next, env)
        own, of_pod = container.security_context, spec.security_context
        return ContainerSpec(
            pod=self._sandbox(pod, spec),
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
            tty=container.tty,
            stdin=container.stdin,
            stdin_once=container.stdin_once,
            crashes=next.crashes,
            termination_message_path=container.termination_message_path,
            annotations=lent.annotations,
            pull_policy=container.image_pull_policy or "IfNotPresent",
        )

    def _sandbox(self, pod: Object, spec: PodSpec) -> SandboxSpec:
        return SandboxSpec(
            pod.uid,
            pod.name,
            pod.namespace,
            spec.hostname or pod.name,
            labels=pod.metadata.labels or {},
            annotations=pod.metadata.annotations or {},
            host_network=spec.host_network or not self._has_network(pod),
            host_pid=spec.host_pid,
            host_ipc=spec.host_ipc,
            user=spec.security_context.run_as_user,
            group=spec.security_context.run_as_group,
            groups=_groups(spec),
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


TROUBLES = (Never, BadEnvironment, errors.ApiError, FailedMount, CannotStart, cdi.Unresolvable, OSError)


def trouble(wrong: Exception, retry_at: float) -> Trouble:
    """Why a container waits, in the words of a kubelet."""
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


def _require_user(container: Container, spec: PodSpec) -> None:
    own, of_pod = container.security_context, spec.security_context
    must = own.run_as_non_root if own.run_as_non_root is not None else of_pod.run_as_non_root
    user = own.run_as_user if own.run_as_user is not None else of_pod.run_as_user
    if must and user == 0:
        raise Never(f"container {container.name}: runAsUser is 0, which breaks its runAsNonRoot policy")


def _groups(spec: PodSpec) -> tuple[int, ...]:
    own, context = spec.security_context.supplemental_groups, spec.security_context
    return (*own, context.fs_group) if context.fs_group is not None else own
