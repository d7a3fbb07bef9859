"""One look at a container: a command, a request, a connection, or a gRPC health check.

A pod that has an address of its own is asked there, as others would ask it. Into any other there is a way
(`Reaching`): the runtime, which knows the network of each pod. A look ends within its time with an outcome;
nothing that a container answers raises.
"""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import NamedTuple, Protocol

from . import grpc_health, http_get
from .dialing import Network, Streams
from .probes import Outcome
from .runtimes import Attempt, CannotStart, Executed
from .views import Container, Handler, Port

LOOPBACK = "localhost"
_PORT_MAX = 65535
OUTPUT_MAX = 10 * 1024


class Reaching(Protocol):
    """What is asked of a runtime here."""

    async def execute(self, attempt: Attempt, command: Sequence[str], timeout_s: float) -> Executed: ...

    async def connect(self, pod_uid: str, port: int) -> Streams: ...


class Looked(NamedTuple):
    """At what, and how."""

    attempt: Attempt
    container: Container
    handler: Handler
    timeout_s: float
    address: str = ""  # of a pod that the node reaches by its own; empty: by the runtime


class BadPort(Exception):
    pass


async def look(at: Looked, reaching: Reaching, network: Network) -> Outcome:
    try:
        async with asyncio.timeout(at.timeout_s):
            return await _look(at, reaching, network)
    except TimeoutError:
        return Outcome(False, f"no answer within {at.timeout_s:.0f} s")
    except (OSError, EOFError, BadPort, CannotStart, http_get.BadAnswer, grpc_health.BadAnswer) as wrong:
        return Outcome(False, str(wrong) or type(wrong).__name__)


async def _look(at: Looked, reaching: Reaching, network: Network) -> Outcome:
    handler = at.handler
    if handler.exec is not None:
        done = await reaching.execute(at.attempt, handler.exec.command, at.timeout_s)
        return Outcome(done.exit_code == 0, done.output[:OUTPUT_MAX].decode(errors="replace"))
    if handler.sleep is not None:
        await asyncio.sleep(handler.sleep.seconds)
        return Outcome(True)

    @asynccontextmanager
    async def opened(port: int, host: str) -> AsyncIterator[Streams]:
        to = host or at.address
        reader, writer = await (network.dial(to, port) if to else reaching.connect(at.attempt.pod_uid, port))
        try:
            yield reader, writer
        finally:
            writer.close()

    if handler.http_get is not None:
        asked = handler.http_get
        port = port_number(at.container, asked.port)
        async with opened(port, asked.host) as streams:
            if asked.scheme.upper() == "HTTPS":
                await network.secure(streams, asked.host or at.address)
            return await http_get.get(asked, asked.host or at.address or LOOPBACK, port, streams)
    if handler.tcp_socket is not None:
        async with opened(port_number(at.container, handler.tcp_socket.port), handler.tcp_socket.host):
            return Outcome(True)
    if handler.grpc is not None:
        async with opened(handler.grpc.port, "") as streams:
            return await grpc_health.check(handler.grpc, streams)
    return Outcome(True)


def port_number(container: Container, port: Port) -> int:
    """Raises BadPort."""
    if isinstance(port, str) and not port.isdecimal():
        found = next((one.container_port for one in container.ports if one.name == port), 0)
        if not found:
            raise BadPort(f"container {container.name} has no port that is called {port!r}")
        return found
    number = int(port)
    if not 0 < number <= _PORT_MAX:
        raise BadPort(f"there is no port {number}")
    return number
