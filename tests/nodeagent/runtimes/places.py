"""Runtimes that the shared suite runs on, each where it leaves nothing behind.

A place is a runtime with a directory that both its containers and the test see. Another runtime joins the
suite by its line in PLACES.
"""

import asyncio
import json
import os
import signal
import stat
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from allot.nodeagent.runtimes import (
    Attempt,
    ContainerSpec,
    CriRuntime,
    ProcessRuntime,
    Runtime,
    SandboxSpec,
)
from allot.nodeagent.runtimes.cri import asking
from allot.nodeagent.runtimes.process.shepherd import records
from allot.wire import UnixSockets, cdi
from containerd import IMAGE, Containerd

from ..plugins import until

NOBODY = 65534
FUSE = os.makedev(10, 229)


@dataclass
class Place:
    runtime: Runtime
    root: Path  # of the runtime
    shared: Path  # containers may write there
    card: str  # a device node of this machine that everybody may open, and that no container has by itself
    image: str = ""
    makes_nodes: bool = True  # device nodes that the machine has not
    keeps_limits: bool = True
    makes_networks: bool = True  # for pods; one with the machine's network has its name too
    ends_commands: bool = True  # that nobody is at the other end of any more
    ends_after_hooks: bool = False  # one whose hook fails inside has begun, and ended

    def script(self, text: str, *which: Any, **more: Any) -> ContainerSpec:
        return script(text, *which, image=self.image, **more)

    async def end_of(self, attempt: Attempt) -> Attempt:
        return await end_of(self.runtime, attempt)

    async def run(self, text: str, *which: Any, **more: Any) -> Attempt:
        """To its end."""
        return await self.end_of(await self.runtime.start(self.script(text, *which, **more)))

    async def output(self, text: str, *which: Any, **more: Any) -> list[str]:
        """What it printed, without the times; it must have ended well."""
        over = await self.run(text, *which, **more)
        assert over.exit_code == 0, (over, printed(over))
        return printed(over)


def printed(attempt: Attempt) -> list[str]:
    """Without the times."""
    return [line.partition(" ")[2] for line in Path(attempt.log).read_text().splitlines()]


@dataclass
class Typing:
    """Somebody at the other end of a command, who notes what comes."""

    tty: bool = False
    says: list[bytes] | None = None
    sizes: list[tuple[int, int]] = field(default_factory=list)
    hangs: bool = False  # its input does not end by itself
    out: bytes = b""
    err: bytes = b""

    @property
    def stdin(self) -> AsyncIterator[bytes] | None:
        return self._typed() if self.says is not None else None

    @property
    def resizes(self) -> AsyncIterator[tuple[int, int]] | None:
        return self._resized()

    async def _typed(self) -> AsyncIterator[bytes]:
        for one in self.says or ():
            yield one
        if self.hangs:
            await asyncio.sleep(3600)

    async def _resized(self) -> AsyncIterator[tuple[int, int]]:
        for one in self.sizes:
            yield one

    async def write_out(self, data: bytes) -> None:
        self.out += data

    async def write_err(self, data: bytes) -> None:
        self.err += data


# -- processes ------------------------------------------------------------------------------------


