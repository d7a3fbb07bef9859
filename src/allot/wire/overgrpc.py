"""gRPC itself, for whoever has an address and credentials: `unixsocket` and `remote`.

Messages are made and read in `channel`; gRPC sees bytes. Each channel has a connection of its own,
which is opened again by itself, a second after it was lost at the latest.
"""

import asyncio
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final

# Nobody forks and goes on talking; gRPC would say so each time that a program is begun.
os.environ.setdefault("GRPC_ENABLE_FORK_SUPPORT", "0")

import grpc

from .channel import Asked, CallFailed, Code, Handler, Streaming, Told, Unary, as_failure, read

MESSAGE_BYTES_MAX: Final = 16 * 1024 * 1024

Options = Sequence[tuple[str, Any]]
OPTIONS: Final[Options] = [
    ("grpc.max_receive_message_length", MESSAGE_BYTES_MAX),
    ("grpc.max_send_message_length", MESSAGE_BYTES_MAX),
    ("grpc.use_local_subchannel_pool", 1),
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.min_reconnect_backoff_ms", 100),
    ("grpc.max_reconnect_backoff_ms", 1_000),
    ("grpc.enable_http_proxy", 0),
]


def dialled(address: str, target: str, options: Options, credentials: Any = None) -> "GrpcChannel":
    """`target` is the address as gRPC takes it; without credentials nothing is encrypted."""
    if credentials is None:
        return GrpcChannel(address, grpc.aio.insecure_channel(target, options=options))
    return GrpcChannel(address, grpc.aio.secure_channel(target, credentials, options=options))


def server_for(handlers: Iterable[Handler], options: Options) -> Any:
    """Not bound to any address yet."""
    server = grpc.aio.server(options=options)
    server.add_generic_rpc_handlers((_Handlers(handlers),))
    return server


def client_credentials(cert: bytes | None, key: bytes | None, cacert: bytes | None) -> Any:
    return grpc.ssl_channel_credentials(cacert, key, cert)


def server_credentials(cert: bytes | None, key: bytes | None, cacert: bytes | None) -> Any:
    """With an authority, only for callers that it vouches for."""
    return grpc.ssl_server_credentials([(key, cert)], cacert, require_client_auth=cacert is not None)


class GrpcChannel:
    def __init__(self, address: str, channel: Any) -> None:
        """`channel` is gRPC's own; `address` is what people call the other end."""
        self._address, self._closed = address, False
        self._channel = channel

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
            raise CallFailed(Code.CANCELLED, f"the channel to {self._address} is closed") from None


class GrpcServer:
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
