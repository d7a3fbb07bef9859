"""KEP-5004, "Failure handling", Unreserve and PostFilter: whatever fails, one claim a pod or none, and a pod
that is tried again. C5 and P1 of the system's invariants.
"""

import asyncio

import pytest

from allot.api import Request, core, errors, meta
from allot.scheduler import extended
from kep.cluster import Place, reserved_for, to_a_cluster
from kep.objects import (
    FINALIZER,
    GPU,
    GPU_CLASS,
    IMPLICIT,
    NS,
    container,
    device_class,
    node,
    pod,
    said_of,
    slice_,
)

CLAIMS = "/resourceclaims"
STEPS = {
    "creating the claim": ("POST", CLAIMS),
    "protecting the claim": ("PUT", f"{CLAIMS}/"),
    "allocating the claim": ("PUT", "/status"),
    "telling the pod": ("PATCH", "/pods/p/status", b"extendedResourceClaimStatus"),
    "binding the pod": ("POST", "/binding"),
}


def is_step(step: str, request: Request) -> bool:
    method, path, *words = STEPS[step]
    return request.method == method and path in request.path and all(one in request.body for one in words)


def refuse(here: Place, step: str, times: int = 1) -> list[Request]:
    """The next such requests of the scheduler do not reach the server; returned as they come."""
    refused = errors.Forbidden("refused by the story")
    return here.intervene(lambda request: is_step(step, request), times, refused)


async def of_dra(here: Place, devices: int = 1) -> None:
    await here.put(device_class(), node(), slice_(devices=devices))


async def is_well(here: Place, devices: int = 1) -> None:
    """The pod has its node, one claim, and that claim is its own in every way."""
    asker = await here.settled()
    (claim,) = await here.extended_claims()
    assert (said_of(asker) or {})["resourceClaimName"] == claim.name
    assert reserved_for(claim) == ["p"]
    assert claim.metadata.finalizers == [FINALIZER]
    assert len(claim.fields["status"]["allocation"]["devices"]["results"]) == devices


# -- the order of writes ---------------------------------------------------------------------------


@to_a_cluster()
async def test_the_writes_come_in_the_order_in_which_each_may_rely_on_those_before(here: Place):
    """5004-PREB-01: create claim, finalizer, allocation with reservation, pod status, binding. Whoever sees
    the pod name a claim finds it allocated and reserved, and a node never meets a pod that names none."""
    await of_dra(here)
    await here.put(pod())
    await is_well(here)
    writes = [request for request in here.wire.requests if request.method != "GET"]
    order = [
        [step for step in STEPS if is_step(step, request)][-1] for request in writes if _is_ours(request)
    ]
    assert order == list(STEPS)
    (allocating,) = [request for request in writes if is_step("allocating the claim", request)]
    assert b'"reservedFor"' in allocating.body and b'"results"' in allocating.body


def _is_ours(request: Request) -> bool:
    """One of the steps: no event, and no condition."""
    return any(is_step(step, request) for step in STEPS)


@to_a_cluster()
async def test_what_an_earlier_attempt_made_is_named_before_the_pod_is_bound(here: Place):
    """5004-PREB-01, of whoever comes later."""
    await of_dra(here)
    refuse(here, "telling the pod", times=1)
    await here.put(pod())
    await is_well(here)
    last = [
        step
        for request in here.wire.requests
        for step in ("telling the pod", "binding the pod")
        if is_step(step, request)
    ]
    assert last[-2:] == ["telling the pod", "binding the pod"]


# -- writes that fail ------------------------------------------------------------------------------


@pytest.mark.parametrize("step", STEPS)
@to_a_cluster()
async def test_a_step_that_is_refused_is_undone_and_the_pod_is_tried_again(here: Place, step: str):
    """PreBind fails, Unreserve cleans up, the pod is queued again."""
    await of_dra(here)
    met = refuse(here, step)
    await here.put(pod())
    await is_well(here)
    assert len(met) == 1


