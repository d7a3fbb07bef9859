"""Drivers that answer junk, half, for others, or never: nothing is kept, and the claim's user reads why."""

import asyncio

import pytest

from allot.driver import controller as kit
from allot.driver.controller import calling
from driver.controller.world import FINALIZER, NS, Recording, tell
from driver.world import until

OTHER = "other.example.com"


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (lambda asks: [kit.Allocation("h")], "and not a mapping from claims' uids"),
        (lambda asks: dict.fromkeys([ask.claim.uid for ask in asks], "n1"), "neither Allocation nor Refused"),
        (lambda asks: {ask.claim.uid: kit.Allocation(b"h") for ask in asks}, "a handle is text"),
        (lambda asks: {ask.claim.name: kit.Allocation() for ask in asks}, "gave no answer for this claim"),
        (lambda asks: None, "gave no answer for this claim"),
    ],
)
def test_an_answer_that_is_none_is_a_refusal_and_nothing_is_held(answer, why):
    """ALLOC2, C9: the author may have begun something, so it is asked to undo that."""

    async def story(world):
        driver = Recording()

        async def odd(asks, node):
            driver.calls.append(("allocate", *(ask.claim.name for ask in asks), node))
            driver.held |= {ask.claim.uid: node for ask in asks}
            return answer(asks)

        driver.allocate = odd
        await world.make_class()
        await world.claim()
        pod = await world.pod()
        async with world.driver(driver, refresh_s=3600):
            await world.scheduling(pod, "n1", "n1", "n2")
            await world.until_answered({"entry-c": {"n1"}})
            assert why in await world.said("AllocationRefused")
            assert driver.held == {}
            assert await world.finalizers() == []
            assert await world.status() == {}

    tell(story)


def test_an_answer_for_half_of_the_claims_leaves_nothing_of_either():
    """ALLOC2: and what was answered for the claim of somebody else is not heard."""

    async def story(world):
        driver = Recording()

        async def half(asks, node):
            driver.held |= {ask.claim.uid: node for ask in asks}
            return {asks[0].claim.uid: kit.Allocation(), "of-somebody-else": kit.Allocation()}

        driver.allocate = half
        await world.make_class()
        for name in ("a", "b"):
            await world.claim(name)
        pod = await world.pod("p", "a", "b")
        async with world.driver(driver, refresh_s=3600):
            await world.scheduling(pod, "n1", "n1")
            await world.until_answered({"entry-a": set(), "entry-b": {"n1"}})
            for name in ("a", "b"):
                await world.until_free(name)
        assert driver.held == {}

    tell(story)


@pytest.mark.parametrize("answer", [lambda asks: ["n1"], lambda asks: {ask.claim.uid: "n1" for ask in asks}])
def test_nodes_that_make_no_sense_are_told_to_the_claims_user_and_nothing_is_allocated(answer):
    async def story(world):
        driver = Recording()

        async def odd(asks, nodes):
            return answer(asks)

        driver.unsuitable_nodes = odd
        await world.make_class()
        await world.claim()
        pod = await world.pod()
        async with world.driver(driver):
            await world.scheduling(pod, "n1", "n1")
            assert "unsuitable_nodes answered" in await world.said("NotUsable")
            assert driver.made("allocate") == []
            assert await world.answered() == {}

    tell(story)


def test_what_another_driver_has_allocated_meanwhile_is_not_kept():
    """ALLOC4: the class was made over while this driver worked, and the other one was faster."""

    async def story(world):
        driver = Recording()
        finalizer = f"{OTHER}/deletion-protection"

        async def overtaken(asks):
            now = await world.claims.get("c", NS)
            await world.classes.patch("gpu", {"driverName": OTHER})
            marked = {"metadata": {"finalizers": [*now.metadata.finalizers, finalizer]}}
            await world.claims.patch("c", marked, NS)
            status = {"driverName": OTHER, "allocation": {"resourceHandle": "theirs"}}
            await world.claims.patch("c", {"status": status}, NS, subresource="status")

        driver.pause = overtaken
        await world.make_class()
        await world.claim()
        pod = await world.pod()
        async with world.driver(driver):
            await world.scheduling(pod, "n1", "n1")

            async def is_left():
                return FINALIZER not in await world.finalizers() and driver.made("deallocate")

            await until(is_left)
            assert driver.held == {}
            assert driver.made("deallocate") == [("c", "")]  # by its uid: the handle is not this driver's
            assert (await world.status())["driverName"] == OTHER
            assert await world.finalizers() == [finalizer]

    tell(story)


def test_a_driver_that_never_returns_is_not_asked_twice_and_the_claim_stays_protected(monkeypatch, caplog):
    """CALLING2, C9: who deletes the claim meanwhile waits for what was begun; the log says which function."""

    async def story(world):
        driver, go_on = Recording(), asyncio.Event()
        monkeypatch.setattr(calling, "LONG_S", 0.05)

        async def stuck(asks):
            await go_on.wait()

        driver.pause = stuck
        await world.make_class()
        await world.claim()
        pod = await world.pod()
        async with world.driver(driver):
            await world.scheduling(pod, "n1", "n1")

            async def begun():
                return driver.made("allocate")

            await until(begun)
            await world.claims.delete("c", NS)
            await world.quiet()
            assert await world.finalizers() == [FINALIZER]
            assert driver.made("allocate") == [("c", "n1")]
            assert "the driver's allocate has not returned" in caplog.text
            go_on.set()
            await world.until_gone()
        assert driver.held == {}
        assert driver.made("deallocate")

    tell(story)
