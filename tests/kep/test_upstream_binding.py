"""Devices that must be made ready before a pod is bound: upstream's DeviceBindingConditions.

The story plays the driver, which reports conditions in the claim's status.
"""

from allot.scheduler import Settings
from kep.cluster import Place, reserved_for, to_a_cluster
from kep.objects import NS, direct, with_claims
from scheduler.cluster import slice_of

CLAIMS = "resourceclaims"
PLAIN = {"name": "plain"}
ATTACHED = {
    "name": "attached",
    "bindsToNode": True,
    "bindingConditions": ["example.com/attached"],
    "bindingFailureConditions": ["example.com/failed"],
}


async def devices(here: Place, *listed: dict, generation: int = 1) -> None:
    """What the node publishes."""
    pool = {"name": "n1", "generation": generation, "resourceSliceCount": 1}
    made = slice_of("n1", listed, pool=pool)
    if generation == 1:
        await here.device_class()
        await here.node("n1")
        await here.put(made)
    else:
        await here.resource("resourceslices").patch(made["metadata"]["name"], {"spec": made["spec"]})


async def asked(here: Place, name: str) -> None:
    await here.claim(name)
    await here.put(with_claims(name, direct(name)))


async def device_of(here: Place, claim: str) -> str | None:
    found = await here.resource(CLAIMS).get(claim, NS)
    allocation = (found.fields.get("status") or {}).get("allocation")
    return allocation["devices"]["results"][0]["device"] if allocation else None


async def holds(here: Place, claim: str, device: str) -> None:
    async def look() -> bool:
        return await device_of(here, claim) == device

    await here.until(look, f"{claim} holds {device}")


async def report(here: Place, claim: str, condition: str) -> None:
    """The driver says something of the device that waits."""
    said = {
        "type": f"example.com/{condition}",
        "status": "True",
        "reason": "Said",
        "message": "",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    }
    device = {"driver": "gpu.example.com", "pool": "n1", "device": "attached", "conditions": [said]}
    await here.resource(CLAIMS).patch(claim, {"status": {"devices": [device]}}, NS, subresource="status")


@to_a_cluster()
async def test_the_pod_is_bound_when_its_device_is_ready(here: Place):
    """BasicFlow: a pool that needs no such thing is used first; with the other the pod waits."""
    await devices(here, ATTACHED)
    pool = {"name": "second", "generation": 1, "resourceSliceCount": 1}
    second = slice_of("n1", [PLAIN], pool=pool)
    second["metadata"]["name"] = "second"
    await here.put(second)
    await here.quiet()
    await asked(here, "a")
    await here.settled("a")
    assert await device_of(here, "a") == "plain"
    await asked(here, "b")
    await holds(here, "b", "attached")
    await here.quiet()
    assert not await here.node_of("b")
    claim = await here.resource(CLAIMS).get("b", NS)
    assert reserved_for(claim) == ["b"]
    assert claim.fields["status"]["allocation"]["allocationTimestamp"]
    await report(here, "b", "attached")
    assert await here.bound("b") == ["n1"]


@to_a_cluster()
async def test_a_device_that_fails_and_is_tainted_is_given_back_for_another(here: Place):
    """FailureTaints"""
    await devices(here, ATTACHED)
    await asked(here, "a")
    await holds(here, "a", "attached")
    tainted = {**ATTACHED, "taints": [{"key": "example.com/broken", "effect": "NoSchedule"}]}
    await devices(here, tainted, PLAIN, generation=2)
    await report(here, "a", "failed")
    assert await here.bound("a") == ["n1"]
    assert await device_of(here, "a") == "plain"


@to_a_cluster()
async def test_a_device_that_fails_and_is_removed_is_given_back_for_another(here: Place):
    """FailureRemove"""
    await devices(here, ATTACHED)
    await asked(here, "a")
    await holds(here, "a", "attached")
    await devices(here, PLAIN, generation=2)
    await report(here, "a", "failed")
    assert await here.bound("a") == ["n1"]
    assert await device_of(here, "a") == "plain"


@to_a_cluster(scheduled=False)
async def test_a_device_that_is_never_ready_is_given_back(here: Place):
    """TimeoutReached: the pod goes back to the queue, and its device is free for others."""
    await here.start_scheduler(Settings(binding_timeout_s=1.0))
    await here.until(here.is_wired)
    await devices(here, ATTACHED)
    await asked(here, "a")
    await holds(here, "a", "attached")
    await devices(here, PLAIN, generation=2)
    assert await here.bound("a") == ["n1"]
    assert await device_of(here, "a") == "plain"


@to_a_cluster(scheduled=False)
async def test_after_waiting_in_vain_it_is_tried_again(here: Place):
    """TimeoutRecover: on the same device, which is ready this time."""
    await here.start_scheduler(Settings(binding_timeout_s=1.0))
    await here.until(here.is_wired)
    await devices(here, ATTACHED)
    await asked(here, "a")
    await holds(here, "a", "attached")
    first = (await here.resource(CLAIMS).get("a", NS)).fields["status"]["allocation"]["allocationTimestamp"]

    async def anew() -> bool:
        status = (await here.resource(CLAIMS).get("a", NS)).fields.get("status") or {}
        again = status.get("allocation") or {}
        return bool(again) and again["allocationTimestamp"] != first

    await here.until(anew, "allocated once more")
    await report(here, "a", "attached")
    assert await here.bound("a") == ["n1"]
