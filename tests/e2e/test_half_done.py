"""Every controller is killed with its work half done, and whoever comes next finishes it.

kill -9 of `allot controllers`, over HTTPS, on the SQLite store. All stories are told at once:
their work is written down, then a copy begins. Every few moments it is stopped wherever it
stands, and the work is looked at through the API. Whose work is nearly done is given more,
so that nobody is done before the last has begun. When everybody's work is half done, the
copy is killed as it stands.
"""

import asyncio
import signal
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

from allot.client import Client, HttpsTransport, kubeconfig
from allot.controllers import ALL
from e2e.process import Controllers, Lease, ServerProcess
from e2e.stories import STORIES, Api, Story, Telling

LEASE = Lease(duration_s=4, renew_deadline_s=3, retry_period_s=0.3)
GATES = ("--feature-gates", "DRAResourcePoolStatus=true")  # one controller is off without it
MOMENT_S = 0.03
SOON_S = 60.0


class World:
    def __init__(self, server: ServerProcess, api: Api) -> None:
        self.server, self.api = server, api
        self.copies: list[Controllers] = []

    def start(self, name: str) -> Controllers:
        copy = Controllers(self.server, name, LEASE, *GATES)
        self.copies.append(copy)
        return copy

    def end(self) -> None:
        for copy in self.copies:
            if copy.process.returncode is None:
                copy.end(signal.SIGKILL)

    async def leader(self, *among: str) -> Controllers:
        end = asyncio.get_running_loop().time() + SOON_S
        while (name := await self.api.leader()) not in among:
            assert asyncio.get_running_loop().time() < end, f"{name!r} leads, and none of {among}"
            await asyncio.sleep(0.02)
        return next(copy for copy in reversed(self.copies) if copy.name == name)


class Work:
    """A story being told, and how far its controller is."""

    def __init__(self, story: Story, api: Api) -> None:
        self.story, self.here = story, Telling(api, "run")
        self.done = 0

    async def begin(self) -> None:
        await self.story.prepare(self.here)
        await self._give(self.story.at_once)

    async def look(self) -> None:
        self.done = await self.story.done(self.here)

    @property
    def is_half_done(self) -> bool:
        return 0 < self.done < self._steps

    async def refill(self) -> None:
        if self._steps - self.done < self.story.at_once * self.story.steps / 2:
            await self._give(self.story.at_once)

    async def end(self) -> None:
        end = asyncio.get_running_loop().time() + SOON_S
        while wrong := await self.story.wrong(self.here):
            assert asyncio.get_running_loop().time() < end, f"{self}: {wrong}"
            await asyncio.sleep(0.1)

    @property
    def _steps(self) -> int:
        return len(self.here.names) * self.story.steps

    async def _give(self, count: int) -> None:
        await self.story.give(self.here, self.here.next(count))

    def __str__(self) -> str:
        return f"{self.story.controller} ({self.done}/{self._steps})"


async def kill_half_way(world: World, victim: Controllers, works: Sequence[Work]) -> None:
    end = asyncio.get_running_loop().time() + SOON_S
    while True:
        await asyncio.sleep(MOMENT_S)
        victim.pause()
        await asyncio.gather(*(work.look() for work in works))
        if all(work.is_half_done for work in works):
            break
        await asyncio.gather(*(work.refill() for work in works))
        assert asyncio.get_running_loop().time() < end, f"never all half done: {', '.join(map(str, works))}"
        victim.resume()
    assert await world.api.leader() == victim.name, "it was stopped for so long that another one leads"
    victim.end(signal.SIGKILL)


def tell(
    tmp_path: Path, copies: Sequence[str], goes_on: Callable[[World, Controllers], Awaitable[None]]
) -> None:
    """Start the copies, kill the one that leads, and see all work done after `goes_on`."""
    server = ServerProcess(tmp_path / "data", "sqlite", 0, *GATES)

    async def story() -> None:
        client = Client(HttpsTransport(kubeconfig.load(server.kubeconfig)))
        world = World(server, Api(client))
        works = [Work(story, world.api) for story in STORIES]
        try:
            await asyncio.gather(*(work.begin() for work in works))
            for name in copies:
                world.start(name)
            victim = await world.leader(*copies)
            await kill_half_way(world, victim, works)
            await goes_on(world, victim)
            await asyncio.gather(*(work.end() for work in works))
        finally:
            world.end()
            await client.close()

    try:
        asyncio.run(asyncio.wait_for(story(), 150))
    finally:
        server.kill()


def test_another_copy_takes_over_what_every_controller_left_half_done(tmp_path):
    async def taken_over(world: World, killed: Controllers) -> None:
        await world.leader(*(copy.name for copy in world.copies if copy is not killed))

    tell(tmp_path, ("first", "second"), taken_over)


def test_every_controller_goes_on_when_it_is_started_again(tmp_path):
    """And so does the server, which dies at the same moment."""

    async def started_again(world: World, killed: Controllers) -> None:
        await asyncio.to_thread(world.server.kill)
        await asyncio.to_thread(world.server.start)
        world.start(killed.name)

    tell(tmp_path, ("only",), started_again)


def test_there_is_a_story_for_every_controller():
    assert sorted(story.controller for story in STORIES) == sorted(one.name for one in ALL)
