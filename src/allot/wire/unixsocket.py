"""Calls over unix sockets with gRPC: what kubelets and drivers speak.

Messages are made and read in `channel`; gRPC sees bytes. Each channel has a connection of its own,
which is opened again by itself, a second after it was lost at the latest.
"""

import asyncio
import os
import socket
import stat
from collections.abc import AsyncIterator, Awaitable, Callable, Hashable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

# Nobody forks and goes on talking; gRPC would say so each time that a program is begun.
os.environ.setdefault("GRPC_ENABLE_FORK_SUPPORT", "0")

import grpc

from allot.base import os_reason

from .channel import (
    Asked,
    CallFailed,
    Channel,
    Code,
    Handler,
    Server,
    Streaming,
    Told,
    Unary,
    as_failure,
    read,
)

ADDRESS_BYTES_MAX: Final = 107
"""Of a path: what the system takes for a unix socket's address."""
MESSAGE_BYTES_MAX: Final = 16 * 1024 * 1024

_OPTIONS: Final = [
    ("grpc.max_receive_message_length", MESSAGE_BYTES_MAX),
    ("grpc.max_send_message_length", MESSAGE_BYTES_MAX),
    ("grpc.use_local_subchannel_pool", 1),
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.min_reconnect_backoff_ms", 100),
    ("grpc.max_reconnect_backoff_ms", 1_000),
    ("grpc.enable_http_proxy", 0),
    ("grpc.default_authority", "localhost"),
]


class UnixSockets:
    def dial(self, path: str) -> Channel:
        return _Channel(path)

    async def serve(self, path: str, handlers: Iterable[Handler]) -> Server:
        await asyncio.to_thread(_make_way, path)
        server = grpc.aio.server(options=_OPTIONS)
        server.add_generic_rpc_handlers((_Handlers(handlers),))
        try:
            server.add_insecure_port(_target(path))
        except RuntimeError as refused:
            raise OSError(f"cannot listen at {path}: {refused}") from None
        await server.start()
        return _Server(path, server)

    def found(self, directory: str) -> Mapping[str, Hashable]:
        return dict(_found(directory))


def _found(top: str) -> Iterator[tuple[str, Hashable]]:
    """Whatever goes away under our eyes was not there; what lies deeper and may not be read is left alone,
    and so is a link that leads nowhere."""
    left = [""]
    while left:
        below = left.pop()
        for entry in _listed(top, below):
            name = os.path.join(below, entry.name)
            if entry.is_dir(follow_symlinks=False):
                left.append(name)
                continue
            with suppress(OSError):
                it = entry.stat(follow_symlinks=True)
                if stat.S_ISSOCK(it.st_mode):
                    yield name, (it.st_dev, it.st_ino, it.st_ctime_ns)


def _listed(top: str, below: str) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(os.path.join(top, below)) as listed:
            return [one for one in listed if not one.name.startswith(".")]
    except OSError as problem:
        if below or isinstance(problem, FileNotFoundError):
            return []
        raise


class _Channel:
    def __init__(self, path: str) -> None:
        self._path, self._closed = path, False
        self._channel = grpc.aio.insecure_channel(_target(path), options=_OPTIONS)

    @property
    def connected(self) -> bool:
        return bool(self._channel.get_state(try_to_connect=True) == grpc.ChannelConnectivity.READY)

    async def connection(self, other_than: bool) -> bool:
        while True:
            state = self._channel.get_state(try_to_connect=True)
            if (state == grpc.ChannelConnectivity.READY) != other_than:
                return not other_than
            await self._channel.wait_for_state_change(state)

    async def call(self, method: Unary[Asked, Told], request: Asked, *, timeout_s: float) -> Told:
        with self._failing():
            data = await self._channel.unary_unary(method.path)(request.encode(), timeout=timeout_s)
        return read(method.told, data)

    async def stream(self, method: Streaming[Asked, Told], request: Asked) -> AsyncIterator[Told]:
        with self._failing():
            call = self._channel.unary_stream(method.path)(request.encode())
            try:
                async for data in call:
                    yield read(method.told, data)
            finally:
                call.cancel()

    async def close(self) -> None:
        self._closed = True
        await self._channel.close()

    @contextmanager
    def _failing(self) -> Iterator[None]:
        """gRPC's failures in our words. A channel that closes cancels its calls, and not their callers."""
        try:
            yield
        except grpc.aio.AioRpcError as failed:
            raise CallFailed(Code(failed.code().value[0]), failed.details() or "") from None
        except (asyncio.CancelledError, grpc.aio.UsageError):
            task = asyncio.current_task()
            if not self._closed or (task is not None and task.cancelling()):
                raise
            raise CallFailed(Code.CANCELLED, f"the channel to {self._path} is closed") from None


