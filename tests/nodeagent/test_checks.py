"""One look at a container, over real sockets."""

import asyncio
import ssl
from collections.abc import Awaitable, Callable, Sequence
from concurrent import futures
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any

import grpc
import pytest

from allot.apiserver.security.authority import Authority
from allot.nodeagent.checks import Looked, look
from allot.nodeagent.dialing import MachineNetwork
from allot.nodeagent.grpc_health import frame, health_status
from allot.nodeagent.http_get import request
from allot.nodeagent.probes import Outcome
from allot.nodeagent.runtimes import Attempt, Executed
from allot.nodeagent.views import (
    Container,
    ContainerPort,
    Exec,
    Grpc,
    Handler,
    Header,
    HttpGet,
    Sleep,
    TcpSocket,
)

HERE = "127.0.0.1"


class Pod:
    """As a runtime whose pods are in the network of the machine."""

    def __init__(self, *executed: Executed, takes_s: float = 0.0) -> None:
        self._executed, self._takes_s = list(executed), takes_s
        self.commands: list[Sequence[str]] = []

    async def execute(self, attempt: Attempt, command: Sequence[str], timeout_s: float) -> Executed:
        self.commands.append(command)
        await asyncio.sleep(self._takes_s)
        return self._executed.pop(0)

    async def connect(self, pod_uid: str, port: int) -> Any:
        return await asyncio.open_connection(HERE, port)


async def looked(
    handler: Handler, pod: Pod | None = None, timeout_s: float = 20.0, address: str = ""
) -> Outcome:
    container = Container(name="main", ports=(ContainerPort(name="web", container_port=8080),))
    at = Looked(Attempt("u", "main", 0, 0.0), container, handler, timeout_s, address)
    return await look(at, pod or Pod(), MachineNetwork())


@asynccontextmanager
async def serving(answer: bytes | None, tls: ssl.SSLContext | None = None, host: str = HERE):
    """Answers whatever it is asked, and keeps it."""
    heard: list[bytes] = []

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if answer is not None:
            heard.append(await reader.readuntil(b"\r\n\r\n"))
            writer.write(answer)
            await writer.drain()
        else:
            await reader.read()
        writer.close()

    server = await asyncio.start_server(talk, host, 0, ssl=tls)
    async with server:
        yield server.sockets[0].getsockname()[1], heard


def run(story: Callable[[], Awaitable[None]]) -> None:
    asyncio.run(asyncio.wait_for(story(), 60))


@pytest.mark.parametrize(
    ("status", "is_good"), [(200, True), (204, True), (302, True), (399, True), (400, False), (500, False)]
)
def test_a_request_is_good_from_200_to_399(status, is_good):
    async def story() -> None:
        async with serving(b"HTTP/1.1 %d Whatever\r\nContent-Length: 0\r\n\r\n" % status) as (port, heard):
            outcome = await looked(Handler(http_get=HttpGet(path="/ok", port=port)))
        assert outcome.is_good is is_good
        assert heard[0].startswith(b"GET /ok HTTP/1.1\r\n")
        if not is_good:
            assert outcome.message == f"HTTP probe failed with statuscode: {status}"

    run(story)


def test_a_request_says_who_asks_unless_the_probe_says_so():
    plain = request(HttpGet(path="ok", port=80), "localhost", 80).decode()
    assert (
        "GET /ok HTTP/1.1" in plain and "User-Agent: kube-probe/" in plain and "Host: localhost:80" in plain
    )
    headers = (Header(name="user-agent", value="me"), Header(name="Host", value="site"))
    own = request(HttpGet(http_headers=headers), "10.0.0.2", 80).decode()
    assert b"Host: [fd00::2]:80\r\n" in request(HttpGet(), "fd00::2", 80)
    assert "kube-probe" not in own and "Host: site" in own and own.count("Host:") == 1


