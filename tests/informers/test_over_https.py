"""Informers over HTTPS and the socket, while the server and its SQLite store stop and start again."""

import asyncio
import random
from pathlib import Path

import pytest

from allot.apiserver import Serving, ServingOptions, identities, serve
from allot.client import Client, HttpsTransport, Socket, kubeconfig
from allot.informers import Change, Informers
from components import free_ports
from informers.world import MAPS, NS, QUICK, config_map, soon, what_and_which


async def started(folder: Path, port: int) -> Serving:
    return await serve(ServingOptions(folder / "data", store="sqlite", port=port))


WAYS = {
    "https": lambda serving: Client(HttpsTransport(kubeconfig.load(serving.kubeconfig))),
    "socket": lambda serving: Client(Socket(serving.socket).transport(identities.ADMIN)),
}


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
def test_a_server_that_restarts_is_followed_again_with_nothing_missed(tmp_path, way):
    """Three restarts, with changes right before and right after each; some resume, some list anew."""

    async def story() -> None:
        (port,) = free_ports(1)
        serving = await started(tmp_path, port)
        reader = way(serving)
        async with Informers(reader, random.Random(1), pace=QUICK) as informers:
            maps = informers.use(MAPS)
            await informers.synced(maps)
            heard: list[Change] = []
            maps.handle(heard.append)
            heard.clear()
            for n in range(3):
                writer = way(serving)
                writing = writer.resource("", "v1", "configmaps")
                await writing.create({**config_map(f"kept{n}", a="1"), "binaryData": {"n": "AA=="}})
                await writing.create(config_map(f"lost{n}"))
                await soon(lambda n=n: maps.cache.get(f"lost{n}", NS))
                await writer.close()
                await serving.close()
                await asyncio.sleep(0.05)

                serving = await started(tmp_path, port)
                writer = way(serving)
                writing = writer.resource("", "v1", "configmaps")
                await writing.patch(f"kept{n}", {"data": {"a": "2"}}, NS)
                await writing.delete(f"lost{n}", NS)
                await soon(lambda n=n: maps.cache.get(f"lost{n}", NS) is None)
                await writer.close()
            await soon(lambda: maps.cache.get("kept2", NS).fields["data"] == {"a": "2"})
            assert maps.cache.get("kept0", NS).fields["binaryData"] == {"n": "AA=="}
            expected = [(x, f"{y}{n}") for n in range(3) for x, y in STORY]
            assert sorted(what_and_which(heard)) == sorted(expected)
            assert maps.report.failures >= 3
        await reader.close()
        await serving.close()

    asyncio.run(asyncio.wait_for(story(), 60))


STORY = [("added", "kept"), ("added", "lost"), ("updated", "kept"), ("deleted", "lost")]
