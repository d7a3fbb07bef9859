"""Events: counted, bounded, and never in the way."""

import asyncio
from contextlib import asynccontextmanager

from allot.api import errors
from allot.apiserver import identities
from allot.base import Metrics, RandomIds, SystemClock
from allot.client import Client, InProcessTransport
from allot.informers import WARNING, Events, Telemetry
from allot.informers.events import BURST, REFILL_S, Budget
from allot.testing import api_server
from informers.world import NS, config_map, soon


@asynccontextmanager
async def telling():
    async with api_server() as server:
        client, clock, metrics = server.client(), SystemClock(), Metrics()
        events = Events(client, "tester", clock, RandomIds(), Telemetry(metrics, clock), metrics)
        running = asyncio.ensure_future(events.run())
        made = await client.resource("", "v1", "configmaps").create(config_map("m"))
        try:
            yield events, made, client.resource("", "v1", "events"), metrics
        finally:
            running.cancel()
            await asyncio.wait((running,))


def test_the_same_thing_said_again_raises_a_count():
    async def story() -> None:
        async with telling() as (events, about, resource, _):
            for _ in range(5):
                events.record(about, WARNING, "Broken", "it broke")
                await asyncio.sleep(0.01)
            events.record(about, WARNING, "Broken", "it broke otherwise")
            await soon(lambda: events.idle)
            found = {e.fields["message"]: e for e in (await resource.list(NS)).objects}
            assert {text: e.fields["count"] for text, e in found.items()} == {
                "it broke": 5,
                "it broke otherwise": 1,
            }
            event = found["it broke"].fields
            assert event["involvedObject"]["uid"] == about.uid
            assert event["involvedObject"]["kind"] == "ConfigMap"
            assert (event["type"], event["reason"]) == ("Warning", "Broken")
            assert event["source"] == {"component": "tester"}

    asyncio.run(story())


def test_an_object_is_not_talked_about_without_end():
    async def story() -> None:
        async with telling() as (events, about, resource, metrics):
            for n in range(100):
                events.record(about, WARNING, "Broken", f"it broke {n}")
            await soon(lambda: events.idle)
            assert len((await resource.list(NS)).objects) == BURST
            assert 'allot_events_dropped_total{component="tester",why="rate"} 75' in metrics.text()

    asyncio.run(story())


def test_an_event_that_ran_out_is_told_anew():
    async def story() -> None:
        async with telling() as (events, about, resource, _):
            events.record(about, WARNING, "Broken", "it broke")
            await soon(lambda: events.idle)
            (first,) = (await resource.list(NS)).objects
            await resource.delete(first.name, NS)
            events.record(about, WARNING, "Broken", "it broke")
            await soon(lambda: events.idle)
            (again,) = (await resource.list(NS)).objects
            assert again.fields["count"] == 1

    asyncio.run(story())


def test_what_nobody_can_be_told_is_dropped_and_counted():
    """The namespace is gone: no point in insisting."""

    async def story() -> None:
        async with telling() as (events, about, _, metrics):
            elsewhere = about.changed({"metadata": {"namespace": "no-such"}})
            events.record(elsewhere, WARNING, "Broken", "it broke")
            await soon(lambda: events.idle)
            assert "allot_events_dropped_total" in metrics.text()
            assert 'why="NotFound"} 1' in metrics.text()

    asyncio.run(story())


def test_the_budget_of_an_object_refills():
    budget = Budget()
    assert [budget.spend("a", 0.0) for _ in range(BURST + 1)] == [True] * BURST + [False]
    assert budget.spend("b", 0.0)
    assert not budget.spend("a", REFILL_S - 1)
    assert budget.spend("a", REFILL_S)
    assert not budget.spend("a", REFILL_S)


class LosesFirstAnswer:
    """A way to the server on which the answer to the first POST of an event is lost."""

    def __init__(self, inner: InProcessTransport) -> None:
        self._inner = inner
        self.posts = 0

    async def send(self, request):
        response = await self._inner.send(request)
        if request.method == "POST" and request.path.endswith("/events"):
            self.posts += 1
            if self.posts == 1:
                raise errors.Timeout("the answer was lost")
        return response

    async def close(self) -> None:
        await self._inner.close()


def test_an_event_whose_answer_was_lost_is_not_told_for_ever():
    """Its name is taken, by itself; it was written again and again, twice a second."""

    async def story() -> None:
        async with api_server() as server:
            client, clock, metrics = server.client(), SystemClock(), Metrics()
            about = await client.resource("", "v1", "configmaps").create(config_map("m"))
            way = LosesFirstAnswer(InProcessTransport(server.api.handle, identities.ADMIN))
            events = Events(Client(way), "tester", clock, RandomIds(), Telemetry(metrics, clock), metrics)
            running = asyncio.ensure_future(events.run())
            events.record(about, WARNING, "Broken", "it broke")
            await soon(lambda: way.posts >= 2 and events.idle)
            assert way.posts == 2
            assert len((await client.resource("", "v1", "events").list(NS)).objects) == 1
            running.cancel()
            await asyncio.wait((running,))

    asyncio.run(story())
