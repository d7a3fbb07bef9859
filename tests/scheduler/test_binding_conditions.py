"""Devices that must be made ready before a pod can be bound.

The driver is played by the test: it looks at the claim and reports conditions of its devices.
"""

import asyncio
from typing import Any

from allot.api import Object
from allot.scheduler import Settings

from .cluster import DRIVER, GROUP, NS, Cluster, slice_of, tell
from .test_why import why
from .wire import Wire

CONDITIONS = {"bindingConditions": ["attached"], "bindingFailureConditions": ["broken"]}


async def furnish(here: Cluster, *, spare: bool = False) -> None:
    """A fabric device that must be attached, and perhaps an ordinary one on a second node."""
    await here.node("a")
    await here.create("resourceslices", slice_of("a", [{"name": "fabric", **CONDITIONS}]))
    if spare:
        await here.node("b")
        await here.create("resourceslices", slice_of("b", [{"name": "plain"}]))
    await here.device_class()
    await here.claim("one")


async def allocated(here: Cluster, name: str = "one") -> Object:
    async def found() -> Object | None:
        claims = [one for one in await here.all("resourceclaims") if one.name.startswith(name)]
        return next((one for one in claims if (one.fields.get("status") or {}).get("allocation")), None)

    claim: Object = await here.until(found, "the claim allocated")
    return claim


async def report(here: Cluster, claim: Object, condition: str, message: str = "") -> None:
    result = claim.fields["status"]["allocation"]["devices"]["results"][0]
    told: dict[str, Any] = {
        "type": condition,
        "status": "True",
        "reason": "Done",
        "message": message,
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    }
    device = {"driver": DRIVER, "pool": result["pool"], "device": result["device"], "conditions": [told]}
    await here.resource("resourceclaims").patch(
        claim.name, {"status": {"devices": [device]}}, NS, subresource="status"
    )


def test_a_pod_is_bound_once_its_devices_are_attached():
    """BasicFlow: allocated and reserved first, bound when the driver says so."""

    async def story(here: Cluster) -> None:
        await furnish(here)
        await here.pod("web", claim="one")
        claim = await allocated(here)
        assert claim.fields["status"]["allocation"]["allocationTimestamp"]
        assert claim.fields["status"]["reservedFor"][0]["name"] == "web"
        await here.quiet()
        assert not await here.node_of("web")

        await report(here, claim, "attached")
        assert await here.bound("web") == ["a"]
        events = [one.fields["reason"] for one in await here.all("events")]
        assert "BindingConditionsPending" in events

    tell(story)


def test_a_pod_is_told_what_its_devices_lack():
    """In its condition, which is no failure, and by `allot explain`."""

    async def story(here: Cluster) -> None:
        await furnish(here)
        await here.pod("web", claim="one")
        told = await here.condition("web")
        words = f"waits on a for condition attached of device {DRIVER}/a/fabric"
        assert (told["reason"], told["message"]) == ("BindingConditionsPending", words)
        assert (await why(here, "web")).verdict == words
        await here.quiet()
        assert not [one for one in await here.all("events") if one.fields["reason"] == "FailedScheduling"]

        await report(here, await allocated(here), "attached")
        await here.bound("web")
        assert (await why(here, "web")).verdict == "on node a"

    tell(story)


def test_a_pod_with_an_extended_resource_is_told_what_its_device_lacks():
    """The claim was made by this attempt. It is not in the way of another one."""

    async def story(here: Cluster) -> None:
        await here.node("a")
        await here.create("resourceslices", slice_of("a", [{"name": "fabric", **CONDITIONS}]))
        await here.device_class(extendedResourceName="example.com/gpu")
        await here.pod("web", requests={"example.com/gpu": "1"})
        await here.condition("web")
        words = f"waits on a for condition attached of device {DRIVER}/a/fabric"
        assert (await why(here, "web")).verdict == words

    tell(story)


def test_what_the_driver_says_of_a_failure_is_told():
    async def story(here: Cluster) -> None:
        await furnish(here)
        await here.pod("web", claim="one")
        await report(here, await allocated(here), "broken", "the cable is loose")

        async def failed() -> bool:
            events = await here.all("events")
            told = [one.fields["message"] for one in events if one.fields["reason"] == "FailedScheduling"]
            return any("were not made ready: failed: the cable is loose" in one for one in told)

        await here.until(failed, "told why")

    tell(story)


def test_who_waits_for_devices_listens_and_does_not_ask_again():
    async def story(here: Cluster) -> None:
        wire = Wire.to(here)
        await here.start_controllers()
        await here.start_scheduler(transport=wire)
        await furnish(here)
        await here.pod("web", claim="one")
        claim = await allocated(here)
        await here.condition("web")
        await asyncio.sleep(2.5)
        assert sum(one.endswith("/resourceclaims/one") for one in wire.reads) == 1
        await report(here, claim, "attached")
        assert await here.bound("web") == ["a"]
        assert sum(one.endswith("/resourceclaims/one") for one in wire.reads) == 1

    tell(story, started=False)


