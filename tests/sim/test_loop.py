"""Time that passes only when nobody has anything to do."""

import asyncio
import contextvars
import subprocess
import sys
import threading
import time

import pytest

from allot.sim.loop import OWNER, NothingToDo, Spinning, VirtualClock, VirtualLoop, run


def test_an_hour_takes_no_time():
    async def story():
        before = asyncio.get_running_loop().time()
        await asyncio.sleep(3600)
        return asyncio.get_running_loop().time() - before

    started = time.monotonic()
    assert run(story()) == 3600
    assert time.monotonic() - started < 60, "an hour of sleep was really slept"


def test_who_is_due_first_wakes_first():
    async def story():
        woken = []

        async def sleeper(seconds):
            await asyncio.sleep(seconds)
            woken.append(seconds)

        await asyncio.gather(*(sleeper(seconds) for seconds in (5, 1, 3)))
        return woken

    assert run(story()) == [1, 3, 5]


def test_waiting_for_ever_is_an_error_that_names_who_waits():
    """VTIME3."""

    async def stuck():
        await asyncio.get_running_loop().create_future()

    with pytest.raises(NothingToDo, match="the stuck one"):

        async def story():
            await asyncio.create_task(stuck(), name="the stuck one")

        run(story())


def test_a_jump_makes_everything_late():
    async def story():
        loop = asyncio.get_running_loop()
        assert isinstance(loop, VirtualLoop)
        clock = VirtualClock(loop)
        before = clock.now()
        loop.call_later(1, loop.jump, 100)
        await asyncio.sleep(2)
        return (clock.now() - before).total_seconds()

    assert run(story()) == 101


def test_who_is_frozen_does_not_take_one_step():
    """VTIME4: and when it thaws, all that it missed comes in the order in which it came due."""

    async def story():
        loop = asyncio.get_running_loop()
        assert isinstance(loop, VirtualLoop)
        steps = []

        async def work(name):
            while True:
                await asyncio.sleep(10)
                steps.append((name, loop.time()))

        tasks = []
        for name in ("a", "b"):
            context = contextvars.copy_context()
            context.run(OWNER.set, name)
            tasks.append(loop.create_task(work(name), context=context))
        await asyncio.sleep(15)
        loop.freeze("a")
        await asyncio.sleep(20)
        loop.thaw("a")
        await asyncio.sleep(1)
        for task in tasks:
            task.cancel()
        return steps

    assert run(story()) == [("a", 10), ("b", 10), ("b", 20), ("b", 30), ("a", 35)]


def test_a_thread_is_no_thread():
    """When it comes back would be nothing that a seed decides."""

    async def story():
        thread = await asyncio.to_thread(threading.get_ident)
        return thread == threading.get_ident()

    assert run(story())


PROGRAM = """
import asyncio, random
from allot.sim.loop import run

async def story():
    rng, seen = random.Random(7), []
    async def worker(n):
        for _ in range(20):
            await asyncio.sleep(rng.random())
            seen.append(n)
    async with asyncio.TaskGroup() as group:
        for n in range(10):
            group.create_task(worker(n))
    tasks = {asyncio.create_task(worker(n)) for n in range(10)}
    done, _ = await asyncio.wait(tasks)
    seen.append([hash(task) for task in done])
    return seen

print(run(story()))
"""


def test_the_same_seed_is_the_same_run_in_another_process():
    """VTIME2, with the hash seed of the interpreter changed."""
    answers = {
        subprocess.run(
            [sys.executable, "-c", PROGRAM],
            capture_output=True,
            text=True,
            check=True,
            env={"PYTHONHASHSEED": str(seed)},
        ).stdout
        for seed in (1, 2, 3)
    }
    assert len(answers) == 1


def test_whoever_spins_at_one_moment_is_found_out():
    """A wait that rounding makes too short never ends in made-up time: the world must fail, not hang."""

    async def spin() -> None:
        for _ in range(10**9):
            await asyncio.sleep(0)

    with pytest.raises(Spinning, match="does not pass"):
        run(spin())
