"""Several API servers on one etcd, and an etcd that loses its leader."""

import asyncio
import contextlib

import pytest

from allot.api import Object, errors
from components import etcd
from e2e.crashes import client_of
from e2e.process import ServerProcess


@pytest.fixture(scope="module")
def three():
    with etcd(3) as cluster:
        yield cluster


@pytest.fixture
def pair(three, tmp_path):
    url = three.url()
    servers = [ServerProcess(tmp_path / name, store=url) for name in ("one", "two")]
    yield servers
    for server in servers:
        server.stop()


def test_two_servers_on_one_etcd_agree(pair):
    """Same authority, same objects, same rights; a conflict between them is a conflict."""

    async def story():
        (one, first), (two, second) = (client_of(server) for server in pair)
        here, there = (client.resource("", "v1", "configmaps") for client in (one, two))
        made = await here.create({"metadata": {"name": "a"}, "data": {"x": "1"}}, "default")
        read = await there.get("a", "default")
        assert (read.uid, read.resource_version) == (made.uid, made.resource_version)
        await there.update({**read.fields, "data": {"x": "2"}})
        with pytest.raises(errors.Conflict):
            await here.update({**made.fields, "data": {"x": "3"}})
        listed = await here.list("default")
        assert [item.fields["data"]["x"] for item in listed.objects] == ["2"]
        # The admin of one is the admin of the other: they share the authority.
        assert await one.get("/version") == await two.get("/version")
        await first.close()
        await second.close()

    asyncio.run(story())


def test_a_device_is_given_once_whichever_server_is_asked(pair):
    """D1 with two schedulers on two API servers."""

    async def story():
        clients = [client_of(server) for server in pair]
        claims = [client.resource("resource.k8s.io", "v1", "resourceclaims") for client, _ in clients]
        request = {"name": "gpu", "exactly": {"deviceClassName": "gpu.example.com"}}
        spec = {"devices": {"requests": [request]}}
        made = [
            await claims[0].create({"metadata": {"name": f"c{i}"}, "spec": spec}, "default") for i in range(8)
        ]
        result = {"request": "gpu", "driver": "gpu.example.com", "pool": "p", "device": "gpu-0"}
        status = {"allocation": {"devices": {"results": [result]}}}

        async def allocate(which: int) -> bool:
            try:
                await claims[which % 2].update_status({**made[which].fields, "status": status})
            except errors.Conflict:
                return False
            return True

        won = await asyncio.gather(*(allocate(which) for which in range(8)))
        assert sum(won) == 1
        for _, transport in clients:
            await transport.close()

    asyncio.run(story())


def test_a_watch_of_a_kind_at_rest_begins_where_a_list_has_read(pair):
    """`kubectl get --watch` lists from the store. The server may hear late that nothing happened."""

    async def story():
        client, connection = client_of(pair[0])
        path = "/api/v1/namespaces/default/podtemplates"
        await client.get(path, {"resourceVersion": "0"})  # the server begins to follow them
        maps = client.resource("", "v1", "configmaps")
        for number in range(3):
            await maps.create({"metadata": {"name": f"other-{number}"}}, "default")
            listed = await client.send("GET", path, {"limit": "1"})
            query = {"watch": "true", "resourceVersion": Object(listed.body).resource_version}
            opened = await client.send("GET", path, {**query, "timeoutSeconds": "1"})  # was a 504 after 3 s
            assert opened.status == 200 and opened.stream is not None
            await opened.stream.aclose()
        await connection.close()

    asyncio.run(story())


def test_a_quota_is_not_overdrawn_whichever_server_is_asked(pair):
    """Q1 with two API servers: fifty writers, ten places."""

    async def story():
        clients = [client_of(server) for server in pair]
        quotas, secrets = (clients[0][0].resource("", "v1", name) for name in ("resourcequotas", "secrets"))
        taken = len((await secrets.list("default")).objects)
        hard = {"secrets": str(taken + 10)}
        made = await quotas.create({"metadata": {"name": "q"}, "spec": {"hard": hard}}, "default")
        status = {"hard": hard, "used": {"secrets": str(taken)}}  # the controller would have counted
        await quotas.update_status({**made.fields, "status": status})

        async def create(which: int) -> bool:
            there = clients[which % 2][0].resource("", "v1", "secrets")
            try:
                await there.create({"metadata": {"name": f"s{which}"}}, "default")
            except errors.Forbidden as refused:
                assert "exceeded quota: q, requested: secrets=1" in str(refused)
                return False
            return True

        assert sum(await asyncio.gather(*(create(which) for which in range(50)))) == 10
        assert len((await secrets.list("default")).objects) == taken + 10
        assert (await quotas.get("q", "default")).fields["status"]["used"] == hard
        await quotas.delete("q", "default")
        for _, transport in clients:
            await transport.close()

    asyncio.run(story())


def test_nothing_is_lost_when_the_leader_is_killed_under_load(three, pair):
    """S1 on etcd: kill -9 of the leader of three while both servers write."""

    async def story():
        clients = [client_of(server) for server in pair]
        acknowledged: dict[str, int] = {}
        stop = asyncio.Event()

        async def writer(which: int) -> None:
            configs = clients[which % 2][0].resource("", "v1", "configmaps")
            count = 0
            while not stop.is_set():
                name = f"w{which}-{count}"
                count += 1
                with contextlib.suppress(errors.ApiError):  # no leader for a moment: not acknowledged
                    made = await configs.create({"metadata": {"name": name}}, "default")
                    acknowledged[name] = int(made.resource_version)

        writers = [asyncio.create_task(writer(which)) for which in range(6)]
        await asyncio.sleep(1)
        leader = await asyncio.to_thread(three.leader)
        await asyncio.to_thread(leader.kill)
        before = len(acknowledged)
        for _ in range(150):
            await asyncio.sleep(0.1)
            if len(acknowledged) > before + 50:
                break
        stop.set()
        await asyncio.wait(writers, timeout=30)
        assert len(acknowledged) > before + 20, "writing went on under a new leader"
        pages = [await client.resource("", "v1", "configmaps").list("default") for client, _ in clients]
        states = [{item.name: int(item.resource_version) for item in page.objects} for page in pages]
        assert states[0] == states[1]
        lost = [name for name, revision in acknowledged.items() if states[0].get(name) != revision]
        assert not lost
        leader.start()
        for _, transport in clients:
            await transport.close()

    asyncio.run(story())
