"""HTTP/1.1 from the client's side: what is sent, what is sent again, and what never is."""

import asyncio
import time

import pytest

from allot.api import Request, errors
from allot.client import Access, Credential, Fixed, HttpsTransport, Limits, Server

from .scripted import Authority, Seen, serving

QUICK = Limits(connect_s=2, answer_s=1, connect_waits_s=(0.01,), stream_grace_s=0.1)


def transport_to(port: int, limits: Limits = QUICK) -> HttpsTransport:
    return HttpsTransport(Access(Server.at(f"http://127.0.0.1:{port}")), limits=limits)


async def ok(request: Seen) -> None:
    request.answer(b'{"ok":true}')


def test_a_connection_is_used_again():
    async def story() -> None:
        async with serving(ok) as server:
            transport = transport_to(server.port)
            for _ in range(3):
                assert (await transport.send(Request("GET", "/version"))).body == b'{"ok":true}'
            assert server.connections == 1
            await transport.close()

    asyncio.run(story())


def test_the_request_arrives_as_it_was_meant():
    """Paths are escaped, queries encoded, a body has its length, and an empty POST says so."""

    async def story() -> None:
        async with serving(ok) as server:
            transport = transport_to(server.port)
            query = {"labelSelector": "a in (b,c)", "limit": "5"}
            await transport.send(Request("GET", "/api/v1/pods/a b", query, {"accept": "application/json"}))
            await transport.send(Request("POST", "/x", {}, {}, b"{}"))
            await transport.send(Request("DELETE", "/x"))
            get, post, delete = server.seen
            assert get.target == "/api/v1/pods/a%20b?labelSelector=a+in+%28b%2Cc%29&limit=5"
            assert get.headers["accept"] == "application/json"
            assert "content-length" not in get.headers
            assert post.body == b"{}"
            assert delete.headers["content-length"] == "0"
            await transport.close()

    asyncio.run(story())


def test_a_read_survives_a_kept_connection_that_the_server_closed():
    async def story() -> None:
        async def once_per_connection(request: Seen) -> None:
            if len([s for s in server.seen if s.connection == request.connection]) > 1:
                request.writer.close()
            else:
                request.answer(b"{}")

        async with serving(once_per_connection) as server:
            transport = transport_to(server.port)
            await transport.send(Request("GET", "/first"))
            assert (await transport.send(Request("GET", "/second"))).status == 200
            assert [(s.target, s.connection) for s in server.seen] == [
                ("/first", 1), ("/second", 1), ("/second", 2),
            ]  # fmt: skip
            await transport.close()

    asyncio.run(story())


@pytest.mark.parametrize("method", ["POST", "PATCH", "PUT", "DELETE"])
def test_a_write_whose_fate_is_unknown_is_not_sent_again(method):
    """The server may have carried it out before it closed the connection."""

    async def story() -> None:
        async def once_per_connection(request: Seen) -> None:
            if request.target == "/write":
                request.writer.close()
            else:
                request.answer(b"{}")

        async with serving(once_per_connection) as server:
            transport = transport_to(server.port)
            await transport.send(Request("GET", "/first"))
            with pytest.raises(errors.Timeout):
                await transport.send(Request(method, "/write", body=b"{}"))
            assert [s.target for s in server.seen] == ["/first", "/write"]
            await transport.close()

    asyncio.run(story())


def test_nothing_listening_means_unavailable():
    async def story() -> None:
        async with serving(ok) as server:
            port = server.port
        with pytest.raises(errors.Unavailable):
            await transport_to(port).send(Request("POST", "/x", body=b"{}"))

    asyncio.run(story())


def test_no_answer_means_timeout_and_the_connection_is_given_up():
    async def story() -> None:
        async def silent_once(request: Seen) -> None:
            if request.target != "/slow":
                request.answer(b"{}")

        async with serving(silent_once) as server:
            transport = transport_to(server.port, Limits(answer_s=0.05))
            with pytest.raises(errors.Timeout):
                await transport.send(Request("GET", "/slow"))
            await transport.send(Request("GET", "/fast"))
            assert server.connections == 2
            await transport.close()

    asyncio.run(story())


def test_a_cancelled_request_does_not_leave_its_answer_to_the_next():
    async def story() -> None:
        async def late(request: Seen) -> None:
            if request.target == "/first":
                await asyncio.sleep(0.05)
            request.answer(request.target.encode())

        async with serving(late) as server:
            transport = transport_to(server.port)
            first = asyncio.ensure_future(transport.send(Request("GET", "/first")))
            await asyncio.sleep(0.02)
            first.cancel()
            assert (await transport.send(Request("GET", "/second"))).body == b"/second"
            await transport.close()

    asyncio.run(story())