@pytest.mark.parametrize("step", STEPS)
@to_a_cluster()
async def test_while_a_step_is_refused_nothing_is_left_behind(here: Place, step: str):
    """And the devices are free for others."""
    await of_dra(here)
    met = refuse(here, step, times=1000)
    await here.put(pod())

    async def twice() -> bool:
        return len(met) >= 2

    await here.until(twice, "a second attempt")
    await here.delete_pod()
    await here.no_claims()
    here.wire.before = None
    await here.put(pod(name="next"))
    assert await here.devices_of("next") == {"container-0-request-0": ["gpu-0"]}


@pytest.mark.parametrize("step", [one for one in STEPS if one != "creating the claim"])
@to_a_cluster()
async def test_the_claim_goes_with_the_attempt_and_not_with_the_next_one(here: Place, step: str):
    """Unreserve: while the pod waits for its next attempt, others may have its device."""
    await of_dra(here)
    met = refuse(here, step, times=1000)
    await here.put(pod())

    async def deleted() -> bool:
        return here.wire.count("DELETE", CLAIMS) >= 1

    await here.until(deleted, "the claim is deleted")
    assert len(met) == 1
    await here.no_claims()


@pytest.mark.parametrize("step", STEPS)
@to_a_cluster()
async def test_a_step_of_which_nobody_knows_whether_it_happened_happens_once(here: Place, step: str):
    """5004-CLAIM-03: The request arrives, the answer does not. Nothing is undone for that."""
    await of_dra(here)
    lost: list[Request] = []

    async def before(request):
        if not lost and is_step(step, request):
            lost.append(request)
            await here.server.api.handle(request, here.scheduler_user)
            raise errors.Timeout("the answer was lost")

    here.wire.before = before
    await here.put(pod())
    await is_well(here)
    assert len(lost) == 1
    assert here.wire.count("DELETE", CLAIMS) == 0


@to_a_cluster()
async def test_a_conflict_is_tried_again_on_the_spot(here: Place):
    """The KEP: these updates have local retries in case there is a conflict. Nothing is undone for one."""
    await of_dra(here)
    claims = here.resource("resourceclaims")
    touched = []

    async def before(request):
        if request.method == "PUT" and CLAIMS in request.path and len(touched) < 2:
            name = request.path.split("/")[7]
            touched.append(name)
            await claims.patch(name, {"metadata": {"labels": {"touched": str(len(touched))}}}, NS)

    here.wire.before = before
    await here.put(pod())
    await is_well(here)
    assert len(touched) == 2
    assert here.wire.count("DELETE", CLAIMS) == 0


@to_a_cluster()
async def test_cleaning_up_may_fail_and_is_made_good(here: Place):
    """Unreserve: the failure is logged, and continued. The claim of the failed attempt goes all the same."""
    await of_dra(here)
    binding, deleting = [], []

    async def before(request):
        if request.method == "POST" and "/binding" in request.path and not binding:
            binding.append(request)
            raise errors.Forbidden("not bound")
        if request.method == "DELETE" and CLAIMS in request.path and len(deleting) < 2:
            deleting.append(request)
            raise errors.Forbidden("not deleted")

    here.wire.before = before
    await here.put(pod())
    await is_well(here)
    assert deleting


@pytest.mark.parametrize("step", STEPS)
@to_a_cluster()
async def test_what_is_decided_holds_while_it_is_being_written(here: Place, step: str):
    """5004-CLAIM-16: Reserve: however long a write takes, the device is not promised to another pod."""
    await of_dra(here)
    go_on = asyncio.Event()

    async def before(request):
        if is_step(step, request):
            await go_on.wait()

    here.wire.before = before
    await here.put(pod())

    async def begun() -> bool:
        return any(is_step(step, one) for one in here.wire.requests)

    await here.until(begun, step)
    await here.put(pod(name="late"))
    await here.why_not("late")
    go_on.set()
    await is_well(here)
    assert here.wire.count("DELETE", CLAIMS) == 0


@to_a_cluster()
async def test_a_pod_that_is_deleted_on_its_way_leaves_nothing(here: Place):
    await of_dra(here)

    async def before(request):
        if request.method == "POST" and "/binding" in request.path:
            here.wire.before = None
            await here.delete_pod()

    here.wire.before = before
    await here.put(pod())
    await here.no_claims()
    await here.put(pod(name="next"))
    await here.settled("next")


# -- what an earlier attempt left ------------------------------------------------------------------------


