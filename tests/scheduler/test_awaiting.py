"""Waiting for news of objects, in place of asking again and again."""

import asyncio
import math
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from allot.api import Object, Request, Response, errors
from allot.apiserver import identities
from allot.client import Client, InProcessTransport
from allot.informers import Added, Deleted, Key, ResourceId, Updated
from allot.scheduler.awaiting import Awaiting, Known, Late, Subject

from .cluster import NS, Cluster, tell

MAPS = ResourceId("", "v1", "configmaps")
ONE = Subject(MAPS, Key(NS, "one"))
LONG_S = 60.0


class Line:
    """Carries requests to the server, counts them, and holds answers back while it is told to."""

    def __init__(self, here: Cluster) -> None:
        self._transport = InProcessTransport(here.server.api.handle, identities.ADMIN)
        self.requests: list[str] = []
        self._sent = asyncio.Semaphore(0)
        self.answers = asyncio.Event()
        self.answers.set()

    async def send(self, request: Request) -> Response:
        self.requests.append(f"{request.method} {request.path}")
        self._sent.release()
        answer = await self._transport.send(request)
        await self.answers.wait()
        return answer

    async def sent(self, requests: int) -> None:
        """Until so many more requests were sent, and who sent them had time to go on."""
        for _ in range(requests):
            await self._sent.acquire()
        for _ in range(50):
            await asyncio.sleep(0)

    async def close(self) -> None:
        await self._transport.close()


async def put(here: Cluster, words: str, name: str = "one") -> Object:
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"words": words}}
    maps = here.client.resource("", "v1", "configmaps")
    try:
        return await maps.patch(name, {"data": body["data"]}, NS)
    except errors.NotFound:
        return await maps.create(body, NS)


def words_of(known: Known, subject: Subject = ONE) -> str:
    found = known[subject]
    return found.fields["data"]["words"] if found is not None else "gone"


def says(*wanted: str) -> Callable[[Known], str | None]:
    return lambda known: words if (words := words_of(known)) in wanted else None


def run_story(story: Callable[[Cluster, Awaiting, Line], Awaitable[None]]) -> None:
    async def whole(here: Cluster) -> None:
        line = Line(here)
        awaiting = Awaiting(Client(line))
        await story(here, awaiting, line)
        assert not awaiting._waits, "whoever has what they waited for listens no more"

    tell(whole, started=False)


async def begun(waiting: asyncio.Task[Any], line: Line, requests: int = 1) -> None:
    """Until it has read so much and waits."""
    await line.sent(requests)
    assert not waiting.done()


def test_what_is_so_already_is_not_waited_for():
    async def story(here: Cluster, awaiting: Awaiting, line: Line) -> None:
        await put(here, "ready")
        assert await awaiting.until([ONE], says("ready"), LONG_S) == "ready"

    run_story(story)


def test_news_wake_who_waits_and_nothing_is_asked_for_meanwhile():
    async def story(here: Cluster, awaiting: Awaiting, line: Line) -> None:
        first = await put(here, "begun")
        waiting = asyncio.create_task(awaiting.until([ONE], says("ready"), math.inf))
        await begun(waiting, line)
        half = await put(here, "half")
        awaiting.hear(MAPS, Updated(first, half))
        await begun(waiting, line, 0)
        awaiting.hear(MAPS, Updated(half, await put(here, "ready")))
        assert await asyncio.wait_for(waiting, LONG_S) == "ready"
        assert len(line.requests) == 1

    run_story(story)


def test_news_of_others_wake_nobody():
    async def story(here: Cluster, awaiting: Awaiting, line: Line) -> None:
        await put(here, "begun")
        asked: list[str] = []
        waiting = asyncio.create_task(
            awaiting.until([ONE], lambda known: asked.append(words_of(known)), math.inf)
        )
        await begun(waiting, line)
        awaiting.hear(MAPS, Added(await put(here, "ready", "other")))
        awaiting.hear(ResourceId("", "v1", "secrets"), Added(await put(here, "ready")))
        await begun(waiting, line, 0)
        assert asked == ["begun"]
        waiting.cancel()
        await asyncio.wait([waiting])

    run_story(story)


