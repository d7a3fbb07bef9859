"""The node's own way out: connections to any host, and TLS that asks for no name.

A port with its real side. Whoever probes a container speaks TLS with it without asking who it is: its
certificate is for those who use it.
"""

import asyncio
import ssl
from typing import Protocol

Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class Network(Protocol):
    async def dial(self, host: str, port: int) -> Streams:
        """Raises OSError."""

    async def secure(self, streams: Streams, host: str) -> None:
        """From now on what is said is said over TLS. Raises OSError."""


class MachineNetwork:
    async def dial(self, host: str, port: int) -> Streams:
        try:
            return await asyncio.open_connection(host, port)
        except UnicodeError:
            raise OSError(f"{host!r} is no name of a host") from None

    async def secure(self, streams: Streams, host: str) -> None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
        await streams[1].start_tls(context, server_hostname=host or None)
