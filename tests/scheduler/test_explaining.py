"""Why a pod waits, where its owner looks: when it is said, how often, and when it is not (P3).

Against the real server, with shorter times than in real life.
"""

import asyncio
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

import pytest

from allot.allocation import Explanation, Features
from allot.api import errors
from allot.base import Metrics, RandomIds, SystemClock
from allot.client import Client
from allot.informers import Events, Telemetry
from allot.scheduler import explaining
from allot.scheduler.cycle import Cycle, Unplaced
from allot.scheduler.explaining import MESSAGE_MAX, Explainer, explained, summary
from allot.scheduler.framework import Checks, CycleState, Event, Rejection, Sentence
from allot.scheduler.pod import PodInfo
from allot.scheduler.snapshot import Snapshot

from . import objects
from .cluster import NS, Cluster, pod, tell
from .wire import Wire

NOW = datetime(2026, 1, 1, tzinfo=UTC)
EVERY_S, BLINK_S, PATIENCE_S = 0.5, 0.05, 0.3


def unplaced(reasons: dict[str, int], nodes: int = 0, of: PodInfo | None = None) -> Unplaced:
    counted = Counter({Rejection("plugin", reason): count for reason, count in reasons.items()})
    return Unplaced(
        CycleState(of or objects.pod(), NOW), "signature", nodes or sum(counted.values()), counted
    )


# -- the words --------------------------------------------------------------------------------------


def test_nodes_are_counted_by_reason_and_the_commonest_comes_first():
    told = summary(unplaced({"Insufficient cpu": 1, "cannot allocate all claims": 3, "are cordoned": 1}))
    assert told == (
        "0/5 nodes are available: 3 cannot allocate all claims, 1 Insufficient cpu, 1 are cordoned."
    )


def test_one_reason_by_many_plugins_is_one_reason():
    counted = Counter({Rejection("one", "Insufficient cpu"): 2, Rejection("other", "Insufficient cpu"): 1})
    told = summary(Unplaced(CycleState(objects.pod(), NOW), "signature", 3, counted))
    assert told == "0/3 nodes are available: 3 Insufficient cpu."


class Grumpy:
    """A plugin that turns everybody down, and has something to say about it."""

    name = "Grumpy"
    events: frozenset[Event] = frozenset()

    def __init__(self) -> None:
        self.said: list[Snapshot] = []

    def sign(self, state: CycleState, snapshot: Snapshot) -> None: ...

    def pre_filter(self, state: CycleState, snapshot: Snapshot) -> Checks:
        return Checks(lambda node: Rejection(self.name, "not today"))

    def tell(self, state: CycleState, rejections: Iterable[tuple[str, Rejection]]) -> Sentence:
        names = ", ".join(name for name, _ in rejections)

        def sentence(snapshot: Snapshot) -> str:
            self.said.append(snapshot)
            return f"Ask {names} tomorrow."

        return sentence

    def explain(self, *asked: object) -> Mapping[str, Explanation]:
        return {}


def test_what_a_plugin_has_to_say_follows_the_summary_and_is_worked_out_when_it_is_written():
    snapshot, plugin = Snapshot(Features()), Grumpy()
    snapshot.put_node(objects.node("a"))
    deciding = Cycle([plugin]).schedule_one(CycleState(objects.pod(), NOW), snapshot)
    with pytest.raises(StopIteration) as done:
        while True:
            next(deciding)
    outcome = done.value.value
    assert not plugin.said
    assert explained(outcome, snapshot) == "0/1 nodes are available: 1 not today. Ask a tomorrow."
    assert plugin.said == [snapshot]


def test_what_is_the_matter_with_the_pod_itself_needs_no_count():
    told = summary(unplaced({'resourceclaim "c" not found': 0}, nodes=4))
    assert told == '0/4 nodes are available: resourceclaim "c" not found.'


def test_a_cluster_without_nodes_says_so():
    assert summary(unplaced({})) == "0/0 nodes are available: there are no nodes."


def test_a_long_list_of_reasons_is_cut_and_says_so():
    told = summary(unplaced({f"reason {n:02}": 100 - n for n in range(20)}))
    assert "reason 11" in told and "reason 12" not in told
    assert told.endswith("and 8 more reasons.")


# -- when it is said --------------------------------------------------------------------------------


