"""Stories of a pod on a real containerd of its own."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import uuid4

from allot.nodeagent.runtimes import Attempt, ContainerSpec, CriRuntime
from allot.nodeagent.runtimes.contract import SandboxSpec
from allot.wire import UnixSockets
from containerd import IMAGE, Containerd

from ..plugins import until


def runtime_of(daemon: Containerd, root: Path | None = None, **more: Any) -> CriRuntime:
    return CriRuntime(str(daemon.socket), root or daemon.home / "agent", (daemon.cdi,), UnixSockets(), **more)


def script(text: str, pod: str, name: str = "main", number: int = 0, **more: Any) -> ContainerSpec:
    sandbox = SandboxSpec(pod, f"name-{pod[:8]}", "default", "host", **more.pop("sandbox", {}))
    more.setdefault("image", IMAGE)
    return ContainerSpec(sandbox, name, number, ("sh", "-c", text), **more)


def printed(attempt: Attempt) -> list[str]:
    """Without the times."""
    return [line.partition(" ")[2] for line in Path(attempt.log).read_text().splitlines()]


async def end_of(runtime: CriRuntime, attempt: Attempt) -> Attempt:
    found: list[Attempt] = []

    async def is_over() -> bool:
        found[:] = [one for one in await runtime.attempts() if one[:3] == attempt[:3]]
        return not found[0].runs

    await until(is_over)
    return found[0]


def tell(
    daemon: Containerd,
    play: Callable[[CriRuntime, str], Awaitable[None]],
    within_s: float = 120,
    **settings: Any,
) -> None:
    """One pod, which is removed in the end."""

    async def whole() -> None:
        async with runtime_of(daemon, **settings).attached() as runtime:
            pod = str(uuid4())
            try:
                await play(runtime, pod)
            finally:
                await runtime.remove(pod)

    asyncio.run(asyncio.wait_for(whole(), within_s))


@dataclass
class Typist:
    """The other end of a command, as a story has it."""

    typed: list[bytes] | None = None
    tty: bool = False
    sizes: list[tuple[int, int]] = field(default_factory=list)
    prompt: bytes = b""  # nothing is typed before that is printed
    keeps_open: bool = False  # there is more to be typed, which never is
    out: bytes = b""
    err: bytes = b""

    @property
    def stdin(self) -> AsyncIterator[bytes] | None:
        return self._stdin() if self.typed is not None else None

    async def _stdin(self) -> AsyncIterator[bytes]:
        await until(lambda: self.prompt in self.out)
        for piece in self.typed or ():
            yield piece
        if self.keeps_open:
            await asyncio.sleep(3600)

    @property
    def resizes(self) -> AsyncIterator[tuple[int, int]]:
        return self._resizes()

    async def _resizes(self) -> AsyncIterator[tuple[int, int]]:
        for size in self.sizes:
            yield size
        await asyncio.sleep(3600)

    async def write_out(self, data: bytes) -> None:
        self.out += data

    async def write_err(self, data: bytes) -> None:
        self.err += data