def test_https_is_spoken_with_any_certificate(tmp_path):
    now = datetime.now(UTC)
    pair = Authority.create(now).client("nobody that was asked for", (), now)
    (tmp_path / "cert").write_bytes(pair.certificate)
    (tmp_path / "key").write_bytes(pair.key)
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(tmp_path / "cert", tmp_path / "key")

    async def story() -> None:
        async with serving(b"HTTP/1.1 200 OK\r\n\r\n", tls) as (port, heard):
            assert (await looked(Handler(http_get=HttpGet(port=port, scheme="HTTPS")))).is_good
            assert not (await looked(Handler(http_get=HttpGet(port=port)))).is_good, "it speaks TLS alone"
        assert len(heard) == 1

    run(story)


def test_whatever_a_container_answers_is_an_outcome():
    """One that answered without end had its probe end instead, which then never killed it."""

    async def story() -> None:
        async with serving(b"x" * 200_000) as (port, _):
            outcome = await looked(Handler(http_get=HttpGet(port=port)))
            assert not outcome.is_good and "no end" in outcome.message
        padded = frame(0, 0x9, 1, b"")
        endless = frame(0, 0, 1, b"x" * 60_000) * 3
        for answer in (padded, endless, b"\x00" * 100, b"junk" * 100):
            async with answering(answer) as port:
                assert not (await looked(Handler(grpc=Grpc(port=port)), timeout_s=5)).is_good

    run(story)


@asynccontextmanager
async def answering(answer: bytes):
    """The same to everybody, whatever they ask."""

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1000)
        writer.write(answer)
        writer.close()

    async with await asyncio.start_server(talk, HERE, 0) as server:
        yield server.sockets[0].getsockname()[1]


def test_a_host_or_port_that_cannot_be_is_an_outcome():
    async def story() -> None:
        for host in ("a..b", "a" * 300, "."):
            outcome = await looked(Handler(tcp_socket=TcpSocket(port=80, host=host)))
            assert not outcome.is_good and outcome.message
        for port in (0, 70000, "99999999999"):
            outcome = await looked(Handler(tcp_socket=TcpSocket(port=port, host=HERE)))
            assert outcome == Outcome(False, f"there is no port {port}")

    run(story)


def test_what_is_no_http_is_told():
    async def story() -> None:
        async with serving(b"SSH-2.0-OpenSSH\r\n") as (port, _):
            outcome = await looked(Handler(http_get=HttpGet(port=port)))
        assert not outcome.is_good and "malformed HTTP response" in outcome.message

    run(story)


def test_a_port_may_be_named_and_one_that_is_not_there_is():
    async def story() -> None:
        outcome = await looked(Handler(tcp_socket=TcpSocket(port="none")))
        assert outcome == Outcome(False, "container main has no port that is called 'none'")
        async with serving(None) as (port, _):
            assert (await looked(Handler(tcp_socket=TcpSocket(port=str(port))))).is_good
            assert (await looked(Handler(tcp_socket=TcpSocket(port=port, host=HERE)))).is_good

    run(story)


def test_where_nobody_listens_there_is_no_connection():
    async def story() -> None:
        async with serving(None) as (port, _):
            pass
        for handler in (
            Handler(tcp_socket=TcpSocket(port=port)),
            Handler(http_get=HttpGet(port=port)),
            Handler(grpc=Grpc(port=port)),
        ):
            assert not (await looked(handler)).is_good

    run(story)


def test_who_does_not_answer_in_time_has_failed():
    async def story() -> None:
        async with serving(None) as (port, _):
            for handler in (Handler(http_get=HttpGet(port=port)), Handler(grpc=Grpc(port=port))):
                outcome = await looked(handler, timeout_s=0.3)
                assert not outcome.is_good and outcome.message.startswith("no answer within")
        outcome = await looked(Handler(exec=Exec(command=("true",))), Pod(takes_s=30.0), timeout_s=0.3)
        assert not outcome.is_good

    run(story)