def test_a_second_answer_to_one_request_is_never_taken_for_the_next_ones():
    async def story() -> None:
        async def twice(request: Seen) -> None:
            request.answer(request.target.encode())
            if request.target == "/first":
                request.answer(b"smuggled")

        async with serving(twice) as server:
            transport = transport_to(server.port)
            await transport.send(Request("GET", "/first"))
            await asyncio.sleep(0.02)
            assert (await transport.send(Request("GET", "/second"))).body == b"/second"
            assert server.connections == 2
            await transport.close()

    asyncio.run(story())


def test_what_is_not_http_is_an_error():
    async def story() -> None:
        async def nonsense(request: Seen) -> None:
            request.writer.write(b"SSH-2.0-OpenSSH_9.9\r\n")

        async with serving(nonsense) as server:
            with pytest.raises(errors.Timeout, match="does not speak HTTP"):
                await transport_to(server.port).send(Request("GET", "/"))

    asyncio.run(story())


def test_an_endless_head_is_cut_off():
    async def story() -> None:
        async def endless(request: Seen) -> None:
            request.writer.write(b"HTTP/1.1 200 OK\r\n")
            for _ in range(100):
                request.writer.write(b"x-filler: " + b"a" * 8000 + b"\r\n")

        async with serving(endless) as server:
            with pytest.raises(errors.Timeout, match="too large"):
                await transport_to(server.port).send(Request("GET", "/"))

    asyncio.run(story())


def test_an_answer_without_a_length_ends_with_the_connection():
    async def story() -> None:
        async def old_style(request: Seen) -> None:
            request.writer.write(b"HTTP/1.1 200 OK\r\n\r\nall of it")
            await request.writer.drain()
            request.writer.close()

        async with serving(old_style) as server:
            transport = transport_to(server.port)
            assert (await transport.send(Request("GET", "/"))).body == b"all of it"
            await transport.close()

    asyncio.run(story())


def test_an_interim_answer_is_passed_over():
    async def story() -> None:
        async def interim(request: Seen) -> None:
            request.writer.write(b"HTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\n")
            request.answer(b"final")

        async with serving(interim) as server:
            transport = transport_to(server.port)
            assert (await transport.send(Request("GET", "/"))).body == b"final"
            assert (await transport.send(Request("GET", "/"))).body == b"final"
            await transport.close()

    asyncio.run(story())


# -- streams ------------------------------------------------------------------------------------

HEAD = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\ncontent-type: application/json\r\n\r\n"
WATCH = {"watch": "true"}


def test_a_watch_streams_while_it_goes_on_and_ends_when_the_server_ends_it():
    async def story() -> None:
        more = asyncio.Event()

        async def watch(request: Seen) -> None:
            request.writer.write(HEAD)
            request.chunk(b"one\n")
            await request.writer.drain()
            await more.wait()
            request.chunk(b"two\n")
            request.writer.write(b"0\r\n\r\n")

        async with serving(watch) as server:
            transport = transport_to(server.port)
            response = await transport.send(Request("GET", "/pods", WATCH))
            assert response.stream is not None
            assert await anext(response.stream) == b"one\n"
            more.set()
            assert [chunk async for chunk in response.stream] == [b"two\n"]
            await transport.close()

    asyncio.run(story())


def test_a_broken_watch_says_so():
    async def story() -> None:
        async def broken(request: Seen) -> None:
            request.writer.write(HEAD)
            request.chunk(b"one\n")
            await request.writer.drain()
            request.writer.transport.abort()

        async with serving(broken) as server:
            transport = transport_to(server.port)
            response = await transport.send(Request("GET", "/pods", WATCH))
            assert response.stream is not None
            with pytest.raises(errors.Unavailable):
                async for _ in response.stream:
                    pass
            await transport.close()

    asyncio.run(story())


def test_a_refused_watch_is_an_answer_not_a_stream():
    async def story() -> None:
        async def gone(request: Seen) -> None:
            request.answer(b'{"kind":"Status"}', "410 Gone")

        async with serving(gone) as server:
            transport = transport_to(server.port)
            response = await transport.send(Request("GET", "/pods", WATCH))
            assert (response.status, response.stream, response.body) == (410, None, b'{"kind":"Status"}')
            await transport.close()

    asyncio.run(story())


def test_closing_the_transport_ends_a_watch_that_waits():
    async def story() -> None:
        async def quiet(request: Seen) -> None:
            request.writer.write(HEAD)
            await request.writer.drain()
            await asyncio.sleep(30)

        async with serving(quiet) as server:
            transport = transport_to(server.port)
            response = await transport.send(Request("GET", "/pods", WATCH))

            async def read() -> int:
                assert response.stream is not None
                return len([chunk async for chunk in response.stream])

            reading = asyncio.ensure_future(read())
            await asyncio.sleep(0.01)
            await transport.close()
            with pytest.raises(errors.Unavailable):
                await asyncio.wait_for(reading, 1)
            with pytest.raises(errors.Unavailable):
                await transport.send(Request("GET", "/"))

    asyncio.run(story())


