"""The reflector against a server that says what the test has written down.

A script is a list of answers, one for each request; the last one hangs. Waiting is
recorded and takes no time.
"""

import asyncio
import random
from itertools import pairwise
from typing import Any

from allot.api import Object, encode, errors
from allot.client import EventType, Page, WatchEvent
from allot.informers import Cache, Change, Pace
from allot.informers.reflector import Audience, Reflector
from informers.world import soon, what_and_which

PACE = Pace(first_s=1.0, longest_s=8.0, absent_s=100.0, watch_s=60)


def thing(name: str, version: int, uid: str = "") -> Object:
    metadata = {"name": name, "namespace": "ns", "uid": uid or name, "resourceVersion": str(version)}
    return Object(encode({"kind": "Thing", "apiVersion": "v1", "metadata": metadata}))


def added(name: str, version: int, uid: str = "") -> WatchEvent:
    return WatchEvent(EventType.ADDED, thing(name, version, uid))


def modified(name: str, version: int) -> WatchEvent:
    return WatchEvent(EventType.MODIFIED, thing(name, version))


def deleted(name: str, version: int) -> WatchEvent:
    return WatchEvent(EventType.DELETED, thing(name, version))


def bookmark(version: int, ends: bool = False) -> WatchEvent:
    metadata: dict[str, Any] = {"resourceVersion": str(version)}
    if ends:
        metadata["annotations"] = {"k8s.io/initial-events-end": "true"}
    return WatchEvent(EventType.BOOKMARK, Object(encode({"kind": "Thing", "metadata": metadata})))


class Script:
    """A resource whose every answer is written down: events, pages, or an error at the end."""

    group, api_version, plural = "", "v1", "things"

    def __init__(self, *answers: list[Any]) -> None:
        self.answers = list(answers)
        self.asked: list[dict[str, Any]] = []

    async def watch(self, **options: Any):
        self.asked.append(options)
        for said in await self._next():
            if isinstance(said, Exception):
                raise said
            yield said

    async def pages(self, **options: Any):
        self.asked.append(options)
        for said in await self._next():
            if isinstance(said, Exception):
                raise said
            yield said

    async def _next(self) -> list[Any]:
        if not self.answers:
            await asyncio.Event().wait()
        return self.answers.pop(0)


class Played:
    def __init__(self, *answers: list[Any]) -> None:
        self.script, self.cache = Script(*answers), Cache()
        self.heard: list[Change] = []
        self.lists = 0
        self.absences = 0
        self.waits: list[float] = []
        self.reflector = Reflector(
            self.script,  # type: ignore[arg-type]
            self.cache,
            Audience(self.heard.append, self._listed, self._absent),
            sleep=self._sleep,
            rng=random.Random(1),
            pace=PACE,
        )

    def run(self) -> "Played":
        """Until the script is told."""

        async def whole() -> None:
            running = asyncio.ensure_future(self.reflector.run())
            await soon(lambda: not self.script.answers or running.done())
            await asyncio.sleep(0.01)
            running.cancel()
            await asyncio.wait((running,))

        asyncio.run(whole())
        return self

    async def _sleep(self, wait_s: float) -> None:
        self.waits.append(wait_s)
        await asyncio.sleep(0)

    def _listed(self) -> None:
        self.lists += 1

    def _absent(self) -> None:
        self.absences += 1

    @property
    def names(self) -> list[str]:
        return sorted(o.name for o in self.cache)


def test_an_object_whose_name_cannot_be_read_costs_a_wait_and_a_list_and_not_the_process():
    nameless = WatchEvent(EventType.ADDED, Object(encode({"metadata": {"name": 7}})))
    played = Played([bookmark(2, ends=True), nameless], [added("a", 5), bookmark(6, ends=True)]).run()
    assert played.names == ["a"]
    assert played.lists == 2 and played.waits


def test_what_is_told_again_after_its_end_does_not_come_back():
    """CACHE3: a stream repeats what it had already said, the beginning of a dead object included."""
    played = Played(
        [
            added("a", 1),
            bookmark(2, ends=True),
            deleted("a", 5),
            added("a", 1),
            modified("a", 4),
            added("b", 6),
        ]
    ).run()
    assert what_and_which(played.heard) == [("added", "a"), ("deleted", "a"), ("added", "b")]
    assert played.cache.stale == 2


