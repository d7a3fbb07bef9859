"""Many watchers, one history (S2). bench/watchers.py does it with 200 connections."""

import asyncio
import json
import ssl
import tempfile

import pytest

from allot.api import Request, User, errors
from allot.api.transaction import PATH
from allot.apiserver import ApiServer, ServingOptions, identities, serve
from allot.client import Client, HttpsTransport, Socket, kubeconfig
from allot.store import MemoryStore

CONFIGS = "/api/v1/namespaces/default/configmaps"


def body(name: str, size: int = 10) -> bytes:
    return b'{"metadata":{"name":"%b"},"data":{"x":"%b"}}' % (name.encode(), b"y" * size)


async def write(api: ApiServer, count: int, size: int = 10, user: User = identities.ADMIN) -> None:
    for number in range(count):
        answer = await api.handle(Request("POST", CONFIGS, {}, {}, body(f"o-{number}", size)), user)
        assert answer.status == 201


async def read(api: ApiServer, count: int, query: dict[str, str], pause_s: float = 0.0) -> list[bytes]:
    response = await api.handle(Request("GET", CONFIGS, {"watch": "true", **query}), identities.ADMIN)
    lines: list[bytes] = []
    async for piece in response.stream:
        lines += piece.splitlines()
        if len(lines) >= count:
            break
        await asyncio.sleep(pause_s)
    await response.stream.aclose()
    return lines


def test_every_watcher_sees_the_same_history_however_fast_it_reads():
    async def story():
        api = ApiServer(MemoryStore())
        await api.start()
        start = str(await api.store.revision())
        watchers = [
            asyncio.create_task(read(api, 1000, {"resourceVersion": start}, pause_s=0.001 * (which % 3)))
            for which in range(40)
        ]
        await asyncio.sleep(0)
        await write(api, 1000)
        histories = await asyncio.gather(*watchers)
        assert all(history == histories[0] for history in histories)
        assert len(set(histories[0])) == 1000
        late = await read(api, 1000, {"resourceVersion": start})
        assert late == histories[0]
        await api.close()

    asyncio.run(story())


def test_what_a_watcher_in_the_same_process_is_told_is_what_the_bytes_say():
    """With a selector too, where an object comes and goes while it stays."""

    async def story():
        api = ApiServer(MemoryStore())
        await api.start()
        query = {"watch": "true", "labelSelector": "colour=red"}
        response = await api.handle(Request("GET", CONFIGS, query), identities.ADMIN)
        for method, name, colour in [
            ("POST", "", "red"), ("PATCH", "/o", "blue"), ("PATCH", "/o", "red"), ("DELETE", "/o", ""),
        ]:  # fmt: skip
            body = b'{"metadata":{"name":"o","labels":{"colour":"%b"}}}' % colour.encode()
            headers = {"content-type": "application/merge-patch+json"} if method == "PATCH" else {}
            sent = Request(method, CONFIGS + name, {}, headers, b"" if method == "DELETE" else body)
            assert (await api.handle(sent, identities.ADMIN)).status < 300
        pieces, lines = [], []
        while len(lines) < 4:
            pieces.append(await anext(response.stream))
            lines += pieces[-1].splitlines()
        told = [event for piece in pieces for event in piece.events]
        assert [type for type, _ in told] == ["ADDED", "DELETED", "ADDED", "DELETED"]
        assert [b'{"type":"%b","object":%b}' % (t.encode(), o.raw) for t, o in told] == lines
        await response.stream.aclose()
        await api.close()

    asyncio.run(story())


def test_a_cache_that_loads_anew_under_the_initial_events_sends_the_watcher_back():
    """WCACHE2: a position in the old history means nothing in the new one, so nothing is missed."""

    async def story():
        api = ApiServer(MemoryStore())
        await api.start()
        await write(api, 300)
        cache = await api.caches.of(api.registry.kind("", "configmaps"))
        response = await api.handle(Request("GET", CONFIGS, {"watch": "true"}), identities.ADMIN)
        first = await anext(response.stream)
        await cache._load()
        await api.handle(Request("POST", CONFIGS, {}, {}, body("later")), identities.ADMIN)
        rest = b"".join([piece async for piece in response.stream])
        assert first.count(b"\n") + rest.count(b'"ADDED"') == 300
        assert b'"ERROR"' in rest.splitlines()[-1] and b'"code":410' in rest.splitlines()[-1]
        await api.close()

    asyncio.run(asyncio.wait_for(story(), 20))


