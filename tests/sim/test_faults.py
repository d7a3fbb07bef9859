"""What goes wrong between a component and its server, one at a time."""

import asyncio
import contextlib

import pytest

from allot.api import Request, Response, errors
from allot.apiserver import identities
from allot.sim.component import Component
from allot.sim.faults import LATE_S_MAX, RATES, RIVALS_WEIGH, Deaf, Faults, FaultyTransport, Fenced
from allot.sim.journal import Journal
from allot.sim.loop import run
from allot.sim.lots import Lots

READ, WRITE, WATCH = (
    Request("GET", "/api/v1/pods"),
    Request("PATCH", "/api/v1/pods/p"),
    Request("GET", "/watch"),
)
LINES = [b'{"type":"ADDED"}', b'{"type":"BOOKMARK"}', b'{"type":"DELETED"}']


class Server:
    """Notes what it carries out. A request with a pause takes its time."""

    def __init__(self, pause_s=0.0):
        self.done = []
        self._pause_s = pause_s

    async def send(self, request):
        if self._pause_s:
            await asyncio.sleep(self._pause_s)
        self.done.append(request.method)
        return Response(200, stream=self._stream() if request.path == "/watch" else None)

    async def _stream(self):
        for line in LINES:
            yield line

    async def close(self):
        return


def faults_with(*kinds):
    """Those strike always, the others never."""
    loop = asyncio.get_running_loop()

    async def compact():
        return

    rates = {name: float(name in kinds) for name in RATES}
    return Faults(Lots(1), Journal(loop.time), compact, rates=rates)


def way(server, *kinds):
    return FaultyTransport("c", server, faults_with(*kinds), lambda: None)


def test_without_faults_everything_arrives_and_nothing_is_noted():
    async def story():
        server = Server()
        transport = way(server)
        await transport.send(WRITE)
        stream = (await transport.send(WATCH)).stream
        return server.done, [line async for line in stream], transport._faults.struck

    assert run(story()) == (["PATCH", "GET"], LINES, {})


@pytest.mark.parametrize(
    "kind, error, done",
    [
        ("refused", errors.Unavailable, []),
        ("conflict", errors.Conflict, []),
        ("unanswered", errors.Timeout, ["PATCH"]),
        ("late", errors.Timeout, []),
    ],
)
def test_a_write_fails_in_its_own_way(kind, error, done):
    async def story():
        server = Server()
        with pytest.raises(error):
            await way(server, kind).send(WRITE)
        return list(server.done)

    assert run(story()) == done


def test_what_is_late_is_carried_out_when_nobody_expects_it():
    async def story():
        server = Server()
        with contextlib.suppress(errors.Timeout):
            await way(server, "late").send(WRITE)
        await asyncio.sleep(LATE_S_MAX)
        return server.done

    assert run(story()) == ["PATCH"]


@pytest.mark.parametrize(
    "kind, heard",
    [
        ("repeated", [0, 0, 1, 2, 2]),
        ("delayed", [0, 1, 2]),
        ("stale", [0, 1, 2]),
        ("cut", []),
        ("forgotten", []),
    ],
)
def test_a_watch_fails_in_its_own_way(kind, heard):
    """Bookmarks are left alone: they only say how far a watch has come."""

    async def story():
        lines = []
        with contextlib.suppress(errors.Unavailable):
            async for line in (await way(Server(), kind).send(WATCH)).stream:
                lines.append(LINES.index(line))
        return lines, asyncio.get_running_loop().time()

    lines, seconds = run(story())
    assert lines == heard
    assert (seconds > 0) == (kind in ("delayed", "stale"))


@pytest.mark.parametrize("forgets, heard", [(False, LINES), (True, [])])
def test_who_was_deaf_hears_what_came_meanwhile_or_has_to_start_over(forgets, heard):
    async def story():
        transport, loop, lines = way(Server()), asyncio.get_running_loop(), []
        transport._faults.deaf["c", "watch"] = Deaf(loop.time() + 60, forgets)
        with contextlib.suppress(errors.Unavailable):
            async for line in (await transport.send(WATCH)).stream:
                lines.append(line)
        again = [line async for line in (await transport.send(WATCH)).stream]
        return lines, loop.time(), again, transport._faults.struck["forgotten"]

    assert run(story()) == (heard, 60.0, LINES, int(forgets))


def test_while_there_are_rivals_conflicts_are_more_frequent():
    async def story():
        transport = way(Server())
        transport._faults.rates = {**transport._faults.rates, "conflict": 1 / RIVALS_WEIGH}
        transport._faults.rivals_until_s = asyncio.get_running_loop().time() + 60
        with pytest.raises(errors.Conflict):
            await transport.send(WRITE)
        await asyncio.sleep(60)
        done = await asyncio.gather(*(transport.send(WRITE) for _ in range(50)), return_exceptions=True)
        return sum(isinstance(one, errors.Conflict) for one in done)

    assert run(story()) < 25


def test_a_story_can_go_without_a_fault():
    """By its kind, or by the name of one occurrence."""

    async def story():
        for without in ({"refused"}, {"refused c PATCH /api/v1/pods/p #1"}):
            transport = way(Server(), "refused")
            transport._faults.without = without
            await transport.send(WRITE)

    run(story())


def test_the_same_request_has_the_same_luck_whatever_else_was_asked():
    async def story(others):
        transport = way(Server(), "slow")
        for _ in range(others):
            await transport.send(READ)
        began_s = asyncio.get_running_loop().time()
        await transport.send(WRITE)
        return round(asyncio.get_running_loop().time() - began_s, 9)

    assert run(story(0)) == run(story(3)) > 0


# -- components ---------------------------------------------------------------------------------


def component(server, main, faults):
    return Component("c", main, lambda user: server, faults)


def test_a_dead_component_writes_nothing():
    """Not from a `finally` block, and not from what it had begun to prepare."""

    async def story():
        server = Server()

        async def main(connect):
            transport = connect(identities.ADMIN)
            try:
                await asyncio.sleep(60)
            finally:
                await transport.send(WRITE)

        victim = component(server, main, faults_with())
        victim.start()
        await asyncio.sleep(1)
        await victim.kill()
        return server.done, victim.failures

    assert run(story()) == ([], [])


def test_what_was_sent_before_death_is_the_servers_to_finish():
    async def story():
        server = Server(pause_s=5)

        async def main(connect):
            await connect(identities.ADMIN).send(WRITE)

        victim = component(server, main, faults_with())
        victim.start()
        await asyncio.sleep(1)
        await victim.kill()
        await asyncio.sleep(10)
        return server.done

    assert run(story()) == ["PATCH"]


def test_a_component_dies_at_work():
    """After its third request, in the middle of whatever it does next."""

    async def story():
        server = Server()

        async def main(connect):
            transport = connect(identities.ADMIN)
            while True:
                await transport.send(WRITE)
                await asyncio.sleep(1)

        victim = component(server, main, faults_with())
        victim.start()
        await victim.kill_at_work(requests=3, steps=0, within_s=60)
        await asyncio.sleep(10)
        return server.done

    assert run(story()) == ["PATCH"] * 3


def test_a_component_that_ends_by_itself_is_a_bug():
    async def story():
        async def main(connect):
            raise ValueError("a bug")

        victim = component(Server(), main, faults_with())
        victim.start()
        await asyncio.sleep(1)
        return [str(error) for error in victim.failures]

    assert run(story()) == ["a bug"]


def test_whoever_is_dead_is_told_so():
    async def story():
        transport = way(Server())
        transport.fence()
        with pytest.raises(Fenced):
            await transport.send(READ)

    run(story())