def test_several_objects_of_one_revision_are_all_told():
    """One transaction may write many objects: the same version is not an older one."""
    played = Played(
        [bookmark(2, ends=True), added("a", 5), added("b", 5), deleted("a", 6), added("c", 6)]
    ).run()
    assert played.names == ["b", "c"]


def test_a_watch_resumes_behind_the_last_thing_it_heard_bookmarks_included():
    played = Played([bookmark(2, ends=True), added("a", 5), bookmark(9)], [added("b", 11)], []).run()
    resumed = [one.get("resource_version", "") for one in played.script.asked]
    assert resumed[:3] == ["", "9", "11"]
    assert played.lists == 1


def test_changes_between_the_initial_events_count():
    played = Played(
        [added("a", 1), added("b", 1), deleted("a", 3), modified("b", 4), bookmark(5, True)]
    ).run()
    assert what_and_which(played.heard) == [("added", "b")]


def test_a_stream_that_ends_before_it_told_everything_is_not_believed():
    played = Played([added("a", 1), bookmark(2, True)], [errors.Expired("old")], [added("b", 3)], []).run()
    assert played.names == ["a"]
    assert played.lists == 1


def test_a_history_that_is_gone_costs_a_list():
    """REFL4."""
    played = Played(
        [added("a", 1), added("b", 1), bookmark(2, True), errors.Expired("too old")],
        [added("b", 1), added("c", 7), bookmark(8, True)],
    ).run()
    assert what_and_which(played.heard) == [("added", "a"), ("added", "b"), ("deleted", "a"), ("added", "c")]


def test_waits_grow_stay_bounded_and_never_repeat_exactly():
    played = Played(*[[errors.Unavailable("away")] for _ in range(8)], [bookmark(2, True)]).run()
    for wait_s, longest_s in zip(played.waits, [1, 2, 4, 8, 8, 8, 8, 8], strict=False):
        assert longest_s / 2 <= wait_s <= longest_s
    assert len(set(played.waits[3:8])) == 5


def test_a_server_that_ends_every_watch_at_once_is_not_asked_without_pause():
    played = Played([bookmark(2, True)], [], [], [], []).run()
    assert len(played.waits) >= 4


def test_not_served_is_believed_when_it_is_said_twice():
    """A server that is just starting may not know its custom resources yet."""
    missing = [errors.NotFound("the server could not find the requested resource")]
    once = Played(
        [added("a", 1), bookmark(2, True), errors.Expired("x")], missing, [added("a", 1), bookmark(2, True)]
    )
    once.run()
    assert what_and_which(once.heard) == [("added", "a")]
    assert once.absences == 0
    assert once.reflector.report.served

    twice = Played([added("a", 1), bookmark(2, True), errors.Expired("x")], missing, missing).run()
    assert what_and_which(twice.heard) == [("added", "a"), ("deleted", "a")]
    assert twice.absences == 1
    assert not twice.reflector.report.served
    assert twice.waits[-1] >= PACE.absent_s / 2


def test_a_list_that_loses_its_pages_is_taken_whole():
    """The revision of the first page is compacted before the second is asked for."""
    first = Page((thing("a", 1),), "5", "more")
    whole = Page((thing("a", 1), thing("b", 2)), "7")
    played = Played(
        [errors.Invalid("sendInitialEvents")], [first, errors.Expired("x")], [whole], [added("c", 9)]
    )
    played.run()
    assert played.names == ["a", "b", "c"]
    assert [one["limit"] for one in played.script.asked if "limit" in one] == [500, 0]
    assert what_and_which(played.heard)[:2] == [("added", "a"), ("added", "b")]


def test_a_long_list_is_taken_over_in_pieces():
    """Others run in between: nothing holds the loop for a whole list."""
    played = Played([*(added(f"m{n}", 1) for n in range(1000)), bookmark(2, True)])
    turns = 0
    pieces: list[int] = []

    async def beat() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    async def whole() -> None:
        beating = asyncio.ensure_future(beat())
        running = asyncio.ensure_future(played.reflector.run())
        while not played.lists:
            pieces.append(len(played.heard))
            await asyncio.sleep(0)
        for task in (running, beating):
            task.cancel()
        await asyncio.wait((running, beating))

    asyncio.run(whole())
    assert turns >= 9
    assert max(after - before for before, after in pairwise(pieces)) <= 100
