"""A cluster of three processes on one machine that talk over the server's socket.

Controllers and scheduler have no credentials: they say whom they act for, and may do what
those may. After the story each pod was bound once and everything comes back.
"""

import asyncio
import signal
import subprocess
import sys

from e2e.process import Component, ServerProcess
from e2e.scheduling import World, furnish, is_allocated


class Near(Component):
    """A component that is shown the socket and nothing else."""

    def __init__(self, server: ServerProcess, command: str) -> None:
        self.name = command
        self._log = (server.data_dir.parent / f"{command}.log").open("a")
        options = ["--socket", str(server.data_dir / "api.sock"), "--no-leader-elect"]
        self.process = subprocess.Popen(
            [sys.executable, "-m", "allot.cli", command, *options],
            stdout=subprocess.PIPE,
            stderr=self._log,
            stdin=subprocess.DEVNULL,
            text=True,
        )


def test_pods_are_placed_over_the_socket_also_when_the_server_is_killed_meanwhile(tmp_path):
    async def story(server: ServerProcess) -> None:
        await furnish(server)
        async with World(server) as world:
            for command in ("controllers", "scheduler"):
                await asyncio.to_thread(world.add(Near(server, command)).await_ready)
            await world.burst("a", 12)
            await world.until(world.all_bound, "every pod placed")
            await world.burst("b", 18)
            await world.becomes(12, is_allocated)
            await asyncio.to_thread(server.kill)
            await asyncio.to_thread(server.start)
            await world.until(world.all_bound, "every pod placed")
            await world.check()
            assert [part.process.poll() for part in world.parts] == [None, None]
            await world.check_given_back()
            assert [part.end(signal.SIGTERM) for part in world.parts] == [0, 0]

    server = ServerProcess(tmp_path / "data")
    try:
        asyncio.run(asyncio.wait_for(story(server), 150))
    finally:
        server.stop()
    assert not (tmp_path / "data" / "api.sock").exists()
