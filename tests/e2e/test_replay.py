"""A scheduler that writes down what it does, an onlooker beside it, and `allot replay` of both."""

import asyncio
import json
import signal
from pathlib import Path

from e2e.process import Component, Controllers, ServerProcess, allot
from e2e.scheduling import World, furnish


class Onlooker(Component):
    """`allot record FILE`: any kubeconfig will do."""

    user = "system:kube-scheduler"

    def __init__(self, server: ServerProcess, file: Path) -> None:
        self.command = f"record {file}"
        super().__init__(server, "onlooker")

    def _leads(self, lease: object) -> list[str]:
        return []


def test_what_schedulers_decided_is_decided_again_though_one_was_killed(tmp_path: Path):
    """kill -9 in the middle of a burst leaves a record that can be read; the next one goes on with it."""
    server = ServerProcess(tmp_path / "data")
    controllers = Controllers(server, "controllers", None, "--no-leader-elect")
    record, seen = tmp_path / "record", tmp_path / "seen"

    async def story() -> int:
        await furnish(server)
        async with World(server) as world:
            world.add(onlooker := Onlooker(server, seen))
            await asyncio.to_thread(onlooker.await_ready)
            first = world.scheduler("first", "--record", str(record))
            await asyncio.to_thread(first.await_ready)
            pods = await world.burst("a-", 9)
            await world.until(world.all_bound, "every pod placed")
            await world.burst("b-", 9)
            await asyncio.sleep(0.1)
            await asyncio.to_thread(first.end, signal.SIGKILL)
            assert allot("replay", str(record)).returncode == 0
            second = world.scheduler("second", "--record", str(record), "--packed")
            await asyncio.to_thread(second.await_ready)
            await world.until(world.all_bound, "every pod placed")
            await asyncio.sleep(3)
            await asyncio.to_thread(second.end, signal.SIGTERM)
            await asyncio.to_thread(onlooker.end, signal.SIGTERM)
            return 2 * len(pods)

    try:
        controllers.await_ready()
        placed = asyncio.run(story())
    finally:
        controllers.end(signal.SIGKILL)
        server.kill()

    told = allot("replay", str(record), "-o", "json")
    found = json.loads(told.stdout)
    assert told.returncode == 0, told.stdout + told.stderr
    assert found["decisions"] >= placed / 2 and not found["unknown"]
    assert len(found["then"]) == 2  # one scheduler spread pods, the other packed them

    told = allot("replay", str(record), "--scoring-strategy", "MostAllocated", "--policy", "first-fit")
    assert told.returncode in (0, 1) and "now:" in told.stdout

    told = allot("replay", str(seen), "-o", "json")
    found = json.loads(told.stdout)
    assert told.returncode in (0, 1), told.stderr
    assert found["seenFromOutside"] and found["decisions"] == placed and not found["unknown"]
