"""KEP-5004, "Resource Claim API": the claim for a pod's extended resources in a cluster at work: whose it is,
when it is there, and that it is a claim like any other.
"""

import asyncio
from contextlib import asynccontextmanager

import pytest

from allot.api import errors
from kep.cluster import Place, reserved_for, to_a_cluster
from kep.objects import (
    ANNOTATION,
    FINALIZER,
    GPU_CLASS,
    NS,
    Fields,
    container,
    device_class,
    node,
    pod,
    said_of,
    slice_,
)
from kep.test_upstream_binding import ATTACHED, report
from kep.test_upstream_devices import partitioned

CLAIMS = "/resourceclaims"


async def of_dra(here: Place, devices: int = 8) -> None:
    await here.put(device_class(), node(), slice_(devices=devices))


# -- whose it is -------------------------------------------------------------------------------------


@to_a_cluster()
async def test_it_lives_in_the_pods_namespace(here: Place):
    """5004-CLAIM-01."""
    await here.create("namespaces", {"metadata": {"name": "team"}})
    await of_dra(here)
    asking = pod()
    asking["metadata"]["namespace"] = "team"
    await here.resource("pods").create(asking, "team")

    async def bound():
        found = await here.resource("pods").get("p", "team")
        return found if found.fields["spec"].get("nodeName") else None

    asker = await here.until(bound, "the pod on its node")
    (claim,) = (await here.resource("resourceclaims").list()).objects
    assert (claim.namespace, claim.name) == ("team", said_of(asker)["resourceClaimName"])
    (owner,) = claim.fields["metadata"]["ownerReferences"]
    assert (owner["uid"], owner["controller"]) == (asker.uid, True)


@asynccontextmanager
async def claims_over_time(here: Place):
    """How many claims there were, at every revision from now on; there are none yet."""
    counts: list[int] = []
    alive: set[str] = set()
    claims = here.resource("resourceclaims")
    revision = (await claims.list(NS)).resource_version

    async def listen() -> None:
        async for event in claims.watch(NS, resource_version=revision, bookmarks=False):
            (alive.discard if event.type.name == "DELETED" else alive.add)(event.object.uid)
            counts.append(len(alive))

    listening = asyncio.create_task(listen())
    try:
        yield counts
    finally:
        listening.cancel()
        await asyncio.wait((listening,))


@pytest.mark.parametrize("step", ["/status", "/binding"])
@to_a_cluster()
async def test_there_is_one_at_most_however_often_the_pod_is_tried(here: Place, step: str):
    """5004-CLAIM-03: at every revision."""
    await of_dra(here)
    no = errors.Forbidden("refused by the story")
    met = here.intervene(lambda one: one.method in ("PUT", "POST") and step in one.path, 2, no)
    async with claims_over_time(here) as counts:
        await here.put(pod(container(gpu=2), container("other", implicit=1)))
        await here.settled()
        assert len(await here.extended_claims()) == 1

        async def heard() -> bool:
            return bool(counts) and counts[-1] == 1

        await here.until(heard, "the last claim is heard of")
    assert len(met) == 2
    assert max(counts) == 1
    assert here.wire.count("POST", CLAIMS) == 3


@pytest.mark.parametrize("owner", ["another pod", "not the controller", "nobody"])
@to_a_cluster()
async def test_a_claim_that_only_looks_like_the_pods_is_left_alone(here: Place, owner: str):
    """5004-CLAIM-20: it has the annotation, and this very pod does not control it."""
    waiting = await here.create("pods", pod(nodeSelector={"ready": "yes"}))
    another = await here.create("pods", pod(container(), name="another", nodeName="n1"))
    reference = {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": waiting.uid, "controller": True}
    references = {
        "another pod": [{**reference, "name": "another", "uid": another.uid}],
        "not the controller": [{**reference, "controller": False}],
        "nobody": [],
    }
    metadata = {"name": "foreign", "annotations": {ANNOTATION: "true"}, "ownerReferences": references[owner]}
    request = {"name": "container-0-request-0", "exactly": {"deviceClassName": GPU_CLASS, "count": 1}}
    made = {"metadata": metadata, "spec": {"devices": {"requests": [request]}}}
    foreign = await here.create("resourceclaims", made)
    await of_dra(here)
    await here.resource("nodes").patch("n1", {"metadata": {"labels": {"ready": "yes"}}})
    asker = await here.settled()
    assert (said_of(asker) or {})["resourceClaimName"] != "foreign"
    await here.quiet()
    left = await here.resource("resourceclaims").get("foreign", NS)
    assert left.resource_version == foreign.resource_version


# -- when it is there --------------------------------------------------------------------------------


@to_a_cluster()
async def test_a_pod_that_fits_nowhere_never_has_one(here: Place):
    """5004-CLAIM-15: it is made after the node was chosen."""
    await of_dra(here, devices=1)
    await here.put(pod(container(gpu=2)), pod(container(gpu=1, cpu="64"), name="large"))
    for name in ("p", "large"):
        await here.why_not(name)
    await here.put(node("n2"))  # and is tried again
    await here.quiet()
    assert here.wire.count("POST", CLAIMS) == 0


# -- like any other ----------------------------------------------------------------------------------


def with_device(**about: object) -> Fields:
    made = slice_(devices=1)
    made["spec"]["devices"][0].update(about)
    return made


@to_a_cluster()
async def test_a_tainted_device_does_not_serve(here: Place):
    """5004-CLAIM-22: it tolerates nothing."""
    taint = {"key": "example.com/broken", "value": "yes", "effect": "NoSchedule"}
    await here.put(device_class(), node(), with_device(taints=[taint]), pod())
    await here.why_not()
    assert await here.extended_claims() == []


@to_a_cluster()
async def test_devices_of_one_card_consume_its_counters(here: Place):
    """5004-CLAIM-22: two halves leave nothing of the whole, and the whole no half."""
    await here.put(device_class(), node(), *partitioned(), pod(container(gpu=2)))
    ((request, devices),) = (await here.devices_of()).items()
    assert (request, sorted(devices)) == ("container-0-request-0", ["half-0", "half-1"])
    await here.put(pod(name="next"))
    await here.why_not("next")


@to_a_cluster()
async def test_a_device_is_shared_as_far_as_its_capacity_goes(here: Place):
    """5004-CLAIM-22: each takes what the device's policy gives to who does not say how much."""
    policy = {"default": "5", "validRange": {"min": "1"}}
    capacity = {"bandwidth": {"value": "10", "requestPolicy": policy}}
    shared = with_device(allowMultipleAllocations=True, capacity=capacity)
    await here.put(device_class(), node(), shared, pod(name="a"), pod(name="b"))
    results = []
    for name in ("a", "b"):
        results += (await here.claim_of(name)).fields["status"]["allocation"]["devices"]["results"]
    assert [one["consumedCapacity"] for one in results] == [{"bandwidth": "5"}] * 2
    assert len({one["shareID"] for one in results}) == 2
    await here.put(pod())
    await here.why_not()


@to_a_cluster()
async def test_a_device_that_must_be_made_ready_is_waited_for(here: Place):
    """5004-CLAIM-22: binding conditions."""
    await here.put(device_class(), node(), with_device(**ATTACHED), pod())

    async def allocated():
        return [
            one for one in await here.extended_claims() if (one.fields.get("status") or {}).get("allocation")
        ]

    (claim,) = await here.until(allocated, "an allocated claim")
    await here.quiet()
    assert not await here.node_of("p")
    assert (reserved_for(claim), claim.metadata.finalizers) == (["p"], [FINALIZER])
    await report(here, claim.name, "attached")
    assert await here.bound("p") == ["n1"]
