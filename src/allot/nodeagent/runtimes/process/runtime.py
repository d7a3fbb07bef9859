"""Containers as processes of this machine: no image, no root.

A container sees the machine as it is, with variables of its own. What a CDI device adds is given as far as
that allows: its variables, and device nodes and mounts that are there already under the path at which the
container is to find them. Anything else is an error that says so; nothing is silently left out.

The shepherd (`shepherd`) has the processes, and outlives the agent (N5); what is known of them is on disk.
"""

import asyncio
import json
import os
import shutil
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from allot.base import unix_address
from allot.wire import cdi

from ..contract import Attempt, CannotStart, ContainerSpec
from . import shepherd

LOG_BYTES_MAX, LOG_FILES_MAX = 10 * 1024 * 1024, 5
_BEGIN_S = 20.0
_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


class ProcessRuntime:
    def __init__(
        self, root: Path, *, log_bytes_max: int = LOG_BYTES_MAX, log_files_max: int = LOG_FILES_MAX
    ) -> None:
        self._root = root
        self._log = {"log_bytes": log_bytes_max, "log_files": log_files_max}
        self._hear: list[Callable[[Attempt], None]] = []
        self._writer: asyncio.StreamWriter | None = None
        self._answers: dict[int, asyncio.Future[dict[str, Any]]] = {}
        self._asked = 0
        self._connecting = asyncio.Lock()
        self._listening: asyncio.Task[None] | None = None

    @asynccontextmanager
    async def attached(self) -> AsyncIterator["ProcessRuntime"]:
        """Containers go on when the block ends."""
        await self._connected()
        try:
            yield self
        finally:
            self._detach()

    # -- what a runtime does --------------------------------------------------------------------

    async def attempts(self) -> Sequence[Attempt]:
        await self._connected()  # whoever begins it has ended what was left (HERD3)
        return await asyncio.to_thread(self._read_all)

    async def start(self, container: ContainerSpec) -> Attempt:
        env = _environment(container)
        _require_possible(container)
        _require_found(container.command[0], env)
        name = f"{container.pod_uid}/{container.name}/{container.number}"
        wanted = {
            "container": name,
            "command": container.command,
            "env": env,
            "directory": container.directory,
            "crashes": container.crashes,
            **self._log,
        }
        answer = await self._ask({"do": "start", **wanted})
        if "error" in answer:
            raise CannotStart(str(answer["error"]))
        found = self._read(name)
        if found is None:
            raise CannotStart(f"container {container.name} left no trace in {self._root / name}")
        return found

    async def signal(self, attempt: Attempt, number: int) -> None:
        await self._ask({"do": "signal", "container": _name(attempt), "number": number})

    async def remove(self, pod_uid: str) -> None:
        await asyncio.to_thread(shutil.rmtree, self._root / pod_uid, ignore_errors=True)

    def changed(self, hear: Callable[[Attempt], None]) -> None:
        self._hear.append(hear)

    # -- what is on disk ------------------------------------------------------------------------

    def _read_all(self) -> list[Attempt]:
        found = (self._read(str(one.parent.relative_to(self._root))) for one in self._started())
        return [one for one in found if one is not None]

    def _started(self) -> Sequence[Path]:
        return sorted(self._root.glob(f"*/*/*/{shepherd.STARTED}"))

    def _read(self, name: str) -> Attempt | None:
        pod, container, number = name.split("/")
        directory = self._root / name
        started = _json(directory / shepherd.STARTED)
        if started is None:
            return None
        ended = _json(directory / shepherd.ENDED) or {}
        return Attempt(
            pod,
            container,
            int(number),
            started["started_at"],
            ended.get("finished_at"),
            ended.get("exit_code"),
            started["crashes"],
            str(directory / shepherd.LOG),
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
                continue
            finally:
                self._answers.pop(number, None)
        raise CannotStart("the shepherd of the containers ended while it was asked")

    async def _connected(self) -> asyncio.StreamWriter:
        async with self._connecting:
            if self._writer is not None:
                return self._writer
            end_s = asyncio.get_running_loop().time() + _BEGIN_S
            is_begun = False
            while True:
                try:
                    with unix_address(self._root / "shepherd.sock") as address:
                        reader, self._writer = await asyncio.open_unix_connection(address)
                    self._listening = asyncio.create_task(self._listen(reader), name="containers")
                    return self._writer
                except OSError as refused:
                    if asyncio.get_running_loop().time() > end_s:
                        why = f"the shepherd of the containers does not answer: {refused}"
                        raise CannotStart(why) from None
                    if not is_begun:
                        await asyncio.to_thread(self._begin)
                        is_begun = True
                    await asyncio.sleep(0.01)

    def _begin(self) -> None:
        """It leaves us at once, and goes on without us."""
        self._root.mkdir(parents=True, exist_ok=True, mode=0o750)
        with open(self._root / "shepherd.log", "ab") as said:
            subprocess.run(
                [sys.executable, "-I", "-S", shepherd.__file__, str(self._root)],
                stdin=subprocess.DEVNULL,
                stdout=said,
                stderr=said,
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


def _environment(container: ContainerSpec) -> dict[str, str]:
    """What the container asks for, and then what its devices add."""
    added = dict(one.partition("=")[::2] for one in container.edits.env)
    return {"PATH": _PATH, **container.env, **added}


def _require_found(command: str, env: Mapping[str, str]) -> None:
    if shutil.which(command, path=env.get("PATH", "")) is None and not os.path.exists(command):
        raise CannotStart(f"exec: {command!r}: executable file not found on this machine")


def _require_possible(container: ContainerSpec) -> None:
    """N4: what a device needs is given, or the container does not start."""
    edits = container.edits
    wrong = [
        *(f"device node {one.path}: {why}" for one in edits.device_nodes if (why := _missing_node(one))),
        *(f"mount at {one.container_path}: {why}" for one in edits.mounts if (why := _missing_mount(one))),
        *(f"hook {one.hook_name} {one.path}: it runs no hooks" for one in edits.hooks),
        *(f"group {one}: it changes no groups" for one in edits.additional_gids),
        *(["Intel RDT: it sets no classes of service"] if edits.intel_rdt is not None else ()),
    ]
    if wrong:
        raise CannotStart(f"the process runtime cannot do what a CDI device asks for: {'; '.join(wrong)}")


def _missing_node(node: cdi.DeviceNode) -> str:
    if node.host_path and node.host_path != node.path:
        return f"it is {node.host_path} on this machine, and paths stay as they are"
    return "" if os.path.exists(node.path) else "this machine has none"


def _missing_mount(mount: cdi.Mount) -> str:
    if mount.host_path != mount.container_path:
        return f"it is {mount.host_path} on this machine, and paths stay as they are"
    return "" if os.path.exists(mount.host_path) else "this machine has nothing there"