def lives(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def shepherd_of(root: Path) -> int:
    """0: there is none."""
    try:
        pid = int((root / "shepherd.lock").read_text())
    except (FileNotFoundError, ValueError):
        return 0
    return pid if lives(pid) else 0


def script(
    text: str, name: str = "main", number: int = 0, pod: SandboxSpec | str = "pod-1", **more: Any
) -> ContainerSpec:
    sandbox = SandboxSpec(pod) if isinstance(pod, str) else pod
    return ContainerSpec(sandbox, name, number, ("sh", "-c", text), **more)


async def end_of(runtime: Runtime, attempt: Attempt) -> Attempt:
    found: list[Attempt] = []

    async def is_over() -> bool:
        found[:] = [one for one in await runtime.attempts() if one[:3] == attempt[:3]]
        return not found[0].runs

    await until(is_over)
    return found[0]


def known_of(attempt: Attempt) -> dict[str, Any]:
    """What the shepherd has written down."""
    return dict(json.loads((Path(attempt.log).parent / records.STARTED).read_text()))


def pid_of(attempt: Attempt) -> int:
    """Of the first process in it."""
    return int(known_of(attempt)["pid"])


@asynccontextmanager
async def directory() -> AsyncIterator[Path]:
    """For a shepherd, whoever has it. What still runs there in the end is killed."""
    with tempfile.TemporaryDirectory(prefix="run") as folder:
        os.chmod(folder, 0o755)
        root = Path(folder) / "containers"
        try:
            yield root
        finally:
            async with ProcessRuntime(root).attached() as runtime:
                for one in await runtime.attempts():
                    if one.runs:
                        await runtime.signal(one, signal.SIGKILL)
                        await end_of(runtime, one)
                leaving = shepherd_of(root)
            os.kill(leaving, signal.SIGTERM)
            await until(lambda: not lives(leaving))


def card_in(directory: Path) -> str:
    if os.geteuid() != 0:
        return "/dev/fuse"
    card = directory / "card"
    os.mknod(card, stat.S_IFCHR | 0o666, FUSE)
    card.chmod(0o666)
    return str(card)


def _processes(user: int | None, **more: Any) -> Callable[..., AbstractAsyncContextManager[Place]]:
    @asynccontextmanager
    async def open_place(**settings: int) -> AsyncIterator[Place]:
        async with directory() as root:
            shared = root.parent / "shared"
            shared.mkdir(mode=0o777)
            os.chmod(shared, 0o777)
            async with ProcessRuntime(root, user=user, **settings).attached() as runtime:
                yield Place(runtime, root, shared, card_in(root.parent), **more)

    return open_place


# -- containers -----------------------------------------------------------------------------------

CONTAINERD, CONTAINERD_2 = "containers of containerd", "containers of containerd 2"
DAEMON: list[Containerd] = []
"""The one that the story is to have, while it is told (conftest.py)."""


class ContainerdPlace(Place):
    """Edits are handed over as CDI specs, as drivers do."""

    def script(self, text: str, *which: Any, **more: Any) -> ContainerSpec:
        edits = more.pop("edits", None)
        if edits is not None:
            name = f"d{time.monotonic_ns()}"
            spec = cdi.with_minimum_version(cdi.Spec("", "example.com/suite", (cdi.Device(name, edits),)))
            cdi.SpecDirectory(DAEMON[0].cdi).write(cdi.spec_file_name("example.com/suite", name), spec)
            more["cdi_devices"] = (f"example.com/suite={name}",)
        return super().script(text, *which, **more)


@asynccontextmanager
async def _containerd(**settings: int) -> AsyncIterator[Place]:
    daemon = DAEMON[0]
    with tempfile.TemporaryDirectory(prefix="run") as folder:
        root, shared = Path(folder) / "root", Path(folder) / "shared"
        shared.mkdir()
        shared.chmod(0o777)
        runtime = CriRuntime(str(daemon.socket), root, (daemon.cdi,), UnixSockets(), **settings)
        async with runtime.attached():
            try:
                card = card_in(Path(folder))
                less = {"makes_networks": False, "ends_commands": False, "ends_after_hooks": True}
                yield ContainerdPlace(runtime, root, shared, card, IMAGE, **less)
            finally:
                # Of a pod that could not be started there is a sandbox, and no attempt.
                for one in await runtime._service.sandboxes(asking.own(str(root))):
                    await runtime.remove(one.labels[asking.POD_UID])


_PLAIN = {"makes_nodes": False, "keeps_limits": False}
PLACES: Mapping[str, Callable[..., AbstractAsyncContextManager[Place]]] = (
    {
        "processes as root": _processes(None),
        "processes as a plain user": _processes(NOBODY, **_PLAIN),
        CONTAINERD: _containerd,
        CONTAINERD_2: _containerd,
    }
    if os.geteuid() == 0
    else {"processes as a plain user": _processes(None, **_PLAIN)}
)

Play = Callable[[Place], Awaitable[None]]


def tell(where: str, play: Play, within_s: float = 90, **settings: int) -> None:
    async def whole() -> None:
        async with PLACES[where](**settings) as place:
            await play(place)

    asyncio.run(asyncio.wait_for(whole(), within_s))
