"""The loop around the queue: what follows from how a key went."""

import asyncio
from collections import Counter

import pytest

from allot.api import errors
from allot.base import InvariantBroken, Metrics, SystemClock
from allot.informers import Again, Limits, Reconciler, Telemetry
from allot.informers.reconciler import AGAIN_LEAST_S
from allot.sim.loop import VirtualClock
from allot.sim.loop import run as run_virtual
from informers.world import soon

QUICK = Limits(first_s=0.001, longest_s=0.05, conflict_longest_s=0.002)


def tell(story) -> None:
    asyncio.run(asyncio.wait_for(story(), 20))


class Running:
    """A reconciler at work; `async with` ends it."""

    def __init__(self, reconcile, workers: int = 4, clock=None) -> None:
        self.metrics, clock = Metrics(), clock or SystemClock()
        telemetry = Telemetry(self.metrics, clock)
        self.loop = Reconciler("test", reconcile, clock, telemetry, workers=workers, limits=QUICK)

    async def __aenter__(self):
        self.task = asyncio.ensure_future(self.loop.run())
        return self.loop

    async def __aexit__(self, *failure):
        self.task.cancel()
        await asyncio.wait((self.task,))


def test_one_key_at_a_time_and_as_many_keys_as_workers():
    """A slow key holds up nobody but itself; what is added meanwhile is not lost."""

    async def story() -> None:
        at_work: Counter[str] = Counter()
        most: Counter[str] = Counter()
        runs: Counter[str] = Counter()
        go_on = asyncio.Event()

        async def reconcile(key: str) -> None:
            at_work[key] += 1
            at_work["all"] += 1
            for name in (key, "all"):
                most[name] = max(most[name], at_work[name])
            await (go_on.wait() if key == "slow" else asyncio.sleep(0.001))
            at_work[key] -= 1
            at_work["all"] -= 1
            runs[key] += 1

        async with Running(reconcile, workers=3) as loop:
            for key in ("slow", *(f"k{n}" for n in range(10))):
                loop.add(key)
            for n in range(50):
                loop.add(f"k{n % 10}")
                loop.add("slow")
                await asyncio.sleep(0.001)
            await soon(lambda: all(runs[f"k{n}"] for n in range(10)))
            assert runs["slow"] == 0
            go_on.set()
            await soon(lambda: loop.queue.idle)
        assert runs["slow"] == 2  # once, and once more for all that came meanwhile
        assert most["slow"] == 1
        assert most["all"] == 3

    tell(story)


@pytest.mark.parametrize(
    "trouble", [errors.Conflict("c"), errors.Unavailable("u"), errors.Invalid("i"), KeyError("bug")]
)
def test_a_key_that_fails_is_tried_until_it_goes_well(trouble):
    async def story() -> None:
        attempts = 0

        async def reconcile(key: str) -> None:
            nonlocal attempts
            attempts += 1
            if attempts < 5:
                raise trouble

        running = Running(reconcile)
        async with running as loop:
            loop.add("k")
            await soon(lambda: attempts == 5)
            await soon(lambda: loop.queue.idle)
            assert loop.queue.failures("k") == 0
        name = type(trouble).__name__
        assert f'allot_reconcile_errors_total{{name="test",error="{name}"}} 4' in running.metrics.text()
        assert 'workqueue_retries_total{name="test"} 4' in running.metrics.text()

    tell(story)


def test_one_bad_key_does_not_stop_the_others():
    async def story() -> None:
        good: list[str] = []

        async def reconcile(key: str) -> None:
            if key == "bad":
                raise ZeroDivisionError
            good.append(key)

        async with Running(reconcile, workers=1) as loop:
            loop.add("bad")
            for n in range(20):
                loop.add(f"k{n}")
            await soon(lambda: len(good) == 20)

    tell(story)


def test_a_broken_invariant_ends_the_loop():
    async def story() -> None:
        async def reconcile(key: str) -> None:
            raise InvariantBroken("WORKQ1: never")

        running = Running(reconcile)
        async with running as loop:
            loop.add("k")
            with pytest.raises(ExceptionGroup) as ended:
                await asyncio.wait_for(running.task, 5)
            assert ended.group_contains(InvariantBroken, match="WORKQ1")

    tell(story)


def test_a_key_can_ask_to_be_looked_at_again():
    async def story() -> None:
        runs = 0

        async def reconcile(key: str) -> Again | None:
            nonlocal runs
            runs += 1
            return Again(0.01) if runs < 4 else None

        async with Running(reconcile) as loop:
            loop.add("k")
            await soon(lambda: runs == 4)
            await asyncio.sleep(0.05)
            assert runs == 4

    tell(story)