def test_a_watch_whose_server_vanished_ends_after_its_own_time():
    """The server promised to end it after a second; thirty later nobody waits any more."""

    async def story() -> None:
        async def quiet(request: Seen) -> None:
            request.writer.write(HEAD)
            await request.writer.drain()
            await asyncio.sleep(30)

        async with serving(quiet) as server:
            transport = transport_to(server.port, Limits(stream_grace_s=0.05))
            response = await transport.send(Request("GET", "/pods", {**WATCH, "timeoutSeconds": "0"}))
            assert response.stream is not None
            assert [chunk async for chunk in response.stream] == []
            await transport.close()

    asyncio.run(story())


def test_a_reader_that_pauses_pauses_the_server():
    """CCONN3: what waits in memory is bounded, however much the server has to say."""

    async def story() -> None:
        written = 0

        async def flood(request: Seen) -> None:
            nonlocal written
            request.writer.write(HEAD)
            for _ in range(64):
                request.chunk(b"x" * 1_000_000)
                await request.writer.drain()
                written += 1_000_000
            request.writer.write(b"0\r\n\r\n")

        async with serving(flood) as server:
            transport = transport_to(server.port)
            response = await transport.send(Request("GET", "/pods", WATCH))
            await asyncio.sleep(0.2)
            assert written < 40_000_000  # the rest waits in socket buffers and in the server
            assert response.stream is not None
            assert sum([len(chunk) async for chunk in response.stream]) == 64_000_000
            await transport.close()

    asyncio.run(story())


# -- identity -----------------------------------------------------------------------------------


def test_tls_checks_the_name_and_shows_the_client_certificate(tmp_path):
    authority = Authority()
    certificate, key = authority.issue("alice")

    async def story() -> None:
        async with serving(ok, authority.server_context(tmp_path)) as server:
            url = f"https://127.0.0.1:{server.port}"
            trusted = Server.at(url, authorities=authority.pem)
            alice = Fixed(Credential(certificate=certificate, key=key))
            transport = HttpsTransport(Access(trusted, alice), limits=QUICK)
            assert (await transport.send(Request("GET", "/"))).status == 200
            assert server.seen[0].peer_certificate is not None
            await transport.close()

            for wrong in (
                Server.at(url, authorities=Authority().pem),
                Server.at(url, authorities=authority.pem, server_name="elsewhere.example"),
            ):
                with pytest.raises(errors.Unavailable, match="certificate"):
                    await HttpsTransport(Access(wrong), limits=QUICK).send(Request("GET", "/"))

            careless = HttpsTransport(Access(Server.at(url, verify=False)), limits=QUICK)
            assert (await careless.send(Request("GET", "/"))).status == 200
            await careless.close()

    asyncio.run(story())


def test_tls_server_name_stands_in_for_the_host(tmp_path):
    authority = Authority()

    async def story() -> None:
        async with serving(ok, authority.server_context(tmp_path, "api.example")) as server:
            url = f"https://127.0.0.1:{server.port}"
            named = Server.at(url, authorities=authority.pem, server_name="api.example")
            transport = HttpsTransport(Access(named), limits=QUICK)
            assert (await transport.send(Request("GET", "/"))).status == 200
            await transport.close()

    asyncio.run(story())


class Rotating:
    """The first token is refused, then there is another."""

    def __init__(self) -> None:
        self.tokens = ["old", "new"]

    async def current(self) -> Credential:
        return Credential.token(self.tokens[0])

    async def refused(self) -> bool:
        self.tokens.pop(0)
        return True


def test_a_refused_token_is_replaced_once():
    async def story() -> None:
        async def only_new(request: Seen) -> None:
            good = request.headers.get("authorization") == "Bearer new"
            request.answer(b"{}", "200 OK" if good else "401 Unauthorized")

        async with serving(only_new) as server:
            access = Access(Server.at(f"http://127.0.0.1:{server.port}"), Rotating())
            transport = HttpsTransport(access, limits=QUICK)
            assert (await transport.send(Request("POST", "/", body=b"{}"))).status == 200
            assert len(server.seen) == 2
            await transport.close()

    asyncio.run(story())


def test_a_header_cannot_smuggle_another():
    async def story() -> None:
        async with serving(ok) as server:
            transport = transport_to(server.port)
            with pytest.raises(errors.BadRequest):
                await transport.send(Request("GET", "/", {}, {"x": "a\r\nauthorization: Bearer stolen"}))
            assert server.seen == []
            await transport.close()

    asyncio.run(story())


def test_many_requests_share_a_bounded_number_of_connections():
    async def story() -> None:
        async with serving(ok) as server:
            transport = transport_to(server.port, Limits(connections_max=4))
            start = time.monotonic()
            await asyncio.gather(*(transport.send(Request("GET", "/")) for _ in range(200)))
            assert server.connections <= 4
            assert time.monotonic() - start < 5
            await transport.close()

    asyncio.run(story())
