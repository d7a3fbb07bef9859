"""What machine and containers use: rates between two looks."""

import asyncio

from allot.base import SystemClock
from allot.nodeagent import using
from allot.nodeagent.registering import Burden, burden
from allot.nodeagent.runtimes.contract import Usage
from allot.nodeagent.using import Look, Using, between


def test_a_rate_is_what_was_used_between_two_looks():
    before = Look(100.0, Burden(5_000_000_000, 1), [Usage("u", "a", 1_000_000_000, 7)])
    after = Look(110.0, Burden(25_000_000_000, 2), [Usage("u", "a", 6_000_000_000, 9)])
    found = between(before, after, "then")
    assert (found.cpu_nano, found.memory_bytes, found.window_s, found.time) == (
        2_000_000_000,
        2,
        10.0,
        "then",
    )
    [one] = found.containers
    assert (one.pod_uid, one.name, one.cpu_nano, one.memory_bytes) == ("u", "a", 500_000_000, 9)


def test_a_container_that_began_in_between_counts_from_its_beginning():
    """Also one that was started anew, which has used less than the one before it."""
    before = Look(0.0, Burden(0, 0), [Usage("u", "again", 9_000_000_000, 0)])
    after = Look(
        2.0, Burden(0, 0), [Usage("u", "again", 1_000_000_000, 0), Usage("u", "new", 4_000_000_000, 0)]
    )
    assert [one.cpu_nano for one in between(before, after, "").containers] == [500_000_000, 2_000_000_000]


class Counting:
    def __init__(self):
        self.looks = 0

    async def usage(self):
        self.looks += 1
        return [Usage("u", "a", self.looks * 1_000_000, 1)]


def test_the_last_look_is_kept_for_the_next_question(monkeypatch):
    monkeypatch.setattr(using, "MOMENT_S", 0.05)

    async def story():
        runtime = Counting()
        asked = Using(runtime, lambda: Burden(0, 0), SystemClock())
        assert (await asked.now()).containers[0].cpu_nano > 0
        assert runtime.looks == 2
        await asyncio.sleep(0.1)
        await asked.now()
        assert runtime.looks == 3

    asyncio.run(story())


def test_this_machine_is_used_for_something():
    found = burden()
    assert found.cpu_ns > 0 and found.memory_bytes > 1 << 20
