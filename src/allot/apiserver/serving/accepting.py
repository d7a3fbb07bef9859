"""Connections are taken in, and their handshakes watched.

A connection is among the strangers from its first moment: also while it is in the handshake, which
anybody can begin. There are CONNECTIONS_MAX at most; when all are taken, one that waits for nothing
gives way to the new one.
"""

import asyncio
import contextlib
import errno
import logging
import resource
import socket
import ssl
import threading
from concurrent.futures import Future, InvalidStateError
from typing import Any

from .connection import Connection, Connections

log = logging.getLogger(__name__)

CONNECTIONS_MAX = 10_000
_FILES_FOR_OTHERS = 256
"""Of the files that the process may have open: for the store, and whoever else lives in it."""
_BACKLOG = 1024
_KERNEL_BYTES = 256 * 1024
"""What the kernel keeps for a connection in each direction. By itself it would take megabytes of an answer
that nobody reads, and of a body that waits for its turn."""
_HANDSHAKE_S = 10.0
LOOK_UP_S = 10.0
_CLOSING_S = 5.0
_OUT_OF_FILES_S = 0.1


class Accepting:
    """Takes connections from sockets until it is stopped."""

    def __init__(self, connections: Connections, context: ssl.SSLContext) -> None:
        self._connections = connections
        self._context = context
        self._sockets: list[socket.socket] = []
        self._tasks: set[asyncio.Task[None]] = set()
        self._most = min(CONNECTIONS_MAX, resource.getrlimit(resource.RLIMIT_NOFILE)[0] - _FILES_FOR_OTHERS)

    async def open(self, host: str, port: int) -> int:
        """Begin to listen. The port, if any was good enough. Raises OSError."""
        self._sockets = await _bound(host, port)
        loop = asyncio.get_running_loop()
        for listening in self._sockets:
            self._keep(loop.create_task(self._accept(listening), name="accepting"))
        return int(self._sockets[0].getsockname()[1])

    async def close(self) -> None:
        """Take no more, and give up handshakes that have been begun."""
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)
        for listening in self._sockets:
            listening.close()

    async def _accept(self, listening: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        while True:
            try:
                accepted, _ = await loop.sock_accept(listening)
            except OSError as full:
                log.warning("a connection cannot be taken: %s", full.strerror)
                await asyncio.sleep(_OUT_OF_FILES_S)
                continue
            if not self._has_room():
                accepted.close()
                continue
            task = loop.create_task(self._shake_hands(accepted))
            self._keep(task)
            self._connections.traffic.strangers.enter(accepted, task.cancel)

    async def _shake_hands(self, accepted: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        try:
            accepted.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            await loop.connect_accepted_socket(
                lambda: Connection(self._connections, accepted, loop),
                accepted,
                ssl=self._context,
                ssl_handshake_timeout=_HANDSHAKE_S,
                ssl_shutdown_timeout=_CLOSING_S,
            )
        except (OSError, asyncio.CancelledError):  # also what TLS and its patience say
            self._connections.traffic.strangers.leave(accepted)
            with contextlib.suppress(OSError):
                accepted.close()

    def _has_room(self) -> bool:
        taken = self._connections
        if len(taken.state.connections) + len(taken.traffic.strangers) < self._most:
            return True
        if taken.idle:
            next(iter(taken.idle)).abort()
        return bool(taken.idle)

    def _keep(self, task: asyncio.Task[None]) -> None:
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


async def _bound(host: str, port: int) -> list[socket.socket]:
    """A socket for each address of the host; all of them on one port."""
    sockets: list[socket.socket] = []
    try:
        for family, address in await _addresses(host, port):
            if port == 0 and sockets:
                address = (address[0], sockets[0].getsockname()[1], *address[2:])
            try:
                listening = socket.socket(family, socket.SOCK_STREAM)
            except OSError:
                continue  # the machine does not speak it
            sockets.append(listening)
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if family == socket.AF_INET6:
                listening.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _KERNEL_BYTES)
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _KERNEL_BYTES)
            listening.bind(address)
            listening.listen(_BACKLOG)
            listening.setblocking(False)
    except BaseException:
        for listening in sockets:
            listening.close()
        raise
    if not sockets:
        raise OSError(errno.EADDRNOTAVAIL, f"no address of {host or 'this machine'} can be listened on")
    return sockets


async def _addresses(host: str, port: int) -> list[tuple[int, tuple[Any, ...]]]:
    """In a thread that nobody waits for: a name server that does not answer would hold up the end of the
    process too."""
    looked_up: Future[list[Any]] = Future()

    def look_up() -> None:
        with contextlib.suppress(InvalidStateError):  # it took too long
            try:
                looked_up.set_result(
                    socket.getaddrinfo(host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
                )
            except OSError as unknown:
                looked_up.set_exception(unknown)

    threading.Thread(target=look_up, name=f"address of {host}", daemon=True).start()
    try:
        async with asyncio.timeout(LOOK_UP_S):
            found = await asyncio.wrap_future(looked_up)
    except TimeoutError:
        raise TimeoutError(errno.ETIMEDOUT, f"no address of {host} within {LOOK_UP_S:g} s") from None
    return list(dict.fromkeys((one[0], one[4]) for one in found))
