"""KEP-5004, "Failure handling", Unreserve and PostFilter: whatever fails, one claim a pod or none, and a pod
that is tried again. C5 and P1 of the system's invariants.
"""

import asyncio
import json
from functools import partial

import pytest

from allot.api import Request, errors
from kep.cluster import Place, reserved_for, to_a_cluster
from kep.objects import GPU, IMPLICIT, NS, container, device_class, node, pod, slice_
from kep.steps import CLAIMS, STEPS, is_step, is_well, of_dra, refuse

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
    """5004-PREB-02: PreBind fails, Unreserve cleans up, the pod is queued again."""
    await of_dra(here)
    met = refuse(here, step)
    await here.put(pod())
    await is_well(here)
    assert len(met) == 1
    assert bool(here.wire.count("DELETE", CLAIMS)) == (step != "creating the claim")


@pytest.mark.parametrize("step", STEPS)
@to_a_cluster()
async def test_while_a_step_is_refused_nothing_is_left_behind(here: Place, step: str):
    """5004-PREB-02: And the devices are free for others."""
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
    """5004-UNRES-01: Unreserve: while the pod waits for its next attempt, others may have its device."""
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
    """5004-FAIL-01: The request arrives, the answer does not. Nothing is undone for that."""
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
    """5004-PREB-03: The KEP: these updates have local retries in case there is a conflict. Nothing is undone
    for one."""
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


@pytest.mark.parametrize("fails", ["PUT", "DELETE"])
@to_a_cluster()
async def test_cleaning_up_may_fail_and_is_made_good(here: Place, fails: str, caplog):
    """5004-UNRES-03: the failure is logged, and ends nothing. The claim of the failed attempt goes all the
    same, or serves the next one."""
    await of_dra(here)
    binding, cleaning = [], []

    async def before(request):
        if request.method == "POST" and "/binding" in request.path and not binding:
            binding.append(request)
            raise errors.Forbidden("not bound")
        if binding and request.method == fails and CLAIMS in request.path and len(cleaning) < 2:
            cleaning.append(request)
            raise errors.Forbidden("not cleaned up")

    here.wire.before = before
    await here.put(pod(), pod(name="other"))
    placed = await here.until(partial(any_of, here, "p", "other"), "one of them on the node")
    assert cleaning
    assert "stays reserved for" in caplog.text

    async def mended() -> bool:
        return [reserved_for(claim) for claim in await here.extended_claims()] == [[placed]]

    await here.until(mended, "one claim, of the pod that is on the node")


async def any_of(here: Place, *names: str) -> str:
    return next(iter([name for name in names if await here.node_of(name)]), "")


@to_a_cluster()
async def test_what_is_held_goes_before_the_claim(here: Place):
    """5004-UNRES-02: allocation and finalizer, then the claim."""
    await of_dra(here)
    met = refuse(here, "binding the pod")
    await here.put(pod())
    await is_well(here)
    begun = here.wire.requests.index(met[0])
    undone = [one for one in here.wire.requests[begun + 1 :] if one.method != "GET" and CLAIMS in one.path]
    first, second, third = undone[:3]
    assert (first.method, second.method, third.method) == ("PUT", "PUT", "DELETE")
    assert first.path.endswith("/status") and not json.loads(first.body)["status"].get("allocation")
    assert not second.path.endswith("/status") and not json.loads(second.body)["metadata"].get("finalizers")


@pytest.mark.parametrize("step", STEPS)
@to_a_cluster()
async def test_what_is_decided_holds_while_it_is_being_written(here: Place, step: str):
    """5004-CLAIM-16, 5004-RES-01, 5004-SCHED-08: Reserve: however long a write takes, the device is not
    promised to another pod."""
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
async def test_others_are_placed_while_a_write_is_under_way(here: Place):
    """5004-PREB-04."""
    await of_dra(here, devices=2)
    go_on = asyncio.Event()

    async def before(request):
        if is_step("creating the claim", request) and b"p-extended-resources-" in request.body:
            await go_on.wait()

    here.wire.before = before
    await here.put(pod())

    async def begun() -> bool:
        return here.wire.count("POST", CLAIMS) == 1

    await here.until(begun, "the first claim is being made")
    await here.put(pod(name="other"))
    await here.settled("other")
    assert not await here.node_of("p")
    go_on.set()
    await here.settled()


@pytest.mark.parametrize("step", STEPS)
@to_a_cluster(controlled=False)
async def test_a_pod_that_is_deleted_on_its_way_leaves_nothing(here: Place, step: str):
    """5004-FAIL-03: the scheduler cleans up behind itself, without a controller that would."""
    await of_dra(here)

    async def before(request):
        if is_step(step, request):
            here.wire.before = None
            await here.delete_pod()

    here.wire.before = before
    await here.put(pod())

    async def gone() -> bool:
        return here.wire.before is None

    await here.until(gone, "the pod is deleted")
    await here.no_claims()
    await here.put(pod(name="next"))
    await here.settled("next")


@to_a_cluster()
async def test_a_claim_whose_pod_somebody_else_bound_is_left_alone(here: Place):
    """5004-FAIL-06: another scheduler was quicker, and the pod runs on the devices of the claim."""
    await of_dra(here)
    await here.put(node("n2"))
    seen = []

    async def before(request):
        if is_step("binding the pod", request) and not seen:
            seen.extend(await here.extended_claims())
            await here.resource("pods").bind("p", NS, "n2")

    here.wire.before = before
    await here.put(pod())
    assert await here.bound("p") == ["n2"]
    await here.quiet()
    (claim,) = await here.extended_claims()
    assert claim.resource_version == seen[0].resource_version
    assert here.wire.count("DELETE", CLAIMS) == 0


# -- what can never be ------------------------------------------------------------------------------


@pytest.mark.parametrize("count", [33, 128, 200])
@to_a_cluster()
async def test_more_devices_than_a_claim_holds_are_answered_with_the_reason(here: Place, count: int):
    """5004-SCHED-11: The KEP's known failure mode: such a pod stays pending, and only the log says why."""
    await of_dra(here, devices=100)
    await here.put(pod(container(gpu=count)))
    why = await here.why_not()
    assert f"{count} of {GPU}" in why
    assert "32" in why
    assert await here.extended_claims() == []


@to_a_cluster()
async def test_a_device_plugin_may_have_more_than_a_claim_holds(here: Place):
    """5004-SCHED-11."""
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
