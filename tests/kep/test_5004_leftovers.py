"""KEP-5004, PreFilter and PostFilter: what an earlier attempt left is used or removed, and never is there a
second claim beside it (C5).
"""

import asyncio

import pytest

from allot.api import core, errors, meta
from allot.scheduler import extended
from kep.cluster import Place, to_a_cluster
from kep.objects import FINALIZER, GPU, GPU_CLASS, NS, Fields, container, device_class, node, pod, slice_
from kep.steps import CLAIMS, STEPS, is_step, is_well, of_dra


async def left_behind(here: Place, allocated: bool, told: bool = False, asking: Fields | None = None):
    """What a scheduler leaves that dies between two writes."""
    made = await here.create("pods", asking or pod())
    view = meta.view(core.Pod, made.fields)
    asked = extended.read_asked(view.spec)
    devices = extended.device_requests(asked, extended.Delegation(((GPU, GPU_CLASS),)))
    body = extended.body(view, devices)
    claims = here.resource("resourceclaims")
    claim = await claims.create(body, NS)
    if allocated:
        claim = await claims.update(claim.changed({"metadata": {"finalizers": [FINALIZER]}}))
        result = {
            "request": devices.requests[0].name,
            "driver": "gpu.example.com",
            "pool": "n1",
            "device": "gpu-0",
        }
        chosen = {"key": "metadata.name", "operator": "In", "values": ["n1"]}
        selector = {"nodeSelectorTerms": [{"matchFields": [chosen]}]}
        allocation = {"devices": {"results": [result]}, "nodeSelector": selector}
        reserved = [{"resource": "pods", "name": "p", "uid": made.uid}]
        status = {"allocation": allocation, "reservedFor": reserved}
        claim = await claims.update_status(claim.changed({"status": status}))
    if told:
        patch = extended.status_patch(made.uid, claim.name, devices)
        await here.resource("pods").patch("p", patch, NS, subresource="status")
    return claim


@pytest.mark.parametrize("progress", ["created", "allocated", "told"])
@to_a_cluster(scheduled=False)
async def test_what_a_scheduler_left_that_died_is_made_good(here: Place, progress: str):
    """5004-PREF-02, 5004-PREF-03: The KEP: found again by PreFilter, and removed, or used; with one device
    there is no room for both."""
    await of_dra(here)
    await left_behind(here, allocated=progress != "created", told=progress == "told")
    await here.start_scheduler()
    await is_well(here)


@to_a_cluster(scheduled=False)
async def test_what_was_left_for_a_node_that_is_gone_is_removed(here: Place):
    """5004-FILT-02, 5004-POSTF-01: PostFilter: the claim cannot be bound to the node, so it is deallocated
    and deleted."""
    await here.put(device_class(), node("n2"), slice_("n2", devices=1))
    before = await left_behind(here, allocated=True)
    await here.start_scheduler()
    await is_well(here)
    (claim,) = await here.extended_claims()
    assert claim.uid != before.uid
    assert claim.fields["status"]["allocation"]["devices"]["results"][0]["pool"] == "n2"


@to_a_cluster(scheduled=False)
async def test_a_leftover_that_cannot_be_deleted_is_tried_again_soon(here: Place):
    """5004-POSTF-02: the deletion with the pod."""
    await here.put(device_class(), node("n2"), slice_("n2", devices=1))
    before = await left_behind(here, allocated=True)
    await here.start_scheduler()
    await here.until(here.is_wired)
    no = errors.Forbidden("refused by the story")
    met = here.intervene(lambda one: one.method == "DELETE" and CLAIMS in one.path, 2, no)
    await is_well(here)
    assert len(met) == 2
    (claim,) = await here.extended_claims()
    assert claim.uid != before.uid


