"""The hostile kubelet against drivers of numeric parameters: ours pass, wrong ones fail for their reason."""

import asyncio
import random
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from allot.base import RandomIds
from allot.conformance import Settings, Verdict, play
from allot.driver import Edits, Ground, Node, Places, numeric, offering
from allot.driver.numeric_driver import Telling, _Checking
from allot.drivers import frobnicator
from allot.wire import UnixSockets, capacity


def judged(make):
    async def story(folder):
        places = Places(frobnicator.NAME, folder, folder / "cdi")
        async with AsyncExitStack() as life:

            async def begin():
                await life.enter_async_context(offering(make(), Node("n"), places, Ground(boot="b")))

            async def restart():
                await life.aclose()
                await begin()

            await begin()
            ids = RandomIds(random.Random(1))
            settings = Settings(places.registration_socket, UnixSockets(), ids, restart=restart, node="n")
            return await play(settings)

    with TemporaryDirectory(prefix="num") as folder:
        return asyncio.run(asyncio.wait_for(story(Path(folder)), 60))


def failed(make):
    return {one.case for one in judged(make).outcomes if one.verdict is not Verdict.PASSED}


def test_our_driver_conforms():
    report = judged(lambda: frobnicator.make(8))
    assert report.conforms, report.text()
    assert {one.verdict for one in report.outcomes} == {Verdict.PASSED}


def test_one_that_prepares_whatever_it_is_told_fails(monkeypatch):
    """4381-NOD-02: the check at prepare is the driver's duty."""
    monkeypatch.setattr(_Checking, "require", lambda self, claim: None)
    assert failed(lambda: frobnicator.make(8)) == {"refuses what it does not have"}


def test_one_that_prepares_nothing_fails():
    def prepare(claim):
        raise ValueError("broken")

    assert failed(lambda: replace(frobnicator.make(8), prepare=prepare)) == {"prepares what was reserved"}


def test_one_whose_instances_change_their_names_with_a_restart_fails():
    names = iter("abc")

    def make():
        instances = [numeric.counter(next(names), 8)]
        return replace(frobnicator.make(8), capacity=lambda node: instances)

    assert failed(make) == {"capacity is told after a restart"}


@pytest.mark.parametrize(
    "wrong",
    [
        capacity.Instance("", "a/v1", "K", b"{}"),
        capacity.Instance("a", "", "K", b"{}"),
        capacity.Instance("a", "a/v1", "", b"{}"),
        capacity.Instance("a", "a/v1", "K", b"[]"),
        capacity.Instance("a", "a/v1", "K", b"{"),
        capacity.Instance("a" * 300, "a/v1", "K", b"{}"),
        capacity.Instance("frobnicators", "a/v1", "K", b"{}"),
    ],
)
def test_one_that_tells_what_cannot_be_published_fails(monkeypatch, wrong):
    """4381-PUB-02, 4381-PUB-20"""

    async def watch(self, request):
        right = [one.message for one in (self.offered or {}).values()]
        yield capacity.NodeWatchCapacityResponse((*right, wrong))
        await asyncio.Event().wait()

    monkeypatch.setattr(Telling, "watch", watch)
    assert failed(lambda: frobnicator.make(8)) == {"capacity can be published"}


def test_one_that_tells_the_first_listener_alone_fails(monkeypatch):
    monkeypatch.setattr("allot.conformance.cases.offering.TOLD_S", 0.5)
    busy = []

    async def watch(self, request):
        if busy:
            await asyncio.Event().wait()
        busy.append(self)
        try:
            yield capacity.NodeWatchCapacityResponse(tuple(one.message for one in self.offered.values()))
            await asyncio.Event().wait()
        finally:
            busy.clear()

    monkeypatch.setattr(Telling, "watch", watch)
    assert "capacity is told to everybody" in failed(lambda: frobnicator.make(8))


def test_a_driver_of_other_models_is_tried_as_far_as_that_goes():
    made = replace(
        frobnicator.make(8),
        capacity=lambda node: [numeric.topology("cpus", {"a": 4})],
        prepare=lambda claim: Edits(),
    )
    report = judged(lambda: made)
    assert report.failed == ()
    not_tried = {one.case for one in report.outcomes if one.verdict is Verdict.NOT_TRIED}
    assert not_tried == {"prepares what was reserved", "refuses what it does not have"}
