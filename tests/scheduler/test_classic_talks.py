"""The word of the server in a talk with drivers, what is written of it, and whose talks are let be."""

import asyncio
from datetime import UTC, datetime
from typing import Any

import pytest

from allot.api import User, encode
from allot.api.classic import POD_SCHEDULING
from allot.apiserver import identities
from allot.apiserver.storing.repository import key_of
from allot.base import SystemClock
from allot.client import Client
from allot.scheduler import sweeping
from allot.scheduler.awaiting import Awaiting
from allot.scheduler.binding import Binder, Failed
from allot.scheduler.claim import ClaimInfo
from allot.scheduler.claiming import Outdated
from allot.scheduler.cycle import Placed
from allot.scheduler.framework import CycleState
from allot.scheduler.mirror import CLASSIC, ELSEWHERE, SOURCES
from allot.scheduler.negotiating import Want
from allot.scheduler.negotiation import Negotiating, Silent
from allot.scheduler.negotiation_writes import TalkWriter
from allot.scheduler.pod import PodInfo
from allot.scheduler.rights import readable
from allot.scheduler.talk import Talk
from allot.scheduler.writes import EndTalk, Negotiate, ReserveClaim
from allot.store import Put

from .classic import API_VERSION, DRIVER, place
from .classic_driver import Driver
from .cluster import NS, Fields, pod
from .test_classic import Classic, story_of
from .wire import Wire

TIMEOUT_S = 1.0


async def asked_for(world: Classic) -> Placed:
    """A pod with one claim, decided on and not yet negotiated for."""
    await world.furnish("a")
    await world.claim("c")
    made = PodInfo.of(await world.pod("web", "c"))
    found = await world.here.get("resourceclaims", "c")
    assert found is not None
    wants = (Want("c", ClaimInfo.of(found), DRIVER),)
    writes = (Negotiate(wants, place("a"), ("a",), None),)
    return Placed(CycleState(made, datetime.now(UTC)), "a", writes)


def negotiating(world: Classic, told: list[Any]) -> Negotiating:
    """One that hears nothing by itself: nobody tells it what informers would."""
    client = world.here.server.client(identities.SCHEDULER)
    return Negotiating(SystemClock(), Awaiting(client), TalkWriter(client), told.append, TIMEOUT_S)


def test_a_driver_is_late_only_by_the_word_of_the_server():
    """TALK7: all news were missed, and the claim was allocated in time."""

    async def story(world: Classic, driver: Driver) -> None:
        placed = await asked_for(world)
        settled = await negotiating(world, []).settled(placed, [])
        assert [type(one) for one in settled.writes] == [ReserveClaim, EndTalk]
        assert driver.allocations == 1

    story_of(story, started=False)


def test_a_driver_that_has_done_nothing_by_then_is_late():
    async def story(world: Classic, driver: Driver) -> None:
        placed = await asked_for(world)
        with pytest.raises(Silent, match=f"driver {DRIVER} has not answered for claim c since 1 s"):
            await negotiating(world, []).settled(placed, [])

    story_of(story, started=False, runs=False)


@pytest.mark.parametrize("refuses", [True, False])
def test_a_driver_that_says_no_or_nothing_is_nobodys_mistake(refuses: bool):
    """The pod is tried again at once after a no, which is known now, and in a while after silence."""

    async def story(world: Classic, driver: Driver) -> None:
        driver.allocates = False
        driver.refuses = {"a"} if refuses else set()
        placed = await asked_for(world)
        reports: list[Any] = []
        client = world.here.server.client(identities.SCHEDULER)
        clock, timeouts = SystemClock(), {"binding_timeout_s": 1.0, "driver_timeout_s": TIMEOUT_S}
        await Binder(client, clock, reports.append, Awaiting(client), **timeouts).bind(placed)
        failed = reports[-1]
        assert isinstance(failed, Failed)
        assert (failed.is_outdated, failed.is_mistake) == (refuses, False)
        assert ("refused node a" if refuses else "has not answered") in failed.error

    story_of(story, started=False)


def test_what_stands_there_already_is_not_written_again_and_what_drivers_said_stays():
    """TALK3."""

    async def story(world: Classic, driver: Driver) -> None:
        wire = Wire.to(world.here)
        writer, made = TalkWriter(Client(wire)), PodInfo.of(await world.pod("web"))
        talk = await writer.ask(made, None, ("a", "b"))
        said = {"resourceClaims": [{"name": "c", "unsuitableNodes": ["b"]}]}
        await world.talks.update_status({**talk.object.fields, "status": said})
        written = len(wire.writes)
        known = await writer.read(made)
        assert (await writer.ask(made, known, ("a", "b"))).object == known.object
        assert len(wire.writes) == written
        chosen = await writer.ask(made, talk, ("a", "b"), "a")  # on top of what is known, which is old
        assert chosen.selected == "a"
        assert chosen.answers == {"c": frozenset("b")}

    story_of(story, started=False, runs=False)