@pytest.mark.parametrize("after_s", [0.0, -5.0, 1e-12])
def test_a_key_that_always_asks_for_no_wait_does_not_spin(after_s):
    """Time is made up here and moves only when nobody has work: a loop that spins would never let it."""
    runs = 0

    async def reconcile(key: str) -> Again:
        nonlocal runs
        runs += 1
        if runs > 5000:
            raise InvariantBroken("it spins")  # ends the loop, where a failed test would hang
        return Again(after_s)

    async def story() -> None:
        running = Running(reconcile, clock=VirtualClock(asyncio.get_running_loop()))
        async with running as loop:
            loop.add("k")
            await asyncio.sleep(10)

    run_virtual(story())
    assert 100 <= runs <= 10 / AGAIN_LEAST_S + 1


def test_the_metrics_have_upstreams_names():
    async def story() -> None:
        async def reconcile(key: str) -> None:
            await asyncio.sleep(0.02)

        running = Running(reconcile, workers=1)
        async with running as loop:
            for key in ("a", "b", "b"):
                loop.add(key)
            await asyncio.sleep(0.01)
            text = running.metrics.text()
            assert 'workqueue_depth{name="test"} 1' in text
            assert 'workqueue_unfinished_work_seconds{name="test"} 0.0' in text
            assert 'workqueue_longest_running_processor_seconds{name="test"} 0.0' in text
            await soon(lambda: loop.queue.idle)
        text = running.metrics.text()
        assert 'workqueue_adds_total{name="test"} 2' in text
        assert 'workqueue_queue_duration_seconds_count{name="test"} 2' in text
        assert 'workqueue_work_duration_seconds_count{name="test"} 2' in text

    tell(story)


def test_stopping_waits_for_what_is_in_progress_to_end():
    async def story() -> None:
        ended = False

        async def reconcile(key: str) -> None:
            nonlocal ended
            try:
                await asyncio.sleep(60)
            finally:
                await asyncio.sleep(0.01)
                ended = True

        async with Running(reconcile) as loop:
            loop.add("k")
            await asyncio.sleep(0.01)
        assert ended

    tell(story)


def test_keys_that_never_wait_leave_others_their_turn():
    """A worker takes one key after another; in between, the loop is free."""

    async def story() -> None:
        turns: list[str] = []

        async def reconcile(key: str) -> None:
            turns.append(key)

        async with Running(reconcile, workers=1) as loop:
            for n in range(5):
                loop.add(f"k{n}")
            while len(turns) < 5:
                turns.append("other")
                await asyncio.sleep(0)
            await soon(lambda: loop.queue.idle)
        done = [turn for turn in turns if turn != "other"]
        assert done == [f"k{n}" for n in range(len(done))]
        assert any(turns[at] == "other" for at in range(turns.index("k0"), turns.index(done[-1])))

    tell(story)


def test_a_sooner_moment_is_heard_while_the_loop_sleeps_towards_a_later_one():
    async def story() -> None:
        done: list[str] = []

        async def reconcile(key: str) -> None:
            done.append(key)

        async with Running(reconcile) as loop:
            loop.add_after("late", 30.0)
            await asyncio.sleep(0.01)
            loop.add_after("later", 60.0)
            loop.add_after("soon", 0.01)
            await soon(lambda: done == ["soon"])

    tell(story)


def test_a_delayed_key_is_not_forgotten_while_everybody_is_busy():
    """Nobody is free when it is added, and its moment has not come when somebody is."""

    async def story() -> None:
        done: list[str] = []

        async def reconcile(key: str) -> None:
            await asyncio.sleep(0.01)
            done.append(key)

        async with Running(reconcile, workers=1) as loop:
            loop.add("first")
            await asyncio.sleep(0.005)
            loop.add_after("later", 0.05)
            await soon(lambda: done == ["first", "later"])

    tell(story)


def test_a_worker_that_finds_nothing_more_wakes_nobody():
    """The loop that hands out keys has nothing to hand out: it sleeps on."""

    async def story() -> None:
        done: list[str] = []

        async def reconcile(key: str) -> None:
            done.append(key)

        running = Running(reconcile)
        async with running as loop:
            turns = 0
            wait = loop._woken.wait

            async def counted() -> bool:
                nonlocal turns
                turns += 1
                return await wait()

            loop._woken.wait = counted  # type: ignore[method-assign]
            for number in range(10):
                loop.add(f"k{number}")
                await soon(lambda number=number: len(done) == number + 1)
            assert turns <= 11

    tell(story)


def test_a_moment_that_is_almost_now_comes():
    """An event loop lets alarms go off that are due within its clock's resolution. Two keys that are not
    due by their own reckoning would wake each other for ever, at one moment."""

    async def story() -> None:
        done: list[str] = []

        async def reconcile(key: str) -> None:
            done.append(key)

        clock = VirtualClock(asyncio.get_running_loop())
        async with Running(reconcile, clock=clock) as one, Running(reconcile, clock=clock) as two:
            one.add_after("a", 5e-10)
            await asyncio.sleep(0)
            two.add_after("b", 6e-10)
            await soon(lambda: sorted(done) == ["a", "b"])

    run_virtual(story())