@pytest.mark.parametrize("later", [0, 1])
def test_who_saw_half_of_a_transaction_sees_the_other_half_after_a_restart(later):
    """S2: also where the transaction was the last thing that happened before the cache was loaded."""

    async def story():
        api = ApiServer(MemoryStore())
        await api.start()
        create = [{"method": "POST", "path": CONFIGS, "body": json.loads(body(name))} for name in ("a", "b")]
        sent = json.dumps({"spec": {"requests": create}}).encode()
        assert (await api.handle(Request("POST", PATH, {}, {}, sent), identities.ADMIN)).status == 201
        cache = await api.caches.of(api.registry.kind("", "configmaps"))
        seen = str(await api.store.revision())
        await write(api, later)
        await cache._load()  # as a server does that begins anew
        assert int(seen) + later == cache.history.complete_after
        lines = await asyncio.wait_for(read(api, 2 + later, {"resourceVersion": seen}), 10)
        assert [json.loads(line)["object"]["metadata"]["name"] for line in lines] == ["a", "b", "o-0"][
            : 2 + later
        ]
        await api.close()

    asyncio.run(story())


def test_a_watcher_that_does_not_read_is_cut_off_and_nobody_else_notices(tmp_path):
    async def story():
        serving = await serve(ServingOptions(tmp_path / "data", "memory"))
        api = serving.api
        cache = await api.caches.of(api.registry.kind("", "configmaps"))
        cache.history._window = 50
        access = kubeconfig.load(serving.kubeconfig)
        transport = HttpsTransport(access)
        configs = Client(transport).resource("", "v1", "configmaps")

        silent = await _silent_watch(access, int(serving.url.rpartition(":")[2]))
        seen: list[str] = []

        async def watch() -> None:
            async for event in configs.watch("default", resource_version="1"):
                seen.append(event.object.name)
                if len(seen) == 400:
                    return

        watching = asyncio.create_task(watch())
        await until(lambda: len(api.laggards) == 2)
        for start in range(0, 400, 20):
            await asyncio.gather(
                *(
                    api.handle(
                        Request("POST", CONFIGS, {}, {}, body(f"o-{number}", 40_000)), identities.ADMIN
                    )
                    for number in range(start, start + 20)
                )
            )
            await until(lambda due=start: len(seen) >= due)  # this one keeps up; the other never reads
        await asyncio.wait_for(watching, 20)
        assert len(seen) == len(set(seen)) == 400
        # Cut off in the middle of a write, or told to start over where it was not writing just then.
        await until(lambda: not len(api.laggards))
        silent[1].transport.abort()
        await transport.close()
        await serving.close()

    asyncio.run(story())


def test_a_watch_over_the_socket_that_is_not_read_is_cut_off_and_its_connection_goes_on(tmp_path):
    """Both watches share a connection, and so do the writes."""

    async def story():
        serving = await serve(ServingOptions(tmp_path / "data", "memory"))
        api = serving.api
        cache = await api.caches.of(api.registry.kind("", "configmaps"))
        cache.history._window = 50
        client = Client(Socket(serving.socket).transport(identities.ADMIN))
        configs = client.resource("", "v1", "configmaps")
        query = {"watch": "true", "resourceVersion": "1"}
        silent = await client.send("GET", CONFIGS, query)
        seen: list[str] = []

        async def watch() -> None:
            async for event in configs.watch("default", resource_version="1"):
                seen.append(event.object.name)

        watching = asyncio.create_task(watch())
        await until(lambda: len(api.laggards) == 2)
        for start in range(0, 200, 20):
            names = [f"o-{number}" for number in range(start, start + 20)]
            await asyncio.gather(
                *(configs.create(json.loads(body(name, 40_000)), "default") for name in names)
            )
            await until(lambda due=start: len(seen) >= due)
        await until(lambda: len(seen) == 200 and api.laggards.cut == 1)
        with pytest.raises(errors.Unavailable, match="broke off"):
            async for _ in silent.stream:
                pass
        assert (await configs.get("o-0", "default")).name == "o-0"
        watching.cancel()
        await client.close()
        await serving.close()

    asyncio.run(asyncio.wait_for(story(), 60))


async def until(holds, timeout_s: float = 20.0) -> None:
    for _ in range(int(timeout_s / 0.01)):
        if holds():
            return
        await asyncio.sleep(0.01)
    raise AssertionError("it never came true")


async def _silent_watch(access, port: int):
    """Ask for a watch and never read: small buffers, so that the server's writes soon wait."""
    context = ssl.create_default_context(cadata=access.server.authorities.decode())
    credential = await access.credentials.current()
    with tempfile.NamedTemporaryFile() as file:
        file.write(credential.certificate + b"\n" + credential.key)
        file.flush()
        context.load_cert_chain(file.name)
    reader, writer = await asyncio.open_connection(
        "127.0.0.1", port, ssl=context, server_hostname="localhost", limit=1024
    )
    writer.write(f"GET {CONFIGS}?watch=true&resourceVersion=1 HTTP/1.1\r\nHost: x\r\n\r\n".encode())
    await writer.drain()
    reader._transport.pause_reading()
    return reader, writer
