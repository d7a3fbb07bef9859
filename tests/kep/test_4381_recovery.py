"""KEP-4381 after somebody died on the way: what is half done is gone on with, or taken back."""

from functools import partial

from allot.api import numeric
from scheduler.cluster import NS, Cluster
from scheduler.cluster import tell as tell_any
from scheduler.numeric import Numeric
from scheduler.test_crashes import die

tell = partial(tell_any, started=False, transactions=False)
"""One write after the other: a placement that is written as a whole is never half done."""


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