async def waits_for_two(here: Cluster) -> tuple[Object, Object]:
    """A pod with two claims, whose devices must both be attached."""
    await here.node("a")
    fabric = [{"name": name, **CONDITIONS} for name in ("first", "second")]
    await here.create("resourceslices", slice_of("a", fabric))
    await here.device_class()
    names = ("one", "two")
    for name in names:
        await here.claim(name)
    await here.pod("web", resourceClaims=[{"name": name, "resourceClaimName": name} for name in names])
    await here.condition("web")
    return await allocated(here, "one"), await allocated(here, "two")


def test_a_pod_with_two_claims_is_bound_when_the_devices_of_both_are_attached():
    """In whatever order."""

    async def story(here: Cluster) -> None:
        one, two = await waits_for_two(here)
        await report(here, two, "attached")
        await here.quiet()
        assert not await here.node_of("web")
        await report(here, one, "attached")
        assert await here.bound("web") == ["a"]

    tell(story)


def test_a_device_that_fails_is_told_at_once_though_another_is_still_waited_for():
    async def story(here: Cluster) -> None:
        _, two = await waits_for_two(here)
        await report(here, two, "broken", "the cable is loose")

        async def failed() -> bool:
            events = await here.all("events")
            told = [one.fields["message"] for one in events if one.fields["reason"] == "FailedScheduling"]
            return any("of claim two were not made ready: failed: the cable is loose" in one for one in told)

        await here.until(failed, "told why")

    tell(story)


def test_a_claim_that_is_taken_back_is_waited_for_no_more():
    async def story(here: Cluster) -> None:
        await furnish(here)
        await here.pod("web", claim="one")
        claim = await allocated(here)
        await here.condition("web")
        nothing = {"allocation": None, "reservedFor": None, "devices": None}
        await here.resource("resourceclaims").patch(claim.name, {"status": nothing}, NS, subresource="status")

        async def reported() -> bool:
            events = await here.all("events")
            words = "claim one was taken back while its devices were made ready"
            return any(words in one.fields["message"] for one in events)

        await here.until(reported, "told why")

    tell(story)


def test_while_one_pod_waits_for_its_device_others_are_placed():
    async def story(here: Cluster) -> None:
        await furnish(here, spare=True)
        await here.resource("nodes").patch("b", {"spec": {"unschedulable": True}})
        await here.pod("slow", claim="one")
        await allocated(here)
        await here.resource("nodes").patch("b", {"spec": {"unschedulable": False}})
        await here.pod("quick")
        assert await here.bound("quick")
        assert not await here.node_of("slow")

    tell(story)


def test_a_device_that_fails_and_is_then_tainted_is_replaced_by_another():
    """FailureTaints: the allocation is taken back and the pod goes where a device works."""

    async def story(here: Cluster) -> None:
        await furnish(here, spare=True)
        await here.resource("nodes").patch("b", {"spec": {"unschedulable": True}})
        await here.pod("web", claim="one")
        claim = await allocated(here)
        taint = {"key": "broken", "effect": "NoSchedule"}
        tainted = slice_of("a", [{"name": "fabric", **CONDITIONS, "taints": [taint]}])
        await here.resource("resourceslices").patch(tainted["metadata"]["name"], {"spec": tainted["spec"]})
        await here.resource("nodes").patch("b", {"spec": {"unschedulable": False}})
        await report(here, claim, "broken")
        assert await here.bound("web") == ["b"]

    tell(story)


def test_a_device_that_fails_and_is_withdrawn_is_replaced_by_another():
    """FailureRemove."""

    async def story(here: Cluster) -> None:
        await furnish(here, spare=True)
        await here.resource("nodes").patch("b", {"spec": {"unschedulable": True}})
        await here.pod("web", claim="one")
        claim = await allocated(here)
        await here.resource("resourceslices").delete(f"a-{DRIVER}")
        await here.resource("nodes").patch("b", {"spec": {"unschedulable": False}})
        await report(here, claim, "broken")
        assert await here.bound("web") == ["b"]

    tell(story)


def test_a_device_that_is_never_attached_is_given_up():
    """TimeoutReached and TimeoutRecover: after the timeout the devices are free for somebody else."""

    async def story(here: Cluster) -> None:
        await furnish(here, spare=True)
        await here.resource("nodes").patch("b", {"spec": {"unschedulable": True}})
        await here.pod("web", claim="one")
        first = await allocated(here)
        assert first.fields["status"]["allocation"]["devices"]["results"][0]["device"] == "fabric"
        await here.resource("resourceslices").delete(f"a-{DRIVER}")
        await here.resource("nodes").patch("b", {"spec": {"unschedulable": False}})
        assert await here.bound("web") == ["b"]

    tell(story, settings=Settings(binding_timeout_s=1.0))


