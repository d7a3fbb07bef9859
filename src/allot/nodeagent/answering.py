"""What the API server asks of a node: logs, commands, ports, usage. `serving` brings the questions."""

from collections.abc import Callable, Iterable

from allot.api import Duplex, Object, Request, Response, Talk, errors, streams, usage
from allot.base import Clock

from . import logs
from .machine import AgentMachine
from .runtimes import Attempt, Runtime, Streams
from .streams import Connection, Wanted, forward_ports, run_remotely
from .using import Using

PodOf = Callable[[str, str], Object | None]
"""By namespace and name."""


class Answering:
    def __init__(
        self, pod_of: PodOf, machine: AgentMachine, runtime: Runtime, using: Using, clock: Clock
    ) -> None:
        self._pod_of = pod_of
        self._machine = machine
        self._runtime = runtime
        self._using = using
        self._clock = clock

    async def answer(self, request: Request) -> Response:
        match request.path.strip("/").split("/"):
            case ["healthz"]:
                return Response(200, b"ok", "text/plain")
            case ["containerLogs", namespace, pod, container]:
                return self._logs(namespace, pod, container, request)
            case ["exec" | "attach" as way, namespace, pod, container]:
                return self._remote(way, namespace, pod, container, request)
            case ["portForward", namespace, pod]:
                return self._ports(namespace, pod, request)
            case ["usage"]:
                return Response(200, usage.encode(await self._using.now()))
        raise errors.NotFound(f"{request.path}: this node has nothing there")

    def _logs(self, namespace: str, name: str, container: str, request: Request) -> Response:
        want = logs.wanted(request.query, self._clock.now())
        pod = self._pod_of(namespace, name)
        path = self._machine.log_of(pod.uid, container, previous=want.previous) if pod is not None else None
        if pod is None or path is None:
            which = "previous terminated container" if want.previous else "container"
            raise errors.BadRequest(f'{which} "{container}" in pod "{name}" is not available: it has not run')
        uid = pod.uid

        def runs() -> bool:
            return not want.previous and self._machine.runs(uid, container)

        return Response(200, content_type="text/plain", stream=logs.printed(path, want, runs))

    def _remote(self, way: str, namespace: str, pod: str, container: str, request: Request) -> Response:
        """What goes wrong from here on is said on the connection: kubectl would take a refusal for an agent
        that speaks no WebSockets, and show that instead of the reason."""
        want = Wanted.of(request.query)
        command = list(request.values("command")) if way == "exec" else None

        async def run(ends: Streams) -> int:
            return await self._runtime.stream(self._running(namespace, pod, container), command, ends)

        async def talk(link: Duplex) -> None:
            await run_remotely(link, want, run)

        return _upgraded(request, streams.channels.PROTOCOLS, talk)

    def _running(self, namespace: str, name: str, container: str) -> Attempt:
        pod = self._pod_of(namespace, name)
        attempt = self._machine.running(pod.uid, container) if pod is not None else None
        if attempt is None:
            raise errors.BadRequest(f'container "{container}" in pod "{name}" does not run')
        return attempt

    def _ports(self, namespace: str, name: str, request: Request) -> Response:
        async def connect(port: int) -> Connection:
            pod = self._pod_of(namespace, name)
            if pod is None:
                raise errors.BadRequest(f'pod "{name}" is not on this node')
            return await self._runtime.connect(pod.uid, port)

        async def talk(link: Duplex) -> None:
            await forward_ports(link, name, connect)

        return _upgraded(request, (streams.spdy.PROTOCOL,), talk)


def _upgraded(request: Request, protocols: Iterable[str], talk: Talk) -> Response:
    """Raises BadRequest."""
    if not streams.websocket.is_asked_for(request.headers):
        raise errors.BadRequest("this is spoken over a WebSocket, and the request asks for none")
    try:
        headers = streams.websocket.accept(request.headers, protocols)
    except streams.websocket.Broken as wrong:
        raise errors.BadRequest(str(wrong)) from None
    return Response(101, headers=headers, talk=talk)
