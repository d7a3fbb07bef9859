"""Connections that stop being HTTP: exec, attach and port-forward talk on them as they please.

What it promises
    UPGRADE1  A client that reads nothing, or sends more than is taken, costs a bounded amount of memory and
              holds up nobody but itself: the connection waits.
    UPGRADE2  However it ends, what talked hears of it: reading comes to an end, writing raises.
"""

import asyncio
from collections import deque
from contextlib import suppress
from typing import Any, cast

from uvicorn.protocols.http.httptools_impl import STATUS_LINE, RequestResponseCycle

from allot.api import Response

from .connection import Connection
from .sending import Scope, Send

READ_BYTES_MAX = 256 * 1024
"""What has come and was not taken yet. Beyond it, the client waits."""


async def send_upgraded(response: Response, send: Send, scope: Scope) -> None:
    """Answer with 101, let them talk, and close the connection."""
    assert response.talk is not None
    cycle: RequestResponseCycle = cast(Any, send).__self__
    connection: Connection = scope["extensions"]["allot.connection"]
    link = _Upgraded(connection, is_gone=cycle.disconnected)
    cycle.response_started = True
    try:
        lines = "".join(f"{name}: {value}\r\n" for name, value in response.headers)
        link.begin(STATUS_LINE[response.status] + lines.encode("latin-1", "replace") + b"\r\n")
        with suppress(ConnectionError):
            await response.talk(link)
        connection.transport.close()
    except asyncio.CancelledError:  # the server is closing, or the caller is shown out
        connection.abort()
    except BaseException:
        connection.abort()
        raise
    finally:
        cycle.response_complete = True


class _Upgraded(asyncio.Protocol):
    """Takes the place of the HTTP protocol on its connection, which goes on being counted there."""

    def __init__(self, connection: Connection, *, is_gone: bool) -> None:
        self._connection = connection
        self._transport = connection.transport
        self._is_gone = is_gone
        self._arrived: deque[bytes] = deque()
        self._size = 0
        self._news = asyncio.Event()
        self._flows = asyncio.Event()
        self._flows.set()

    def begin(self, head: bytes) -> None:
        if self._is_gone or self._transport.is_closing():
            self._is_gone = True
            return
        self._transport.set_protocol(self)
        self._transport.write(head)
        if early := self._connection.take_early():
            self.data_received(early)
        self._connection.flow.resume_reading()

    # -- what the event loop calls --------------------------------------------------------------

    def data_received(self, data: bytes) -> None:
        self._arrived.append(data)
        self._size += len(data)
        self._news.set()
        if self._size > READ_BYTES_MAX:
            self._connection.flow.pause_reading()

    def eof_received(self) -> None:
        self._end()

    def connection_lost(self, exc: Exception | None) -> None:
        self._end()
        self._connection.connection_lost(exc)

    def pause_writing(self) -> None:
        self._flows.clear()

    def resume_writing(self) -> None:
        self._flows.set()

    # -- what those who talk call ---------------------------------------------------------------

    async def read(self) -> bytes:
        while not self._arrived and not self._is_gone:
            self._news.clear()
            await self._news.wait()
        data = b"".join(self._arrived)
        self._arrived.clear()
        self._size = 0
        if not self._is_gone:
            self._connection.flow.resume_reading()
        return data

    async def write(self, data: bytes) -> None:
        if not self._is_gone:
            self._transport.write(data)
            await self._flows.wait()
        if self._is_gone:
            raise ConnectionResetError("the client has left")

    def _end(self) -> None:
        self._is_gone = True
        self._news.set()
        self._flows.set()