def test_who_asks_why_goes_by_the_patience_of_the_scheduler():
    """A device that a scheduler with less patience has given up on is not waited for."""

    async def story(here: Cluster) -> None:
        await furnish(here)
        await here.pod("web", claim="one")
        claim = await allocated(here)
        await asyncio.sleep(2.1)  # timestamps are of whole seconds
        assert (await why(here, "web")).verdict.startswith("waits on a for condition attached")
        here.settings = Settings(binding_timeout_s=1.0)
        assert not (await why(here, "web")).verdict.startswith("waits")
        await report(here, claim, "attached")
        await here.bound("web")

    tell(story)


def test_a_scheduler_that_comes_later_waits_for_the_devices_too():
    """What the first one allocated is reserved already: that alone does not make the devices ready."""

    async def story(here: Cluster) -> None:
        await here.start_controllers()
        await furnish(here)
        first = await here.start_scheduler()
        await here.pod("web", claim="one")
        claim = await allocated(here)
        first.cancel()
        await asyncio.wait([first])
        await here.start_scheduler()
        await here.quiet()
        assert not await here.node_of("web")
        await report(here, claim, "attached")
        assert await here.bound("web") == ["a"]

    tell(story, started=False)


EXTENDED = "example.com/gpu"


async def extended_waits(here: Cluster) -> Object:
    """A pod waits for its fabric device, and another one for the same device."""
    await here.start_controllers()
    await here.node("a")
    await here.create("resourceslices", slice_of("a", [{"name": "fabric", **CONDITIONS}]))
    await here.device_class(extendedResourceName=EXTENDED)
    await here.start_scheduler()
    await here.pod("web", requests={EXTENDED: "1"})
    claim = await allocated(here, "web")
    await here.condition("web")
    await here.pod("later", requests={EXTENDED: "1"})
    await here.condition("later")
    return claim


def test_a_scheduler_that_comes_later_goes_on_with_a_claim_for_extended_resources():
    """Its driver is busy attaching the device, and somebody else would like to have it."""

    async def story(here: Cluster) -> None:
        claim = await extended_waits(here)
        await here.stop()
        await here.start_controllers()
        await here.start_scheduler()
        await here.quiet()
        assert [one.uid for one in await here.all("resourceclaims")] == [claim.uid]
        assert not await here.node_of("web")

        await report(here, claim, "attached")
        assert await here.bound("web") == ["a"]
        found = await here.get("pods", "web")
        assert found is not None
        assert found.fields["status"]["extendedResourceClaimStatus"]["resourceClaimName"] == claim.name
        assert not await here.node_of("later")

    tell(story, started=False)


def test_a_claim_for_extended_resources_that_is_not_what_is_wanted_now_is_made_anew():
    """While no scheduler ran, another class took over the name of the resource."""

    async def story(here: Cluster) -> None:
        claim = await extended_waits(here)
        await here.stop()
        await here.resource("pods").delete("later", NS)
        await here.resource("deviceclasses").delete("gpu")
        await here.device_class("newer", extendedResourceName=EXTENDED)
        await here.start_controllers()
        await here.start_scheduler()

        async def is_anew() -> Object | None:
            claims = await here.all("resourceclaims")
            return next((one for one in claims if one.uid != claim.uid), None)

        anew: Object = await here.until(is_anew, "made anew")
        assert anew.fields["spec"]["devices"]["requests"][0]["exactly"]["deviceClassName"] == "newer"
        await report(here, await allocated(here, "web"), "attached")
        assert await here.bound("web") == ["a"]

    tell(story, started=False)


def test_a_claim_for_extended_resources_whose_device_failed_is_made_anew_by_whoever_comes_later():
    async def story(here: Cluster) -> None:
        claim = await extended_waits(here)
        await here.stop()
        await report(here, claim, "broken")
        await here.resource("pods").delete("later", NS)
        await here.node("b")
        await here.create("resourceslices", slice_of("b", [{"name": "plain"}]))
        taint = {"key": "broken", "effect": "NoSchedule"}
        rule = {"apiVersion": f"{GROUP}/v1", "kind": "DeviceTaintRule", "metadata": {"name": "broken"}}
        which = {"driver": DRIVER, "pool": "a"}
        await here.create("devicetaintrules", {**rule, "spec": {"deviceSelector": which, "taint": taint}})
        await here.start_controllers()
        await here.start_scheduler()
        assert await here.bound("web") == ["b"]
        assert len(await here.all("resourceclaims")) == 1

    tell(story, started=False)


def test_a_pod_that_left_and_came_back_while_its_device_was_attached_is_tried_by_one_attempt():
    """QUEUE1: the first attempt is still under way, and what comes of it ends nothing but that attempt."""

    async def story(here: Cluster) -> None:
        await here.start_scheduler()
        await furnish(here)
        await here.pod("web", claim="one")
        claim = await allocated(here)
        await here.condition("web")
        await here.come_back("web")
        await here.quiet()
        events = await here.all("events")
        (told,) = (one for one in events if one.fields["reason"] == "BindingConditionsPending")
        assert (told.fields.get("series") or {}).get("count", 1) == told.fields.get("count", 1) == 1
        await report(here, claim, "broken")
        await here.quiet()
        await report(here, await allocated(here), "attached")
        assert await here.bound("web") == ["a"]

    tell(story, started=False)