def test_a_command_is_good_when_it_ends_with_0_and_its_output_is_told():
    async def story() -> None:
        pod = Pod(Executed(0, b"fine\n"), Executed(3, b"broken\n"))
        handler = Handler(exec=Exec(command=("check", "it")))
        assert await looked(handler, pod) == Outcome(True, "fine\n")
        assert await looked(handler, pod) == Outcome(False, "broken\n")
        assert pod.commands == [("check", "it")] * 2

    run(story)


def test_to_sleep_takes_its_time():
    async def story() -> None:
        began_s = asyncio.get_running_loop().time()
        assert (await looked(Handler(sleep=Sleep(seconds=1)))).is_good
        assert asyncio.get_running_loop().time() - began_s >= 0.99

    run(story)


def test_a_pod_with_an_address_of_its_own_is_asked_there():
    """And not where the runtime would reach it; a probe that names a host asks that."""
    there = "127.0.0.2"

    async def story() -> None:
        async with serving(b"HTTP/1.1 200 OK\r\n\r\n", host=there) as (port, heard):
            asked = HttpGet(port=port)
            assert (await looked(Handler(http_get=asked), address=there)).is_good
            assert b"Host: 127.0.0.2:%d\r\n" % port in heard[0]
            assert not (await looked(Handler(http_get=asked))).is_good
            named = HttpGet(port=port, host=there)
            assert (await looked(Handler(http_get=named), address=HERE)).is_good
            assert (await looked(Handler(tcp_socket=TcpSocket(port=port)), address=there)).is_good
            assert not (await looked(Handler(tcp_socket=TcpSocket(port=port)), address=HERE)).is_good
        async with grpc_server({"": 1}, host=there) as port:
            assert (await looked(Handler(grpc=Grpc(port=port)), address=there)).is_good
            assert not (await looked(Handler(grpc=Grpc(port=port)))).is_good

    run(story)


# -- gRPC, against the real library ----------------------------------------------------------------


@asynccontextmanager
async def grpc_server(statuses: dict[str, int] | None, host: str = HERE):
    """`statuses` by service; None: a server without a health service."""

    def check(asked: bytes, context: grpc.ServicerContext) -> bytes:
        service = asked[3 if len(asked) > 129 else 2 :].decode() if asked else ""
        if statuses is None or service not in statuses:
            context.abort(grpc.StatusCode.NOT_FOUND, "unknown service")
        status = statuses[service]
        return bytes([0x08, status]) if status else b""

    server = grpc.server(futures.ThreadPoolExecutor(2))
    if statuses is not None:
        handler = grpc.unary_unary_rpc_method_handler(check)
        server.add_generic_rpc_handlers(
            [grpc.method_handlers_generic_handler("grpc.health.v1.Health", {"Check": handler})]
        )
    port = server.add_insecure_port(f"{host}:0")
    server.start()
    try:
        yield port
    finally:
        await asyncio.to_thread(server.stop(None).wait)


def test_a_grpc_service_is_good_when_it_serves():
    async def story() -> None:
        async with grpc_server({"": 1, "db": 2, "x" * 200: 1, "odd": 0}) as port:
            assert await looked(Handler(grpc=Grpc(port=port))) == Outcome(True)
            assert await looked(Handler(grpc=Grpc(port=port, service="x" * 200))) == Outcome(True)
            outcome = await looked(Handler(grpc=Grpc(port=port, service="db")))
            assert outcome == Outcome(False, 'service unhealthy (responded with "NOT_SERVING")')
            assert not (await looked(Handler(grpc=Grpc(port=port, service="odd")))).is_good
            assert not (await looked(Handler(grpc=Grpc(port=port, service="none")))).is_good
        async with grpc_server(None) as port:
            assert not (await looked(Handler(grpc=Grpc(port=port)))).is_good

    run(story)


def test_what_is_no_grpc_is_told():
    async def story() -> None:
        async with serving(b"HTTP/1.1 400 Bad Request\r\n\r\n") as (port, _):
            assert not (await looked(Handler(grpc=Grpc(port=port)))).is_good

    run(story)


def test_a_status_that_is_left_out_is_unknown():
    assert health_status(b"") == 0
    assert health_status(b"\x08\x01") == 1
