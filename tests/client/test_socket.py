"""Over the server's socket anybody can be named, and nobody may more than their role allows."""

import asyncio
import contextlib

import pytest

from allot.api import Request, Response, User, errors, frames
from allot.apiserver import ServingOptions, identities, serve
from allot.apiserver.fairness.traffic import Traffic
from allot.apiserver.serving import socketlistener
from allot.apiserver.serving.socketlistener import SocketListener
from allot.client import Client, Socket, SocketLimits, link
from components import free_ports

CONFIG = {"metadata": {"name": "m"}}


@contextlib.asynccontextmanager
async def server(folder):
    serving = await serve(ServingOptions(folder / "data", store="memory"))
    try:
        yield serving
    finally:
        await serving.close()


def run_story(story):
    asyncio.run(asyncio.wait_for(story, 30))


def maps_of(transport):
    return Client(transport).resource("", "v1", "configmaps")


def test_everybody_on_a_connection_has_their_own_rights(tmp_path):
    async def story():
        async with server(tmp_path) as serving:
            shared = Socket(serving.socket)
            users = (identities.ADMIN, identities.SCHEDULER, User("nobody-special"))
            admin, scheduler, stranger = (shared.transport(user) for user in users)
            await maps_of(admin).create(CONFIG, "default")
            for one in (scheduler, stranger):
                with pytest.raises(errors.Forbidden):
                    await maps_of(one).create(CONFIG, "default")
            await Client(scheduler).resource("", "v1", "pods").list()
            with pytest.raises(errors.Forbidden, match="nobody-special"):
                await Client(stranger).resource("", "v1", "pods").list()
            for one in (admin, scheduler, stranger):
                await one.close()

    run_story(story())


def test_there_may_be_more_users_than_a_connection_knows_at_a_time(tmp_path, monkeypatch):
    """Thousands of nodes act over one connection, each for itself; some are asking while others are named."""
    monkeypatch.setattr(link, "USERS_MAX", 3)
    monkeypatch.setattr(socketlistener, "USERS_MAX", 3)

    async def who(request, user):
        await asyncio.sleep(0.01)
        return Response(200, user.name.encode())

    async def story():
        listener = SocketListener(who, Traffic())
        await listener.open(tmp_path / "api.sock")
        shared = Socket(tmp_path / "api.sock")
        kept = shared.transport(identities.ADMIN)
        names = [f"n{number}" for number in range(10)] * 3
        sent = [shared.passing(User(name)).send(Request("GET", "/", {}, {})) for name in names]
        assert [one.body.decode() for one in await asyncio.gather(*sent)] == names
        assert (await kept.send(Request("GET", "/", {}, {}))).body.decode() == identities.ADMIN.name
        await kept.close()
        await listener.close()

    run_story(story())


def test_impersonation_is_an_action_here_too(tmp_path):
    async def story():
        async with server(tmp_path) as serving:
            shared = Socket(serving.socket)
            asked = Request("GET", "/api/v1/pods", {}, {"impersonate-user": identities.ADMIN_NAME})
            scheduler = shared.transport(identities.SCHEDULER)
            assert (await scheduler.send(asked)).status == 403
            await scheduler.close()

    run_story(story())


def test_closing_one_of_several_ends_only_what_is_theirs(tmp_path):
    """CSOCK4."""

    async def story():
        async with server(tmp_path) as serving:
            shared = Socket(serving.socket)
            staying, leaving = (shared.transport(identities.ADMIN) for _ in range(2))
            watches = [maps_of(one).watch("default", initial_events=True) for one in (staying, leaving)]
            for watch in watches:
                await anext(watch)
            link = await shared.link()
            await leaving.close()
            async for _ in watches[1]:  # it ends
                pass
            with pytest.raises(errors.Unavailable, match="closed"):
                await maps_of(leaving).list("default")
            await maps_of(staying).create(CONFIG, "default")
            while (await anext(watches[0])).object.name != "m":
                pass
            assert await shared.link() is link
            await staying.close()
            assert not link.is_open

    run_story(story())


