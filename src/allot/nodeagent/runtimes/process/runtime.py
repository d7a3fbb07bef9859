"""Containers as processes of this machine: no image, no root.

A container has the machine's files, and beside them what is its own: variables, a /dev with what it was
granted and nothing else, processes, mounts, a hostname, limits, and a network if its pod wants one. As a
plain user all that is made with user namespaces. What the machine does not allow is said when the runtime
begins, and a container that asks for something that cannot be had does not start.

The shepherd (`shepherd`) has the processes, and outlives the agent (N5); what is known of them is on disk.
"""

import asyncio
import json
import logging
import os
import subprocess
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from allot.base import unix_address

from ..contract import (
    Addresses,
    Attempt,
    CannotStart,
    ContainerSpec,
    Executed,
    Report,
    SandboxSpec,
    Streams,
    Usage,
    unheard,
)
from . import asking, sessions, usage
from .shepherd import logs, main, processes, records

log = logging.getLogger(__name__)

LOG_BYTES_MAX, LOG_FILES_MAX = 10 * 1024 * 1024, 5
_OUTPUT_MAX = 1024 * 1024
_BEGIN_S = 20.0
_BEGIN_AGAIN_S = 0.5  # one that was killed may hold its lock for a moment


class ProcessRuntime:
    has_networks = False

    def __init__(
        self,
        root: Path,
        *,
        log_bytes_max: int = LOG_BYTES_MAX,
        log_files_max: int = LOG_FILES_MAX,
        user: int | None = None,
    ) -> None:
        """`user` has the containers, and so the directory; None: whoever runs this."""
        self._root = root
        self._user = user
        self._log = {"log_bytes": log_bytes_max, "log_files": log_files_max}
        self._hear: list[Callable[[Attempt], None]] = []
        self._writer: asyncio.StreamWriter | None = None
        self._answers: dict[int, asyncio.Future[dict[str, Any]]] = {}
        self._asked = 0
        self._connecting = asyncio.Lock()
        self._listening: asyncio.Task[None] | None = None
        self._complained: set[str] = set()  # pods whose limits nothing keeps

    @asynccontextmanager
    async def attached(self) -> AsyncIterator["ProcessRuntime"]:
        """Containers go on when the block ends."""
        can = await self.abilities()
        if can.missing:
            log.warning("containers of this node have %s", can.missing)
        try:
            yield self
        finally:
            self._detach()

    async def abilities(self) -> asking.Abilities:
        """What this machine allows."""
        await self._connected()
        return msgspec.json.decode((self._root / main.ABILITIES).read_bytes(), type=asking.Abilities)

    # -- what a runtime does --------------------------------------------------------------------

    async def attempts(self) -> Sequence[Attempt]:
        await self._connected()  # whoever begins it has ended what was left (HERD3)
        return await asyncio.to_thread(self._read_all)

    async def addresses(self) -> Mapping[str, Addresses]:
        return {}

    async def address(self, pod: SandboxSpec) -> Addresses:
        """One of its own has loopback, and what its devices bring: nobody is told of those."""
        return None

    async def start(self, container: ContainerSpec, report: Report = unheard) -> Attempt:
        can = await self.abilities()
        wanted = asking.wanted(container, can)
        self._complain(container, can)
        answer = await self._ask({"do": "start", **wanted, **self._log})
        if "error" in answer:
            raise CannotStart(str(answer["error"]), str(answer.get("reason") or "CreateContainerError"))
        found = self._read(wanted["container"])
        if found is None:
            raise CannotStart(f"container {container.name} left no trace in {self._root}")
        return found

    async def signal(self, attempt: Attempt, number: int) -> None:
        await self._ask({"do": "signal", "container": _name(attempt), "number": number})

    async def remove(self, pod_uid: str) -> None:
        self._complained.discard(pod_uid)
        await self._ask({"do": "remove", "pod": pod_uid})

    def changed(self, hear: Callable[[Attempt], None]) -> None:
        self._hear.append(hear)

    async def execute(self, attempt: Attempt, command: Sequence[str], timeout_s: float) -> Executed:
        streams = _Collected()
        async with asyncio.timeout(timeout_s):
            code = await self.stream(attempt, command, streams)
        return Executed(code, b"".join(streams.output))

    async def stream(self, attempt: Attempt, command: Sequence[str] | None, streams: Streams) -> int:
        await self._connected()
        try:
            async with sessions.opened(self._root) as session:
                if command is None:
                    return await sessions.attach(session, _name(attempt), streams)
                return await sessions.execute(session, _name(attempt), command, streams)
        except OSError as failed:
            raise CannotStart(f"container {attempt.name}: {failed}") from None

    async def connect(self, pod_uid: str, port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        await self._connected()
        async with sessions.opened(self._root) as session:
            found = await sessions.connect(session, pod_uid, port)
        if found is None:
            return await asyncio.open_connection("127.0.0.1", port)
        found.setblocking(False)
        return await asyncio.open_connection(sock=found)

    async def usage(self) -> Sequence[Usage]:
        return await asyncio.to_thread(self._usage)

    def _usage(self) -> list[Usage]:
        parents, found = processes.parents(), []
        for path in self._started():
            started = _json(path)
            if started is None or (path.parent / records.ENDED).exists():
                continue
            pod, name, _ = path.parent.relative_to(self._root).parts
            found.append(Usage(pod, name, *usage.used(started, parents)))
        return found

    def _complain(self, container: ContainerSpec, can: asking.Abilities) -> None:
        """Once a pod."""
        missing = asking.unlimited(container, can)
        if missing and container.pod_uid not in self._complained:
            self._complained.add(container.pod_uid)
            which = f"{container.pod.namespace}/{container.pod.name}"
            log.warning("pod %s runs without %s: nothing here gives it that", which, " and ".join(missing))

    # -- what is on disk ------------------------------------------------------------------------

    def _read_all(self) -> list[Attempt]:
        found = (self._read(str(one.parent.relative_to(self._root))) for one in self._started())
        return [one for one in found if one is not None]

    def _started(self) -> Sequence[Path]:
        return sorted(self._root.glob(f"*/*/*/{records.STARTED}"))

    def _read(self, name: str) -> Attempt | None:
        pod, container, number = name.split("/")
        directory = self._root / name
        started = _json(directory / records.STARTED)
        if started is None:
            return None
        ended = _json(directory / records.ENDED) or {}
        return Attempt(
            pod,
            container,
            int(number),
            started["started_at"],
            ended.get("finished_at"),
            ended.get("exit_code"),
            started["crashes"],
            str(directory / logs.LOG),
            ended.get("reason", ""),
            f"process://{name}",
        )

    # -- the shepherd ---------------------------------------------------------------------------

    async def _ask(self, what: Mapping[str, Any]) -> dict[str, Any]:
        """Once more, should the shepherd have ended under our eyes: every deed may be repeated."""
        for _ in range(2):
            writer = await self._connected()
            self._asked += 1
            number, answer = self._asked, asyncio.get_running_loop().create_future()
            self._answers[number] = answer
            try:
                writer.write(json.dumps({"id": number, **what}).encode() + b"\n")
                await writer.drain()
                return dict(await answer)
            except ConnectionError:
                if self._writer is writer and self._listening is not None:
                    await asyncio.wait((self._listening,), timeout=1.0)  # it is about to notice too
            finally:
                self._answers.pop(number, None)
        raise CannotStart("the shepherd of the containers ended while it was asked")

    async def _connected(self) -> asyncio.StreamWriter:
        async with self._connecting:
            if self._writer is not None:
                return self._writer
            now_s = asyncio.get_running_loop().time
            end_s, begin_s = now_s() + _BEGIN_S, now_s()
            while True:
                try:
                    reader, self._writer = await self._greeted()
                    self._listening = asyncio.create_task(self._listen(reader), name="containers")
                    return self._writer
                except OSError as refused:
                    if now_s() > end_s:
                        why = f"the shepherd of the containers does not answer: {refused}"
                        raise CannotStart(why) from None
                    if now_s() >= begin_s:
                        await asyncio.to_thread(self._begin)
                        begin_s = now_s() + _BEGIN_AGAIN_S
                    await asyncio.sleep(0.01)

    async def _greeted(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """With an answer: one that dies may still take a connection. Raises OSError."""
        with unix_address(self._root / "shepherd.sock") as address:
            reader, writer = await asyncio.open_unix_connection(address)
        try:
            writer.write(b'{"id": 0, "do": "greet"}\n')
            while "ended" in (told := json.loads(await reader.readline() or b'{"gone": true}')):
                self._ended(told["ended"])
            if "gone" in told:
                raise ConnectionResetError("it has ended")
        except BaseException:
            writer.close()
            raise
        return reader, writer

    def _begin(self) -> None:
        """It leaves us at once, and goes on without us."""
        self._root.mkdir(parents=True, exist_ok=True, mode=0o750)
        if self._user is not None:
            os.chown(self._root, self._user, self._user)
        with open(self._root / "shepherd.log", "ab") as said:
            subprocess.run(
                main.command(self._root, self._user),
                stdin=subprocess.DEVNULL,
                stdout=said,
                stderr=said,
                cwd="/",
                start_new_session=True,
                check=False,
            )

    async def _listen(self, reader: asyncio.StreamReader) -> None:
        try:
            while line := await reader.readline():
                told = json.loads(line)
                if "ended" in told:
                    self._ended(told["ended"])
                elif (answer := self._answers.get(told["id"])) is not None and not answer.done():
                    answer.set_result(told)
        except OSError:
            pass
        self._detach()
        for attempt in await asyncio.to_thread(self._read_all):
            self._tell(attempt)  # whatever ended meanwhile was told to nobody

    def _ended(self, name: str) -> None:
        attempt = self._read(name)
        if attempt is not None:
            self._tell(attempt)

    def _tell(self, attempt: Attempt) -> None:
        for hear in self._hear:
            hear(attempt)

    def _detach(self) -> None:
        if self._writer is not None:
            self._writer.close()
            self._writer = None
        for answer in self._answers.values():
            if not answer.done():
                answer.set_exception(ConnectionResetError())
        if self._listening is not None and self._listening is not asyncio.current_task():
            self._listening.cancel()
        self._listening = None


def _name(attempt: Attempt) -> str:
    return f"{attempt.pod_uid}/{attempt.name}/{attempt.number}"


def _json(path: Path) -> dict[str, Any] | None:
    try:
        return dict(json.loads(path.read_text()))
    except FileNotFoundError:
        return None


@dataclass
class _Collected:
    """What a command prints first, for whoever only wants to read it. The rest is read and dropped."""

    output: list[bytes] = field(default_factory=list)
    _room: int = _OUTPUT_MAX
    tty: bool = False
    stdin: AsyncIterator[bytes] | None = None
    resizes: AsyncIterator[tuple[int, int]] | None = None

    async def write_out(self, data: bytes) -> None:
        self.output.append(data[: self._room])
        self._room -= len(self.output[-1])

    async def write_err(self, data: bytes) -> None:
        await self.write_out(data)