class Desk:
    """An explainer at work, and what it wrote when."""

    def __init__(self, here: Cluster, pod: PodInfo) -> None:
        self.here, self.pod = here, pod
        self.wire = Wire.to(here)
        client, clock, metrics = Client(self.wire), SystemClock(), Metrics()
        telemetry = Telemetry(metrics, clock)
        events = Events(client, "default-scheduler", clock, RandomIds(), telemetry, metrics)
        self.explainer = Explainer(client, clock, telemetry, events, Snapshot(Features()))

    def unplaced(self, reason: str) -> None:
        self.explainer.unplaced(unplaced({reason: 1}, of=self.pod))

    async def refresh(self) -> None:
        """As the watch does."""
        self.pod = PodInfo.of(await self.here.resource("pods").get("p", NS))

    async def message(self) -> str:
        found = await self.here.get("pods", "p")
        assert found is not None
        conditions = (found.fields.get("status") or {}).get("conditions") or ()
        return next((str(one.get("message", "")) for one in conditions if one["type"] == "PodScheduled"), "")

    async def until(self, words: str) -> None:
        async def says() -> bool:
            return words in await self.message()

        await self.here.until(says, f"told {words!r}")

    @property
    def patches(self) -> int:
        return sum(one.startswith("PATCH") for one in self.wire.writes)


@pytest.fixture
def at_a_desk(monkeypatch) -> Callable[[Callable[[Desk], Awaitable[None]]], None]:
    monkeypatch.setattr(explaining, "EVERY_S", EVERY_S)
    monkeypatch.setattr(explaining, "BLINK_S", BLINK_S)
    monkeypatch.setattr(explaining, "PATIENCE_S", PATIENCE_S)

    def sit(story: Callable[[Desk], Awaitable[None]]) -> None:
        async def whole(here: Cluster) -> None:
            desk = Desk(here, PodInfo.of(await here.create("pods", pod("p"))))
            working = asyncio.create_task(desk.explainer.run())
            try:
                await story(desk)
            finally:
                working.cancel()
                await asyncio.wait([working])

        tell(whole, started=False)

    return sit


def test_a_pod_that_does_not_fit_is_told_at_once(at_a_desk):
    async def story(desk: Desk) -> None:
        desk.unplaced("Insufficient cpu")
        await desk.until("0/1 nodes are available: 1 Insufficient cpu.")

    at_a_desk(story)


def test_an_answer_that_changes_all_the_time_is_written_now_and_then_and_the_last_one_stays(at_a_desk):
    """P3: never older than one interval."""

    async def story(desk: Desk) -> None:
        began = time.monotonic()
        for number in range(40):
            await desk.refresh()
            desk.unplaced(f"reason {number}")
            await asyncio.sleep(0.02)
        await desk.until("reason 39")
        assert desk.patches <= (time.monotonic() - began) / EVERY_S + 2

    at_a_desk(story)


def test_other_words_do_not_move_the_time_since_when_it_waits(at_a_desk):
    """A condition's lastTransitionTime is when its status changed, and that is False throughout."""

    async def story(desk: Desk) -> None:
        since = {"lastTransitionTime": "2026-01-01T00:00:00Z"}
        first = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", **since}
        status = {"status": {"conditions": [first]}}
        await desk.here.resource("pods").patch("p", status, NS, subresource="status")
        desk.unplaced("Insufficient cpu")
        await desk.until("Insufficient cpu")
        condition = await desk.here.condition("p")
        assert condition["lastTransitionTime"] == "2026-01-01T00:00:00Z"

    at_a_desk(story)


def test_an_answer_that_stays_is_written_once(at_a_desk):
    async def story(desk: Desk) -> None:
        for _ in range(5):
            await desk.refresh()
            desk.unplaced("Insufficient cpu")
            await asyncio.sleep(EVERY_S / 3)
        await asyncio.sleep(EVERY_S)
        assert desk.patches == 1

    at_a_desk(story)


def test_a_gate_that_is_open_in_a_moment_is_not_worth_a_word(at_a_desk):
    """Most often the claim is still being made from its template."""

    async def story(desk: Desk) -> None:
        desk.explainer.gated(desk.pod, "the claim is missing")
        await asyncio.sleep(PATIENCE_S / 3)
        desk.explainer.forget(desk.pod.uid)
        await asyncio.sleep(PATIENCE_S * 2)
        assert desk.patches == 0

    at_a_desk(story)