def test_nothing_listening_means_unavailable(tmp_path):
    async def story():
        client = Socket(tmp_path / "none", SocketLimits(connect_waits_s=(0.01,))).transport(identities.ADMIN)
        with pytest.raises(errors.Unavailable, match=r"cannot reach the server at .*/none: No such file"):
            await client.send(Request("GET", "/version"))
        await client.close()

    run_story(story())


def test_many_who_come_at_once_share_one_connection(tmp_path, monkeypatch):
    made, plain = [], socketlistener._Connection.connection_made

    def connection_made(self, transport):
        made.append(self)
        plain(self, transport)

    monkeypatch.setattr(socketlistener._Connection, "connection_made", connection_made)

    async def story():
        async with server(tmp_path) as serving:
            shared = Socket(serving.socket, SocketLimits(requests_max=5))
            users = [shared.transport(identities.node(f"n{number}")) for number in range(20)]
            answers = await asyncio.gather(*(user.send(Request("GET", "/version")) for user in users))
            assert {answer.status for answer in answers} == {200}
            assert len(made) == 1
            for user in users:
                await user.close()

    run_story(story())


def test_a_server_without_a_socket_has_none(tmp_path):
    async def story():
        serving = await serve(ServingOptions(tmp_path / "data", store="memory", socket=False))
        assert not serving.socket.exists()
        await serving.close()

    run_story(story())


def test_a_server_that_cannot_have_its_socket_does_not_start(tmp_path):
    """And leaves nothing behind: the port is free again."""

    async def story():
        (port,) = free_ports(1)
        (tmp_path / "data").mkdir()
        (tmp_path / "data" / "api.sock").write_text("something else")
        options = ServingOptions(tmp_path / "data", store="memory", port=port)
        with pytest.raises(OSError, match=r"api\.sock is in the way"):
            await serve(options)
        (tmp_path / "data" / "api.sock").unlink()
        await (await serve(options)).close()

    run_story(story())


def test_a_watch_whose_server_hangs_ends_after_its_own_time(tmp_path):
    async def silent(reader, writer):
        await reader.read(1000)
        outbox = frames.Outbox(writer.write, lambda call: None, 1000)
        outbox.head(frames.ANSWER, 1, frames.Answer(200, b"", "application/json", (), True))
        outbox.flush()
        await asyncio.sleep(5)
        writer.close()

    async def story():
        hanging = await asyncio.start_unix_server(silent, tmp_path / "api.sock")
        shared = Socket(tmp_path / "api.sock", SocketLimits(stream_grace_s=0.1))
        client = shared.transport(identities.ADMIN)
        watch = await client.send(Request("GET", "/x", {"watch": "true", "timeoutSeconds": "0"}))
        assert [piece async for piece in watch.stream] == []
        await client.close()
        hanging.close()

    run_story(story())


def test_closing_ends_the_waiting_of_those_who_asked_and_of_nobody_else(tmp_path):
    """CSOCK4, CSOCK2: what became of the request is not known."""
    gate, begun = asyncio.Event(), asyncio.Semaphore(0)

    async def slow(request, user):
        begun.release()
        await gate.wait()
        return Response(200)

    async def story():
        listener = SocketListener(slow, Traffic())
        await listener.open(tmp_path / "api.sock")
        shared = Socket(tmp_path / "api.sock")
        staying, leaving = (shared.transport(identities.ADMIN) for _ in range(2))
        asked = [asyncio.ensure_future(one.send(Request("PUT", "/x"))) for one in (staying, leaving)]
        for _ in asked:
            await begun.acquire()
        await leaving.close()
        with pytest.raises(errors.Timeout, match="closed"):
            await asyncio.wait_for(asked[1], 1)
        gate.set()
        assert (await asked[0]).status == 200
        await staying.close()
        await listener.close()

    run_story(story())
