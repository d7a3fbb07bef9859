"""What a transaction expects, with two API servers on one etcd: whichever server wrote it last."""

import asyncio

import pytest

from allot.api import errors
from allot.client import member_of
from components import etcd
from e2e.crashes import client_of
from e2e.process import ServerProcess

NS = "default"


@pytest.fixture
def pair(tmp_path):
    with etcd(1) as cluster:
        url = cluster.url()
        servers = [ServerProcess(tmp_path / name, store=url) for name in ("one", "two")]
        yield servers
        for server in servers:
            server.stop()


def config(name):
    return {"metadata": {"name": name, "namespace": NS}}


def test_nobody_relies_on_what_another_server_has_changed(pair):
    """TXN4."""

    async def story():
        (one, first), (two, second) = (client_of(server) for server in pair)
        here, there = (client.resource("", "v1", "configmaps") for client in (one, two))
        for at in range(10):
            word = await here.create(config(f"word-{at}"))
            writes = there.writes
            relies = [writes.expect(word.name, word.resource_version, NS), writes.expect(f"no-{at}", "", NS)]
            done = await two.together([*relies, writes.create(config(f"kept-{at}"))])
            assert done[2].name == f"kept-{at}"
            await here.patch(word.name, {"data": {"now": "other"}}, NS)
            with pytest.raises(errors.Conflict, match="was expected to be at") as refused:
                await two.together([*relies, writes.create(config(f"lost-{at}"))])
            assert member_of(refused.value) == 0
            await here.create(config(f"no-{at}"))
            with pytest.raises(errors.Conflict, match="was expected to be absent") as refused:
                await two.together([relies[1], writes.create(config(f"lost-{at}"))])
            assert member_of(refused.value) == 0
        names = {found.name for found in (await here.list(NS)).objects}
        assert {f"kept-{at}" for at in range(10)} <= names and not any("lost" in name for name in names)
        await first.close()
        await second.close()

    asyncio.run(story())