@to_a_cluster(scheduled=False)
async def test_a_leftover_goes_before_anybody_is_evicted(here: Place):
    """5004-POSTF-03: its node is full, and the pod could have it by eviction; another is free."""
    await here.put(device_class(), node("n1"), slice_("n1", devices=1))
    await here.create("priorityclasses", {"metadata": {"name": "high"}, "value": 10})
    await here.put(pod(container(cpu="4"), name="low", nodeName="n1"))
    asking = pod(container(gpu=1, cpu="2"), priorityClassName="high")
    before = await left_behind(here, allocated=True, asking=asking)
    await here.put(node("n2"), slice_("n2", devices=1))
    await here.start_scheduler()
    await is_well(here)
    assert await here.bound("p", "low") == ["n2", "n1"]
    (claim,) = await here.extended_claims()
    assert claim.uid != before.uid


@to_a_cluster(scheduled=False)
async def test_all_that_was_left_goes_not_only_the_last(here: Place):
    """5004-PREF-03: Another scheduler had served the pod before, under a name of its own. C5: one claim a
    pod at most."""
    await of_dra(here)
    claim = await left_behind(here, allocated=True)
    for name in ("a", "z"):
        metadata = {
            "name": name,
            **{one: claim.fields["metadata"][one] for one in ("annotations", "ownerReferences")},
        }
        await here.create("resourceclaims", {"metadata": metadata, "spec": claim.fields["spec"]})
    await here.start_scheduler()
    await is_well(here)


@to_a_cluster(scheduled=False)
async def test_what_was_left_goes_also_when_the_pod_lands_on_a_device_plugin(here: Place):
    """5004-FAIL-04: no class serves the resource any more; C5: a failed attempt leaves none behind."""
    await here.put(node(gpu=1))
    await left_behind(here, allocated=True)
    await here.start_scheduler()
    await here.settled()
    await here.no_claims()


@to_a_cluster(scheduled=False)
async def test_what_was_left_goes_also_when_nobody_serves_the_resource_any_more(here: Place):
    """5004-FAIL-04: and the pod waits."""
    await here.put(node())
    await left_behind(here, allocated=True)
    await here.start_scheduler()
    await here.no_claims()
    assert GPU in await here.why_not()


@to_a_cluster(scheduled=False)
async def test_the_claim_of_an_earlier_pod_of_that_name_is_not_used(here: Place):
    """5004-FAIL-05: though somebody keeps it from going."""
    await of_dra(here, devices=2)
    before = await left_behind(here, allocated=True)
    claims = here.resource("resourceclaims")
    await claims.patch(before.name, {"metadata": {"finalizers": [FINALIZER, "example.com/stays"]}}, NS)
    await here.delete_pod()
    await here.start_scheduler()
    await here.put(pod())
    claim = await here.claim_of()
    assert claim.uid != before.uid
    assert claim.name != before.name
    assert before.name in [one.name for one in await here.extended_claims()]
    found = await claims.get(before.name, NS)
    kept = [one for one in found.metadata.finalizers or () if one != "example.com/stays"]
    await claims.patch(before.name, {"metadata": {"finalizers": kept or None}}, NS)

    async def one_claim() -> bool:
        return [one.uid for one in await here.extended_claims()] == [claim.uid]

    await here.until(one_claim, "one claim, and not the earlier pod's")
    await is_well(here)


@pytest.mark.parametrize("step", STEPS)
@to_a_cluster(scheduled=False)
async def test_a_scheduler_that_dies_before_a_step_is_followed_by_one_that_mends_it(here: Place, step: str):
    """5004-FAIL-02: kill -9 between any two writes."""
    await of_dra(here)
    first = await here.start_scheduler()
    await here.until(here.is_wired)
    died = asyncio.Event()

    async def before(request):
        if is_step(step, request):
            died.set()
            await asyncio.Event().wait()

    here.wire.before = before
    await here.put(pod())
    await asyncio.wait_for(died.wait(), 10)
    first.cancel()
    await asyncio.wait((first,))
    await here.start_scheduler()
    await is_well(here)