def test_a_gate_that_stays_shut_is_told(at_a_desk):
    async def story(desk: Desk) -> None:
        began = time.monotonic()
        desk.explainer.gated(desk.pod, "the claim is missing")
        await desk.until("the claim is missing")
        assert time.monotonic() - began >= PATIENCE_S

    at_a_desk(story)


def test_a_pod_that_found_a_place_is_not_told_what_was_in_its_way(at_a_desk):
    async def story(desk: Desk) -> None:
        desk.unplaced("Insufficient cpu")
        desk.explainer.withdraw(desk.pod.uid)
        await asyncio.sleep(EVERY_S)
        assert desk.patches == 0
        desk.explainer.failed(desk.pod, "binding to a failed: no")
        await desk.until("binding to a failed")

    at_a_desk(story)


def test_a_message_fits_into_a_condition(at_a_desk):
    async def story(desk: Desk) -> None:
        desk.explainer.failed(desk.pod, "x" * 5000)
        await desk.until("xxx")
        assert len(await desk.message()) == MESSAGE_MAX

    at_a_desk(story)


def test_a_server_that_does_not_answer_is_told_later(at_a_desk):
    async def story(desk: Desk) -> None:
        desk.wire.lose(1, carried_out=False)
        desk.unplaced("Insufficient cpu")
        await desk.until("Insufficient cpu")

    at_a_desk(story)


# -- the pod changes meanwhile ------------------------------------------------------------------------


def test_a_pod_that_was_changed_by_others_is_told_all_the_same(at_a_desk):
    async def story(desk: Desk) -> None:
        labels: dict[str, Any] = {"metadata": {"labels": {"team": "red"}}}
        await desk.here.resource("pods").patch("p", labels, NS)
        desk.unplaced("Insufficient cpu")
        await desk.until("Insufficient cpu")

    at_a_desk(story)


def test_a_pod_that_is_bound_while_the_explanation_is_on_its_way_stays_scheduled(at_a_desk):
    async def story(desk: Desk) -> None:
        await desk.here.node("a")
        desk.wire.before("PATCH", lambda: desk.here.resource("pods").bind("p", NS, "a", uid=desk.pod.uid))
        desk.unplaced("Insufficient cpu")
        await desk.here.bound("p")
        await asyncio.sleep(EVERY_S)
        found = await desk.here.get("pods", "p")
        assert found is not None
        (scheduled,) = [one for one in found.fields["status"]["conditions"] if one["type"] == "PodScheduled"]
        assert scheduled["status"] == "True"

    at_a_desk(story)


@pytest.mark.parametrize("again", [True, False], ids=["replaced", "gone"])
def test_a_pod_that_went_is_not_told_nor_the_next_of_its_name(at_a_desk, again: bool):
    async def story(desk: Desk) -> None:
        await desk.here.resource("pods").delete("p", NS, grace_period_s=0)
        if again:
            await desk.here.create("pods", pod("p"))
        desk.unplaced("Insufficient cpu")
        await asyncio.sleep(EVERY_S)
        assert desk.patches == 1
        assert not again or not await desk.message()

    at_a_desk(story)


def test_words_that_the_server_refuses_for_good_are_not_written_again_and_again(at_a_desk):
    """A status that somebody else has made invalid: every further write of it is refused."""

    async def story(desk: Desk) -> None:
        desk.wire.refuse_all("PATCH", errors.Invalid("the status is invalid, whatever is written"))
        desk.unplaced("too small")
        await asyncio.sleep(1.0)
        assert 1 <= desk.patches < 15  # after a wait that doubles each time
        desk.wire.refuse_all("", None)
        await desk.until("too small")

    at_a_desk(story)


def test_a_pod_that_changes_all_the_time_is_told_in_the_end(at_a_desk):
    async def story(desk: Desk) -> None:
        async def change() -> None:
            labels = {"labels": {"written": str(desk.patches)}}
            await desk.here.resource("pods").patch("p", {"metadata": labels}, NS)

        for _ in range(2 * explaining.CHANGES_MAX):
            desk.wire.before("PATCH", change)
        desk.unplaced("too small")
        await desk.until("too small")

    at_a_desk(story)