def test_what_is_told_while_the_answer_is_on_its_way_is_not_lost():
    """The answer was read before the change, and arrives after the news of it."""

    async def story(here: Cluster, awaiting: Awaiting, line: Line) -> None:
        first = await put(here, "begun")
        line.answers.clear()
        waiting = asyncio.create_task(awaiting.until([ONE], says("ready"), LONG_S))
        await begun(waiting, line)
        awaiting.hear(MAPS, Updated(first, await put(here, "ready")))
        line.answers.set()
        assert await asyncio.wait_for(waiting, LONG_S) == "ready"

    run_story(story)


def test_news_that_are_older_than_the_answer_are_not_believed():
    """A watch may be behind: what it tells now was so before the server was asked."""

    async def story(here: Cluster, awaiting: Awaiting, line: Line) -> None:
        old = await put(here, "lost")
        await put(here, "begun")
        waiting = asyncio.create_task(awaiting.until([ONE], says("lost", "ready"), LONG_S))
        await begun(waiting, line)
        awaiting.hear(MAPS, Added(old))
        await begun(waiting, line, 0)
        awaiting.hear(MAPS, Updated(old, await put(here, "ready")))
        assert await asyncio.wait_for(waiting, LONG_S) == "ready"

    run_story(story)


def test_what_is_gone_is_known_to_be_gone():
    async def story(here: Cluster, awaiting: Awaiting, line: Line) -> None:
        assert await awaiting.until([ONE], says("gone"), LONG_S) == "gone"
        first = await put(here, "begun")
        waiting = asyncio.create_task(awaiting.until([ONE], says("gone"), LONG_S))
        await begun(waiting, line, 2)  # the one before it read too
        awaiting.hear(MAPS, Deleted(first))
        assert await asyncio.wait_for(waiting, LONG_S) == "gone"

    run_story(story)


def test_an_answer_that_is_overtaken_by_the_end_does_not_bring_anything_back():
    async def story(here: Cluster, awaiting: Awaiting, line: Line) -> None:
        first = await put(here, "begun")
        line.answers.clear()
        waiting = asyncio.create_task(awaiting.until([ONE], says("begun", "gone"), LONG_S))
        await begun(waiting, line)
        awaiting.hear(MAPS, Deleted(first))
        line.answers.set()
        assert await asyncio.wait_for(waiting, LONG_S) == "gone"

    run_story(story)


def test_the_end_of_an_earlier_object_says_nothing_of_a_later_one():
    async def story(here: Cluster, awaiting: Awaiting, line: Line) -> None:
        first = await put(here, "earlier")
        await here.client.resource("", "v1", "configmaps").delete("one", NS)
        await put(here, "later")
        waiting = asyncio.create_task(awaiting.until([ONE], says("gone"), LONG_S))
        await begun(waiting, line)
        awaiting.hear(MAPS, Deleted(first))
        await begun(waiting, line, 0)
        waiting.cancel()
        await asyncio.wait([waiting])

    run_story(story)


def test_who_waited_too_long_is_told_how_it_stands():
    async def story(here: Cluster, awaiting: Awaiting, line: Line) -> None:
        await put(here, "begun")
        late = await awaiting.until([ONE], says("ready"), 0.05)
        assert isinstance(late, Late)
        assert words_of(late.known) == "begun"

    run_story(story)


def test_what_the_judge_raises_ends_the_waiting():
    async def story(here: Cluster, awaiting: Awaiting, line: Line) -> None:
        def refuses(known: Known) -> None:
            raise LookupError(words_of(known))

        await put(here, "begun")
        with pytest.raises(LookupError, match="begun"):
            await awaiting.until([ONE], refuses, LONG_S)

    run_story(story)


def test_several_may_wait_for_one_object_and_one_for_several():
    async def story(here: Cluster, awaiting: Awaiting, line: Line) -> None:
        two = Subject(MAPS, Key(NS, "two"))
        first = await put(here, "begun")
        await put(here, "ready", "two")

        def both(known: Known) -> bool | None:
            return True if {words_of(known, ONE), words_of(known, two)} == {"ready"} else None

        waiting = asyncio.gather(
            awaiting.until([ONE, two], both, LONG_S), awaiting.until([ONE], says("ready"), LONG_S)
        )
        await line.sent(3)
        awaiting.hear(MAPS, Updated(first, await put(here, "ready")))
        assert await asyncio.wait_for(waiting, LONG_S) == [True, "ready"]

    run_story(story)
