"""KEP-4381 beside the other generations: one pod, all of it or nothing."""

import asyncio

from scheduler.classic_driver import Driver
from scheduler.cluster import NS, tell
from scheduler.numeric import Numeric, instance
from scheduler.test_classic import Classic


async def _everything(place):
    """Two nodes with devices, frobnicators and a classic driver's resources."""
    here = await Numeric(place).furnish({"a": 4, "b": 4})
    await place.device_class("gpu", extendedResourceName="example.com/gpu")
    for node in ("a", "b"):
        await place.devices(node, 2)
    classic = Classic(place)
    await classic.resource_class("opaque")
    return here, classic


def _pod(name, *, numeric, structured="", opaque="", extended=0):
    entries = [{"name": "n", "resourceClaimName": numeric}]
    if structured:
        entries.append({"name": "s", "resourceClaimName": structured})
    if opaque:
        entries.append({"name": "o", "resourceClaimName": opaque})
    limits = {"example.com/gpu": str(extended)} if extended else {}
    container = {"name": "main", "image": "busybox", "resources": {"limits": limits, "requests": limits}}
    return {"metadata": {"name": name}, "spec": {"containers": [container], "resourceClaims": entries}}


def test_a_pod_with_claims_of_every_generation_is_placed_whole():
    """4381-SCH-16, 4381-SCH-14, 4381-GEN-03, 4381-GEN-10."""

    async def story(place):
        here, classic = await _everything(place)
        await here.claim("n", 3)
        await place.claim("s")
        await classic.claim("o", resource_class="opaque")
        driver = asyncio.ensure_future(Driver(place.client, {"a": 1, "b": 1}).run())
        try:
            await place.create("pods", _pod("p", numeric="n", structured="s", opaque="o", extended=1))
            (node,) = await place.bound("p")
        finally:
            driver.cancel()
        assert (await here.taken("n"))[0] == node
        claims = {one.name: one.fields["status"]["allocation"] for one in await place.all("resourceclaims")}
        assert len(claims) == 4  # with the one for the extended resource
        assert claims["s"]["devices"]["results"][0]["pool"] == node
        assert "resourceHandle" in claims["o"] or "nodeSelector" in claims["o"]

    tell(story)


def test_where_one_of_them_does_not_fit_none_is_allocated():
    """4381-SCH-16, 4381-SCH-14, 4381-SCH-11: no claim holds anything, and nobody else is kept from it."""

    async def story(place):
        here, _ = await _everything(place)
        await here.claim("n", 3)
        await place.claim("s", count=3)
        await place.create("pods", _pod("p", numeric="n", structured="s"))
        await place.condition("p")
        await place.quiet()
        assert await here.taken("n") is None
        await here.claim("big", 9)
        await place.claim("one")
        await place.create("pods", _pod("q", numeric="big", structured="one", extended=1))
        await here.waits("q", "needs 9")
        assert await place.held() == {}
        await here.asks("free", 4)
        await place.bound("free")

    tell(story)


def test_nodes_without_enough_are_never_offered_to_drivers():
    """4381-SCH-15, 4381-SCH-14: only the opaque claim is talked about."""

    async def story(place):
        here, classic = await _everything(place)
        await here.put_capacity("a-frob.example.com", "a", [instance("c0", 1)])
        await here.claim("n", 3)
        await classic.claim("o", resource_class="opaque")
        await place.create("pods", _pod("p", numeric="n", opaque="o"))

        async def talk():
            found = (await here.talks.list(NS)).objects
            return found[0].fields["spec"] if found else None

        said = await place.until(talk, "the driver asked")
        assert set(said.get("potentialNodes") or ()) | {said["selectedNode"]} == {"b"}
        assert await here.taken("n") is None

    tell(story)


def test_preemption_counts_on_what_victims_hold():
    """4381-SCH-23: what a victim alone uses is free once it is gone; what is immediate is not."""

    async def story(place):
        here = await Numeric(place).furnish({"a": 4})
        await place.create("priorityclasses", {"metadata": {"name": "high"}, "value": 1000})
        await here.asks("victim", 3)
        await place.bound("victim")
        await here.claim("urgent", 2)
        await here.pod("urgent", "urgent", priorityClassName="high")

        async def leaving():
            found = await place.get("pods", "victim")
            return found is None or bool(found.metadata.deletion_timestamp)

        await place.until(leaving, "the victim evicted")
        await place.resource("pods").delete("victim", NS, grace_period_s=0)
        assert await place.bound("urgent") == ["a"]

    tell(story)