async def left_behind(here: Place, allocated: bool, told: bool = False):
    """What a scheduler leaves that dies between two writes."""
    made = await here.create("pods", pod())
    view = meta.view(core.Pod, made.fields)
    asked = extended.read_asked(view.spec)
    devices = extended.device_requests(asked, extended.Delegation(((GPU, GPU_CLASS),)))
    body = extended.body(view, devices)
    claims = here.resource("resourceclaims")
    claim = await claims.create(body, NS)
    if allocated:
        claim = await claims.update(claim.changed({"metadata": {"finalizers": [FINALIZER]}}))
        result = {
            "request": "container-0-request-0",
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
    """The KEP: found again by PreFilter, and removed, or used; with one device there is no room for both."""
    await of_dra(here)
    await left_behind(here, allocated=progress != "created", told=progress == "told")
    await here.start_scheduler()
    await is_well(here)


@to_a_cluster(scheduled=False)
async def test_what_was_left_for_a_node_that_is_gone_is_removed(here: Place):
    """PostFilter: the claim cannot be bound to the node, so it is deallocated and deleted."""
    await here.put(device_class(), node("n2"), slice_("n2", devices=1))
    before = await left_behind(here, allocated=True)
    await here.start_scheduler()
    await is_well(here)
    (claim,) = await here.extended_claims()
    assert claim.uid != before.uid
    assert claim.fields["status"]["allocation"]["devices"]["results"][0]["pool"] == "n2"


@to_a_cluster(scheduled=False)
async def test_all_that_was_left_goes_not_only_the_last(here: Place):
    """Another scheduler had served the pod before, under a name of its own. C5: one claim a pod at most."""
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
async def test_what_was_left_goes_also_when_no_class_serves_the_resource_any_more(here: Place):
    """The pod lands on a device plugin; C5: a failed attempt leaves none behind."""
    await here.put(node(gpu=1))
    await left_behind(here, allocated=True)
    await here.start_scheduler()
    await here.settled()
    await here.no_claims()


@to_a_cluster(scheduled=False)
async def test_the_claim_of_an_earlier_pod_of_that_name_is_not_used(here: Place):
    await of_dra(here, devices=2)
    before = await left_behind(here, allocated=True)
    await here.delete_pod()
    await here.start_scheduler()
    await here.put(pod())

    async def one_claim():
        found = await here.extended_claims()
        return len(found) == 1 and found[0].uid != before.uid

    await here.until(one_claim, "one claim, and not the earlier pod's")
    await is_well(here)


@pytest.mark.parametrize("step", STEPS)
@to_a_cluster(scheduled=False)
async def test_a_scheduler_that_dies_before_a_step_is_followed_by_one_that_mends_it(here: Place, step: str):
    """kill -9 between any two writes."""
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


# -- what can never be ------------------------------------------------------------------------------


@pytest.mark.parametrize("count", [33, 128, 200])
@to_a_cluster()
async def test_more_devices_than_a_claim_holds_are_answered_with_the_reason(here: Place, count: int):
    """The KEP's known failure mode: such a pod stays pending, and only the log says why."""
    await of_dra(here, devices=100)
    await here.put(pod(container(gpu=count)))
    why = await here.why_not()
    assert f"{count} of {GPU}" in why
    assert "32" in why
    assert await here.extended_claims() == []


@to_a_cluster()
async def test_a_device_plugin_may_have_more_than_a_claim_holds(here: Place):
    await here.put(
        device_class(), node(), slice_(devices=100), node("plugin", gpu=200), pod(container(gpu=128))
    )
    assert await here.bound("p") == ["plugin"]


@to_a_cluster()
async def test_thirty_two_devices_are_served(here: Place):
    await of_dra(here, devices=32)
    await here.put(pod(container(gpu=32)))
    await is_well(here, devices=32)


@to_a_cluster()
async def test_part_of_a_device_is_answered_with_the_reason(here: Place):
    """5004-IMPL-07: Upstream makes a claim for it again and again, and never binds the pod."""
    await of_dra(here)
    await here.put(pod(container(implicit="500m")))
    why = await here.why_not()
    assert f"500m of {IMPLICIT}" in why
    assert here.wire.count("POST", CLAIMS) == 0