@pytest.mark.parametrize("count", [1, 2])
def test_a_node_is_not_selected_in_an_object_that_nobody_has_answered_in(count: int):
    """TALK8, P6: somebody removed the object and made it anew, and the scheduler had not heard of it."""

    async def story(world: Classic, driver: Driver) -> None:
        await world.furnish("a")
        made = PodInfo.of(await world.pod("web"))
        names = ("c", "d")[:count]
        for name in names:
            await world.claim(name)
        found = [await world.here.get("resourceclaims", name) for name in names]
        wants = [Want(name, ClaimInfo.of(one), DRIVER) for name, one in zip(names, found, strict=True) if one]
        writer = TalkWriter(world.here.server.client(identities.SCHEDULER))
        first = await writer.ask(made, None, ("a",))
        said = {"resourceClaims": [{"name": name} for name in names]}
        answered = Talk.of(await world.talks.update_status({**first.object.fields, "status": said}))
        await writer.end(answered)
        await writer.ask(made, None, ("a",))

        if count == 1:
            assert (await writer.ask(made, answered, ("a",), "a", wants)).selected == "a"
            return
        with pytest.raises(Outdated, match="is gone"):
            await writer.ask(made, answered, ("a",), "a", wants)
        now = await writer.read(made)
        assert now is not None and not now.selected

    story_of(story, started=False, runs=False)


@pytest.mark.parametrize(
    "junk",
    [
        {"spec": {"potentialNodes": 7}},
        {"status": {"resourceClaims": "no"}},
        {"metadata": {"ownerReferences": 5}},
    ],
)
def test_a_podscheduling_that_cannot_be_read_is_made_anew(junk: Fields):
    """P5, MIRROR1: somebody wrote into the store past the server. Only its pod could wait for it."""

    async def story(world: Classic, driver: Driver) -> None:
        own = {"name": "web", "namespace": NS, "uid": "junk", **junk.get("metadata", {})}
        body = {"apiVersion": API_VERSION, "kind": "PodScheduling", **junk, "metadata": own}
        key = key_of(POD_SCHEDULING, NS, "web")
        await world.here.server.api.store.transact([], [Put(key, encode(body))])
        await world.furnish("a")
        await world.claim("c")
        await world.pod("web", "c")

        async def chosen() -> bool:
            now = await world.talk("web")
            return now is not None and now.uid != "junk" and now.fields["spec"]["selectedNode"] == "a"

        await world.here.until(chosen, "a node chosen in another object")

    story_of(story, runs=False)


def test_the_talk_of_another_schedulers_pod_is_let_be(monkeypatch: pytest.MonkeyPatch):
    """P5: of pods that have ended, and that the scheduler has never known; its own goes."""
    monkeypatch.setattr(sweeping, "AFTER_S", 0.05)

    async def story(world: Classic, driver: Driver) -> None:
        await world.furnish("a")
        for name, scheduler in (("theirs", "other"), ("ours", "default-scheduler")):
            made = await world.here.create("pods", pod(name, nodeName="a", schedulerName=scheduler))
            ended = made.changed({"status": {"phase": "Succeeded"}})
            await world.here.resource("pods").update_status(ended)
            owner = {"apiVersion": "v1", "kind": "Pod", "name": name, "uid": made.uid}
            metadata = {"name": name, "ownerReferences": [owner]}
            body = {"apiVersion": API_VERSION, "kind": "PodScheduling", "metadata": metadata, "spec": {}}
            await world.talks.create(body, NS)
        await world.ended("ours")
        await asyncio.sleep(0.5)
        assert await world.talk("theirs") is not None

    story_of(story, runs=False)


def test_who_may_not_read_classic_kinds_follows_all_others():
    """A role that was written for another scheduler names none of them, and pods are placed all the same."""

    async def story(world: Classic, driver: Driver) -> None:
        server = world.here.server
        stranger = User("stranger", groups=("system:authenticated",))
        served = set(SOURCES) - set(ELSEWHERE)
        assert set(await readable(server.client(identities.SCHEDULER))) == served
        hidden = served - set(await readable(server.client(stranger)))
        assert hidden == set(CLASSIC)

    story_of(story, started=False, runs=False)