class _Server:
    def __init__(self, path: str, server: Any) -> None:
        self.path = path
        self._server = server

    async def close(self, grace_s: float = 0) -> None:
        await self._server.stop(grace_s)


class _Handlers(grpc.GenericRpcHandler):  # type: ignore[misc]
    def __init__(self, handlers: Iterable[Handler]) -> None:
        self._by_path = {handler.path: _method(handler) for handler in handlers}

    def service(self, details: Any) -> Any:
        return self._by_path.get(details.method)


def _method(handler: Handler) -> Any:
    if handler.answer is not None:
        return grpc.unary_unary_rpc_method_handler(_unary(handler.path, handler.answer))
    assert handler.answers is not None
    return grpc.unary_stream_rpc_method_handler(_streaming(handler.path, handler.answers))


def _unary(path: str, answer: Callable[[bytes], Awaitable[bytes]]) -> Any:
    async def serve(data: bytes, context: Any) -> bytes:
        try:
            return await answer(data)
        except Exception as problem:
            await _refuse(path, problem, context)
            raise  # not reached: refusing ends the call

    return serve


def _streaming(path: str, answers: Callable[[bytes], AsyncIterator[bytes]]) -> Any:
    async def serve(data: bytes, context: Any) -> AsyncIterator[bytes]:
        try:
            async for piece in answers(data):
                yield piece
        except Exception as problem:
            await _refuse(path, problem, context)

    return serve


async def _refuse(path: str, problem: Exception, context: Any) -> None:
    failed = as_failure(path, problem)
    await context.abort(_GRPC_CODES[failed.code], failed.reason)


_GRPC_CODES: Final = {Code(code.value[0]): code for code in grpc.StatusCode}


def _target(path: str) -> str:
    """As gRPC takes it. Raises OSError.

    gRPC reads an address and not a path: it must not stop at a question mark, nor take a comma for the
    beginning of another address."""
    length = len(os.fsencode(path))
    if length > ADDRESS_BYTES_MAX:
        raise OSError(
            f"the path of the socket {path} has {length} bytes; the system takes {ADDRESS_BYTES_MAX}"
        )
    if "," in path or "\0" in path:
        raise OSError(f"the path of the socket {path!r} has a comma or a zero byte in it")
    return f"unix:{quote(os.fsencode(path))}"


def _make_way(path: str) -> None:
    """A socket that nobody answers at is what a killed process left."""
    _target(path)  # before anything is made
    Path(path).parent.mkdir(parents=True, exist_ok=True, mode=0o750)
    try:
        found = os.lstat(path)
    except FileNotFoundError:
        return
    if not stat.S_ISSOCK(found.st_mode):
        raise OSError(f"cannot listen at {path}: something that is not a socket is there")
    with socket.socket(socket.AF_UNIX) as probe:
        probe.settimeout(1)
        try:
            probe.connect(path)
        except (ConnectionRefusedError, FileNotFoundError):
            Path(path).unlink(missing_ok=True)
        except OSError as problem:
            raise OSError(f"cannot listen at {path}: {os_reason(problem)}") from None
        else:
            raise OSError(f"cannot listen at {path}: another process is listening there")
