"""The port: what the agent asks of a container runtime.

A container is started again under the next number; each of its runs is an attempt. What has ended stays known
until the pod is removed, however often the agent begins anew (N5).

What a runtime promises
    RUN1  `attempts` names every attempt that began and is not removed, whoever asked for it.
    RUN2  An attempt begins once: to start one that is there already changes nothing.
    RUN3  When an attempt has ended, nothing that it started is left.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple, Protocol

from allot.wire import cdi

NOTHING: Mapping[str, str] = MappingProxyType({})


class CannotStart(Exception):
    """The message says why, and what would help; the reason is what a container's state shows."""

    def __init__(self, message: str, reason: str = "CreateContainerError") -> None:
        super().__init__(message)
        self.reason = reason


class Login(NamedTuple):
    """At a registry."""

    name: str
    password: str

    def __repr__(self) -> str:
        return f"Login({self.name!r})"


class Profile(NamedTuple):
    """Of seccomp or AppArmor: what a container may ask of the kernel."""

    type: str  # RuntimeDefault, Localhost or Unconfined
    name: str = ""  # of Localhost: a path, or what AppArmor knows it by


class SandboxSpec(NamedTuple):
    """A pod, as a runtime needs it."""

    pod_uid: str
    name: str = ""
    namespace: str = ""
    hostname: str = ""  # "": the machine's
    log_directory: str = ""  # "": where the runtime keeps logs
    labels: Mapping[str, str] = NOTHING
    annotations: Mapping[str, str] = NOTHING
    host_network: bool = True  # False: a network of the pod's own, with a loopback interface
    host_pid: bool = False
    host_ipc: bool = False
    user: int | None = None
    group: int | None = None
    groups: tuple[int, ...] = ()
    sysctls: Mapping[str, str] = NOTHING


class Mount(NamedTuple):
    host_path: str
    container_path: str
    read_only: bool = False
    propagation: str = "None"  # or HostToContainer, Bidirectional
    is_optional: bool = False  # nobody asked for it: left out by a runtime that cannot mount


class Limits(NamedTuple):
    """As cgroups have them; None: no limit."""

    cpu_shares: int | None = None
    cpu_quota_us: int | None = None  # of every 100 ms
    memory_bytes: int | None = None
    cpus: str = ""  # a list of cpus as cpusets write it, "0-3,8"; "": any


class ContainerSpec(NamedTuple):
    pod: SandboxSpec
    name: str
    number: int  # of the attempt: 0, 1, ...
    command: tuple[str, ...] = ()  # (): the image's
    args: tuple[str, ...] = ()
    env: Mapping[str, str] = NOTHING
    image: str = ""
    directory: str = ""
    edits: cdi.ContainerEdits = cdi.ContainerEdits()  # for a runtime that applies them itself
    cdi_devices: tuple[str, ...] = ()  # the same by name, for a runtime that reads CDI specs
    mounts: tuple[Mount, ...] = ()
    devices: tuple[cdi.DeviceNode, ...] = ()  # what device plugins add
    limits: Limits = Limits()
    user: int | None = None  # None: the pod's
    group: int | None = None
    groups: tuple[int, ...] = ()  # beside the pod's
    read_only_root: bool = False
    privileged: bool = False
    capabilities_added: tuple[str, ...] = ()  # without CAP_; ALL: every one
    capabilities_dropped: tuple[str, ...] = ()
    may_gain_rights: bool = True  # False: nothing that it starts has more rights than it has
    must_not_be_root: bool = False
    hides_proc: bool = True  # what of /proc is the machine's alone
    seccomp: Profile | None = None  # None: whatever the runtime does when nobody asks
    apparmor: Profile | None = None
    tty: bool = False
    stdin: bool = False
    stdin_once: bool = False
    crashes: int = 0  # how many attempts before it ended at once, one after the other
    termination_message_path: str = ""
    annotations: Mapping[str, str] = NOTHING  # of the container, for a runtime that has such
    pull_policy: str = "IfNotPresent"  # or Always, Never
    logins: tuple[Login, ...] = ()  # of which one may be good for its image

    @property
    def pod_uid(self) -> str:
        return self.pod.pod_uid


class Attempt(NamedTuple):
    pod_uid: str
    name: str
    number: int
    started_at: float  # Unix time
    finished_at: float | None = None  # None: it runs
    exit_code: int | None = None
    crashes: int = 0
    log: str = ""  # where its output lies
    reason: str = ""  # of its end, where the runtime knows one: OOMKilled
    id: str = ""  # as a status shows it: process://…, containerd://…
    image_id: str = ""

    @property
    def runs(self) -> bool:
        return self.finished_at is None


class Executed(NamedTuple):
    exit_code: int
    output: bytes  # of both streams, as it came


class Usage(NamedTuple):
    pod_uid: str
    name: str  # of the container
    cpu_ns: int  # since it began
    memory_bytes: int  # of its working set


class Streams(Protocol):
    """The other end of a command in a container: whoever types, and reads."""

    @property
    def tty(self) -> bool: ...

    @property
    def stdin(self) -> AsyncIterator[bytes] | None: ...

    @property
    def resizes(self) -> AsyncIterator[tuple[int, int]] | None:
        """Columns and rows of the terminal."""

    async def write_out(self, data: bytes) -> None: ...

    async def write_err(self, data: bytes) -> None:
        """Never called with a terminal, which has one stream."""


Addresses = tuple[str, ...] | None
"""Of a pod in a network of its own, where others reach it; empty: that is gone. None: it has none such."""

Report = Callable[[str, str], None]
"""What becomes of a container's image: the reason of an event, and its message."""


def unheard(reason: str, message: str) -> None:
    """Nobody wants to know."""


class Runtime(Protocol):
    @property
    def has_networks(self) -> bool:
        """It connects the networks of pods, where the machine is set up for it: a pod may have its own."""

    async def attempts(self) -> Sequence[Attempt]:
        """RUN1."""

    async def addresses(self) -> Mapping[str, Addresses]:
        """Of every pod that has its own, as it stands."""

    async def address(self, pod: SandboxSpec) -> Addresses:
        """Of one pod, whose containers are about to start: its network is made, if it is not there. Raises
        CannotStart."""

    async def start(self, container: ContainerSpec, report: Report = unheard) -> Attempt:
        """RUN2. Makes what the pod needs, and gets the image. Raises CannotStart."""

    async def signal(self, attempt: Attempt, number: int) -> None:
        """To everything that the attempt started. One that has ended hears nothing."""

    async def remove(self, pod_uid: str) -> None:
        """Nothing of the pod runs, and nothing of it needs to be known."""

    def changed(self, hear: Callable[[Attempt], None]) -> None:
        """Call `hear` with each attempt that has ended."""

    async def execute(self, attempt: Attempt, command: Sequence[str], timeout_s: float) -> Executed:
        """Run a command in a container that runs. Raises TimeoutError, when it has been ended for taking too
        long, and CannotStart."""

    async def stream(self, attempt: Attempt, command: Sequence[str] | None, streams: Streams) -> int:
        """The same with somebody at the other end; None: the container's own process, whose streams these are
        beside the log. The exit code. Raises CannotStart."""

    async def connect(self, pod_uid: str, port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """To a port in the pod's own network. Raises OSError."""

    async def usage(self) -> Sequence[Usage]:
        """Of every container that runs."""
