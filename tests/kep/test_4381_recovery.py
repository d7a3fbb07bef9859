"""KEP-4381 after somebody died on the way: what is half done is gone on with, or taken back."""

from functools import partial

import pytest

from allot.api import numeric
from allot.controllers.resourceclaims import claim_loop
from scheduler.cluster import NS, Cluster
from scheduler.cluster import tell as tell_any
from scheduler.numeric import Numeric
from scheduler.test_crashes import die

tell = partial(tell_any, started=False, transactions=False)
"""One write after the other: a placement that is written as a whole is never half done."""


async def protected(place: Cluster) -> Numeric:
    """A pod with a claim that a scheduler has protected, and then died."""
    await place.start_controllers()
    here = await Numeric(place).furnish({"a": 4})
    await here.asks("p", 3)
    for dies_at in range(1, 4):
        await die(place, dies_at, after=True)
        if await finalizers(here):
            break
    assert await finalizers(here) == [numeric.limits.FINALIZER] and await here.taken("p") is None
    return here


async def finalizers(here: Numeric, name: str = "p") -> list[str]:
    found = await here.here.get("resourceclaims", name)
    assert found is not None
    return [*(found.metadata.finalizers or ())]


async def half_done(place: Cluster) -> Numeric:
    """A pod with two claims, of which a scheduler that is dead has allocated the first."""
    await place.start_controllers()
    here = await Numeric(place).furnish({"a": 4, "b": 4})
    await here.claim("x", 3)
    await here.claim("y", 1)
    await here.pod("p", "x", "y")
    for dies_at in range(1, 6):
        await die(place, dies_at, after=True)
        if await here.taken("x") is not None:
            break
    assert await here.taken("x") is not None and await here.taken("y") is None
    return here


def test_a_claim_that_is_being_deleted_stays_reserved_for_nobody_who_waits():
    """Reserved by a scheduler that died, then deleted by somebody: the pod waited until the claim was gone,
    and the claim until the pod left it. It is left now, goes, and what it held is there for others."""

    async def story(place: Cluster) -> None:
        here = await half_done(place)
        await here.claims.delete("x", NS)
        held = await place.get("resourceclaims", "x")
        assert held is not None and held.metadata.finalizers == [numeric.limits.FINALIZER]
        await place.start_scheduler()

        async def is_gone() -> bool:
            return await place.get("resourceclaims", "x") is None

        await place.until(is_gone, "the deleted claim gone")
        await here.waits("p", 'resourceclaim "x" not found')
        assert not await place.node_of("p")
        await here.claim("x", made=False)
        assert await place.bound("p") in (["a"], ["b"])

    tell(story)


def test_a_claim_that_was_protected_before_a_crash_is_allocated_by_the_next_scheduler():
    """4381-FAIL-02, 4381-FAIL-01: with one finalizer, whoever set it."""

    async def story(place: Cluster) -> None:
        here = await protected(place)
        await place.start_scheduler()
        assert await place.bound("p") == ["a"]
        assert await here.taken("p") == ("a", "c0", 3)
        assert await finalizers(here) == [numeric.limits.FINALIZER]

    tell(story)


def test_a_claim_that_was_protected_before_a_crash_and_has_nothing_is_not_protected_for_ever(
    monkeypatch: pytest.MonkeyPatch,
):
    """4381-ALC-14, 4381-FAIL-02: its pod is gone, so that nobody will allocate it; also with a class that is
    no longer numeric, which leaves it to its driver."""
    monkeypatch.setattr(claim_loop, "HALF_DONE_S", 0.5)

    async def story(place: Cluster) -> None:
        here = await protected(place)
        await place.resource("pods").delete("p", NS, grace_period_s=0)

        async def is_free() -> bool:
            return not await finalizers(here)

        await place.until(is_free, "the finalizer gone")
        assert await here.taken("p") is None

    tell(story)


def test_a_claim_that_is_about_to_be_allocated_stays_protected():
    """The scheduler's next write needs the finalizer, and the controller does not take it away meanwhile."""

    async def story(place: Cluster) -> None:
        here = await protected(place)
        await place.quiet()
        assert await finalizers(here) == [numeric.limits.FINALIZER]

    tell(story)
