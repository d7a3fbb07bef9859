"""One connection to the shepherd for one thing: a command in a container, its own streams, a port of its pod.

The bytes do not pass the shepherd. It gets the open files of a command, or hands over a terminal or a
connection, and says how it ended; what is read and written is between the agent and the container.
"""

import asyncio
import contextlib
import errno
import fcntl
import json
import os
import socket
import struct
import termios
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from allot.base import unix_address

from ..contract import CannotStart, Streams

_READ = 64 * 1024
_PIPE_S = 1.0  # how long output may follow the end, where something else holds the pipe
_PIPE_BYTES = 1024 * 1024


class Session:
    def __init__(self, talk: socket.socket) -> None:
        self._talk = talk
        self._rest = b""
        self.files: list[int] = []  # that were handed over

    async def ask(self, files: Sequence[int], **what: Any) -> None:
        request = json.dumps({"id": 0, **what}).encode() + b"\n"
        sent = socket.send_fds(self._talk, [request], files)
        if sent < len(request):  # so much fits at once
            await asyncio.get_running_loop().sock_sendall(self._talk, request[sent:])

    async def answer(self) -> dict[str, Any]:
        """Raises ConnectionError."""
        while b"\n" not in self._rest:
            await _until_ready(self._talk.fileno())
            data, files, _, _ = socket.recv_fds(self._talk, _READ, 1)
            self.files += files
            if not data:
                raise ConnectionResetError("the shepherd of the containers has ended")
            self._rest += data
        line, _, self._rest = self._rest.partition(b"\n")
        return dict(json.loads(line))

    async def exit_code(self) -> int:
        """Raises CannotStart."""
        while True:
            said = await self.answer()
            if "exit" in said:
                return int(said["exit"])
            if "error" in said:
                raise CannotStart(str(said["error"]))


@asynccontextmanager
async def opened(root: Path) -> AsyncIterator[Session]:
    """When the block ends, so does what was begun in it. Raises OSError."""
    talk = socket.socket(socket.AF_UNIX)
    try:
        with unix_address(root / "shepherd.sock") as address:
            talk.connect(address)
        talk.setblocking(False)
        session = Session(talk)
        try:
            yield session
        finally:
            for file in session.files:
                with contextlib.suppress(OSError):
                    os.close(file)
    finally:
        talk.close()


async def execute(session: Session, container: str, command: Sequence[str], streams: Streams) -> int:
    if streams.tty:
        await session.ask([], do="execute", container=container, command=list(command), tty=True)
        await _running(session)
        return await _with_terminal(session, session.files[0], streams)
    out, write_out = os.pipe()
    err, write_err = os.pipe()
    read_in, write_in = os.pipe() if streams.stdin is not None else (os.open(os.devnull, os.O_RDONLY), -1)
    try:
        await session.ask(
            [read_in, write_out, write_err],
            do="execute",
            container=container,
            command=list(command),
            tty=False,
        )
    finally:
        for file in (read_in, write_out, write_err):
            os.close(file)
    return await _carried(session, streams, [(out, streams.write_out), (err, streams.write_err)], write_in)


async def attach(session: Session, container: str, streams: Streams) -> int:
    out, write_out = os.pipe()
    err, write_err = os.pipe()
    for file in (write_out, write_err):
        fcntl.fcntl(file, fcntl.F_SETPIPE_SZ, _PIPE_BYTES)
    try:
        await session.ask([write_out, write_err], do="attach", container=container)
    finally:
        for file in (write_out, write_err):
            os.close(file)
    await _running(session)
    stdin = session.files.pop() if session.files else -1
    resizing = None
    if stdin >= 0 and streams.tty and streams.resizes is not None:
        resizing = asyncio.create_task(_resize(os.dup(stdin), streams.resizes))
    try:
        return await _carried(session, streams, [(out, streams.write_out), (err, streams.write_err)], stdin)
    finally:
        if resizing is not None:
            resizing.cancel()


async def connect(session: Session, pod_uid: str, port: int) -> socket.socket | None:
    """None: the pod has the machine's network. Raises OSError."""
    await session.ask([], do="connect", pod=pod_uid, port=port)
    said = await session.answer()
    if said.get("is_of_machine"):
        return None
    if not session.files:
        number = int(said.get("exit", errno.ECONNREFUSED))
        raise OSError(number, os.strerror(number), f"port {port}")
    return socket.socket(fileno=session.files.pop())


async def _running(session: Session) -> None:
    said = await session.answer()
    if "error" in said:
        raise CannotStart(str(said["error"]))
    if "exit" in said:
        raise CannotStart(f"it ended at once with {said['exit']}")


Sink = Callable[[bytes], Awaitable[None]]


async def _carried(session: Session, streams: Streams, reading: list[tuple[int, Sink]], write_in: int) -> int:
    """Until it has ended and everything is read. Closes what it is given."""
    readers = [asyncio.create_task(_read(file, sink)) for file, sink in reading]
    writer = asyncio.create_task(_write(write_in, streams.stdin)) if write_in >= 0 else None
    try:
        code = await session.exit_code()
        await asyncio.wait(readers, timeout=_PIPE_S)
        return code
    finally:
        tasks = [*readers, *([writer] if writer is not None else [])]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _with_terminal(session: Session, master: int, streams: Streams) -> int:
    os.set_blocking(master, False)
    resizing = None
    if streams.resizes is not None:
        resizing = asyncio.create_task(_resize(os.dup(master), streams.resizes))
    try:
        return await _carried(session, streams, [(os.dup(master), streams.write_out)], os.dup(master))
    finally:
        if resizing is not None:
            resizing.cancel()
            await asyncio.gather(resizing, return_exceptions=True)


async def _read(file: int, sink: Sink) -> None:
    try:
        os.set_blocking(file, False)
        while True:
            try:
                data = os.read(file, _READ)
            except BlockingIOError:
                await _until_ready(file)
                continue
            except OSError:  # a terminal that nobody holds any more
                return
            if not data:
                return
            await sink(data)
    finally:
        os.close(file)


async def _write(file: int, source: AsyncIterator[bytes] | None) -> None:
    try:
        os.set_blocking(file, False)
        if source is not None:
            async for data in source:
                await _write_all(file, data)
    except OSError:
        pass  # nobody reads it any more
    finally:
        os.close(file)


async def _write_all(file: int, data: bytes) -> None:
    while data:
        try:
            data = data[os.write(file, data) :]
        except BlockingIOError:
            await _until_ready(file, to_write=True)


async def _resize(terminal: int, sizes: AsyncIterator[tuple[int, int]]) -> None:
    try:
        async for columns, rows in sizes:
            fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
    finally:
        os.close(terminal)


async def _until_ready(file: int, *, to_write: bool = False) -> None:
    loop = asyncio.get_running_loop()
    ready = loop.create_future()
    add, remove = (loop.add_writer, loop.remove_writer) if to_write else (loop.add_reader, loop.remove_reader)

    def tell() -> None:
        if not ready.done():
            ready.set_result(None)

    add(file, tell)
    try:
        await ready
    finally:
        remove(file)
