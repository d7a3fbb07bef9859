"""Claims that somebody deletes while their pod waits for devices to be made ready.

The pod has reserved them, so they cannot go; and it is not bound, so it need not keep them.
"""

from allot.api import Object

from .cluster import NS, Cluster, slice_of, tell
from .numeric import Numeric
from .test_binding_conditions import CONDITIONS, allocated, furnish, report


async def gone(here: Cluster, claim: Object) -> None:
    async def is_gone() -> bool:
        return claim.uid not in [one.uid for one in await here.all("resourceclaims")]

    await here.until(is_gone, f"claim {claim.name} gone")


async def told(here: Cluster, name: str, words: str) -> None:
    async def is_told() -> bool:
        return words in (await here.condition(name))["message"]

    await here.until(is_told, f"{name} told {words}")


async def delete(here: Cluster, claim: Object) -> None:
    await here.resource("resourceclaims").delete(claim.name, NS)


def test_a_claim_that_is_deleted_goes_and_its_pod_waits_for_another():
    """The devices would have been waited for until the time was up, ten minutes by default."""

    async def story(here: Cluster) -> None:
        await furnish(here)
        await here.pod("web", claim="one")
        await here.condition("web")
        claim = await allocated(here)
        await delete(here, claim)
        await gone(here, claim)
        await told(here, "web", 'resourceclaim "one" not found')
        assert not await here.held()

        await here.claim("one")
        await report(here, await allocated(here), "attached")
        assert await here.bound("web") == ["a"]

    tell(story)


def test_a_claim_of_a_template_that_is_deleted_is_made_anew():
    async def story(here: Cluster) -> None:
        await furnish(here)
        await here.template()
        await here.pod("web", template="one")
        await here.condition("web")
        claim = await allocated(here, "web")
        await delete(here, claim)
        await gone(here, claim)
        await report(here, await allocated(here, "web"), "attached")
        assert await here.bound("web") == ["a"]

    tell(story)


async def waits_with_both(place: Cluster) -> Numeric:
    """A pod with a numeric claim, which has all that there is, and one whose device is to be attached."""
    here = await Numeric(place).furnish({"a": 3})
    await place.create("resourceslices", slice_of("a", [{"name": "fabric", **CONDITIONS}]))
    await place.device_class()
    await place.claim("one")
    await here.claim("frobs", 3)
    await here.pod("web", "frobs", "one")
    await here.waits("web", "waits on a for condition attached")
    assert await here.taken("frobs") == ("a", "c0", 3)
    return here


async def one_is_deleted(place: Cluster, name: str) -> Numeric:
    here = await waits_with_both(place)
    claim = await place.get("resourceclaims", name)
    assert claim is not None
    await delete(place, claim)
    await gone(place, claim)
    await here.waits("web", f'resourceclaim "{name}" not found')
    return here


def test_a_numeric_claim_that_is_deleted_goes_and_nothing_stays_reserved_for_its_pod():
    """C3: neither what it had nor what the other claim has, for a pod that cannot be placed."""

    async def story(place: Cluster) -> None:
        here = await one_is_deleted(place, "frobs")
        await here.free("one")
        assert not (await here.status("one")).get("reservedFor")
        await here.asks("other", 3)
        assert await place.bound("other") == ["a"]
        await here.finish("other")
        await here.claim("frobs", made=False)
        await report(place, await allocated(place), "attached")
        assert await place.bound("web") == ["a"]

    tell(story)


def test_a_numeric_claim_is_given_back_when_the_other_claim_of_its_pod_is_deleted():
    async def story(place: Cluster) -> None:
        here = await one_is_deleted(place, "one")
        await here.free("frobs")
        await here.asks("other", 3)
        assert await place.bound("other") == ["a"]

    tell(story)


def test_a_claim_that_others_use_too_is_left_to_them():
    """C6: the pod that runs on it keeps it to its end, whoever deleted it."""

    async def story(here: Cluster) -> None:
        await furnish(here)
        await here.pod("first", claim="one")
        claim = await allocated(here)
        await here.condition("first")
        await report(here, claim, "attached")
        await here.bound("first")
        await here.create("resourceslices", slice_of("a", [{"name": "late", **CONDITIONS}], driver="b"))
        await here.device_class("late", driver="b")
        await here.claim("two", device_class="late")
        names = ("one", "two")
        await here.pod("web", resourceClaims=[{"name": name, "resourceClaimName": name} for name in names])
        await here.condition("web")
        await allocated(here, "two")
        await delete(here, claim)
        await told(here, "web", 'resourceclaim "one" is being deleted')
        kept = await here.get("resourceclaims", "one")
        assert kept is not None
        assert [one["name"] for one in kept.fields["status"]["reservedFor"]] == ["first"]
        assert "two" not in await here.held()

    tell(story)
