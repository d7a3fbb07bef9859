"""Kill -9 in the middle of concurrent writes, again and again (S1).

Used by a test for a few rounds and by bench/crash_api.py for many.
"""

import asyncio
import random
from dataclasses import dataclass, field

from allot.api import errors
from allot.client import Client, HttpsTransport, Resource, kubeconfig
from e2e.process import ServerProcess

WRITERS = 8


@dataclass
class Record:
    acknowledged: dict[str, int] = field(default_factory=dict)  # name -> revision
    attempted: set[str] = field(default_factory=set)
    newest: int = 0
    rounds: int = 0
    cut_short: int = 0  # requests that got no answer
    together: bool = False  # each write is a transaction, which makes a secret of the same name as well

    def report(self) -> dict[str, int]:
        return {
            "rounds": self.rounds,
            "acknowledged": len(self.acknowledged),
            "attempted": len(self.attempted),
            "without_an_answer": self.cut_short,
            "newest_revision": self.newest,
        }


def client_of(server: ServerProcess) -> tuple[Client, HttpsTransport]:
    transport = HttpsTransport(kubeconfig.load(server.kubeconfig))
    return Client(transport), transport


async def crash_round(server: ServerProcess, record: Record, rng: random.Random) -> None:
    """Write from all sides, kill, start again, and see what is there."""
    client, transport = client_of(server)
    configs, secrets = (client.resource("", "v1", plural) for plural in ("configmaps", "secrets"))
    before = record.newest
    number = record.rounds
    stop = asyncio.Event()

    async def writer(which: int) -> None:
        for count in range(10_000):
            if stop.is_set():
                return
            name = f"r{number}-{which}-{count}"
            record.attempted.add(name)
            body = {"metadata": {"name": name}, "data": {"x": "y" * 500}}
            try:
                if record.together:
                    wanted = [configs.writes.create(body, "default")]
                    wanted += [secrets.writes.create({"metadata": {"name": name}}, "default")]
                    made = (await client.together(wanted))[0]
                else:
                    made = await configs.create(body, "default")
            except (errors.ApiError, OSError, EOFError):
                record.cut_short += 1
                return
            record.acknowledged[name] = int(made.resource_version)

    writers = [asyncio.create_task(writer(which)) for which in range(WRITERS)]
    await asyncio.sleep(rng.uniform(0.05, 0.4))
    await asyncio.to_thread(server.kill)
    stop.set()
    await asyncio.wait(writers, timeout=30)
    await transport.close()
    await asyncio.to_thread(server.start)
    record.rounds += 1
    await check(server, record, before)


async def check(server: ServerProcess, record: Record, before: int) -> None:
    client, transport = client_of(server)
    try:
        configs = client.resource("", "v1", "configmaps")
        page = await configs.list("default")
        found = {item.name: int(item.resource_version) for item in page.objects}
        lost = {name: rv for name, rv in record.acknowledged.items() if found.get(name) != rv}
        assert not lost, f"acknowledged and gone, or changed: {dict(list(lost.items())[:3])}"
        if record.together:
            secrets = await client.resource("", "v1", "secrets").list("default")
            other = {item.name: int(item.resource_version) for item in secrets.objects}
            assert other == found, "one half of a transaction is there, and the other is not"
        assert found.keys() <= record.attempted, "something appeared that nobody wrote"
        revision = int(page.resource_version)
        highest = max([record.newest, *record.acknowledged.values()])
        assert revision >= highest, f"revisions went back from {highest} to {revision}"
        await _each_once(configs, found, before, revision)
        record.newest = revision
    finally:
        await transport.close()


async def _each_once(configs: Resource, found: dict[str, int], after: int, until: int) -> None:
    """Every object since `after` is created exactly once in the history."""
    wanted = {name for name, revision in found.items() if revision > after}
    seen: list[str] = []
    if not wanted:
        return
    async for event in configs.watch("default", resource_version=str(after or 1)):
        seen.append(event.object.name)
        if int(event.object.resource_version) >= max(found.values()):
            break
    assert sorted(seen) == sorted(wanted), "the history repeats or leaves out a write"
