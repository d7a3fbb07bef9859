"""Reservations, deallocation and deletion, over the real server. Rule 6.1 (syncClaim)."""

import asyncio

from allot.api import Request
from allot.controllers.resourceclaims import claim_loop
from controllers.resourceclaims.objects import (
    FINALIZER,
    allocate,
    allocation,
    claim,
    consumer,
    direct,
    finish,
    freeze,
    generated,
    gone,
    owned_by,
    pod,
    reserved,
    story,
    template,
)
from controllers.world import NS, World


async def deallocated(here: World, name: str = "c"):
    """The claim, once it holds nothing and nothing holds it."""

    async def look():
        found = await here.find(here.claims, name)
        free = found is not None and allocation(found) is None and not found.metadata.finalizers
        return found if free else None

    return await here.until(look)


async def leave_behind(here: World) -> None:
    """The cache has a pod that the server has no more, and hears nothing of pods from now on."""
    await here.pods.create(pod(claims=[]))
    await here.quiet()
    await freeze(here, "pods")
    await here.pods.delete("p", NS, grace_period_s=0)


@story
async def test_a_finished_pod_gives_its_claim_back(here: World):
    """Rule 6.1: terminal phase; on transition to zero consumers the allocation is cleared."""
    made = await here.claims.create(claim())
    running = await here.pods.create(pod(claims=direct()))
    await allocate(here, made, consumer(running))
    await here.quiet()
    assert reserved(await here.claims.get("c", NS)) == ["p"]
    await finish(here)
    found = await deallocated(here)
    assert reserved(found) == []


@story
async def test_a_consumer_whose_name_nothing_can_have_is_gone(here: World):
    """The server takes any text as the name of a consumer; to ask for it was a bug, for ever."""
    made = await here.claims.create(claim())
    running = await here.pods.create(pod(claims=direct()))
    await allocate(here, made, {**consumer(running), "name": "a/b", "uid": "nobody"})
    assert reserved(await deallocated(here)) == []


@story
async def test_reservation_and_allocation_go_in_one_write_and_the_finalizer_in_the_next(here: World):
    """Rule 6.1, C1: no state that a watcher can see has an allocation without the finalizer,
    or the last reservation gone and the allocation left."""
    made = await here.claims.create(claim())
    running = await here.pods.create(pod(claims=direct()))
    held = await allocate(here, made, consumer(running))
    await finish(here)
    await deallocated(here)
    seen = []
    async for event in here.claims.watch(NS, resource_version=held.resource_version):
        object = event.object
        seen.append(
            (bool(allocation(object)), reserved(object), FINALIZER in (object.metadata.finalizers or []))
        )
        if not seen[-1][2]:
            break
    assert seen == [(False, [], True), (False, [], False)]


@story
async def test_a_deleted_pod_gives_its_claim_back(here: World):
    """Rule 6.1: known deleted."""
    made = await here.claims.create(claim())
    running = await here.pods.create(pod(claims=direct(), nodeName="n"))
    await allocate(here, made, consumer(running))
    await here.quiet()
    await here.pods.delete("p", NS, grace_period_s=0)
    await deallocated(here)
    assert here.wire.count("GET", "/pods/") == 0  # its end was seen: no need to ask


@story
async def test_a_reservation_of_a_pod_that_nobody_knows_is_removed_after_asking(here: World):
    """Rule 6.1: unknown pod, live GET before removal."""
    made = await here.claims.create(claim())
    await allocate(here, made, {"resource": "pods", "name": "never", "uid": "was-never-here"})
    await deallocated(here)
    assert here.wire.count("GET", "/pods/never") == 1


@story
async def test_a_reservation_of_a_pod_that_was_replaced_is_removed(here: World):
    """Rule 6.1: the uid differs. The server is asked first: the cache may hold the older pod."""
    made = await here.claims.create(claim())
    await here.pods.create(pod(claims=direct()))
    await allocate(here, made, {"resource": "pods", "name": "p", "uid": "of-an-earlier-pod"})
    await deallocated(here)


@story
async def test_a_pod_that_holds_a_claim_without_naming_it_gives_it_back_too(here: World):
    """C3: what counts is the reservation, not what the pod says."""
    made = await here.claims.create(claim())
    running = await here.pods.create(pod(claims=[]))
    await allocate(here, made, consumer(running))
    await here.quiet()
    assert reserved(await here.claims.get("c", NS)) == ["p"]
    await finish(here)
    await deallocated(here)


@story
async def test_a_pod_deleted_before_it_was_scheduled_needs_nothing(here: World):
    """Rule 6.1: deletionTimestamp without a node."""
    made = await here.claims.create(claim())
    sent = pod(claims=direct())
    sent["metadata"]["finalizers"] = ["example.com/hold"]
    waiting = await here.pods.create(sent)
    await allocate(here, made, consumer(waiting))
    await here.pods.delete("p", NS)
    await deallocated(here)
    assert await here.find(here.pods, "p") is not None


@story
async def test_a_pod_that_is_being_deleted_on_its_node_keeps_its_claim(here: World):
    """C6: it may still run."""
    made = await here.claims.create(claim())
    running = await here.pods.create(pod(claims=direct(), nodeName="n"))
    await allocate(here, made, consumer(running))
    await here.pods.delete("p", NS, grace_period_s=30)
    await here.quiet()
    assert reserved(await here.claims.get("c", NS)) == ["p"]


@story
async def test_those_who_still_need_a_claim_keep_it(here: World):
    """Rule 6.1: one of two consumers leaves: pruned, still allocated."""
    made = await here.claims.create(claim())
    first, second = await here.pods.create(pod("p1", direct())), await here.pods.create(pod("p2", direct()))
    await allocate(here, made, consumer(first), consumer(second))
    await finish(here, "p1", "Failed")

    async def pruned():
        found = await here.claims.get("c", NS)
        return reserved(found) == ["p2"] and found

    assert allocation(await here.until(pruned)) is not None


@story
async def test_consumers_that_are_not_pods_are_kept(here: World):
    """Rule 6.1: unknown kinds of consumers are kept, and hold the allocation."""
    made = await here.claims.create(claim())
    other = {"apiGroup": "example.com", "resource": "jobs", "name": "j", "uid": "u"}
    running = await here.pods.create(pod(claims=direct()))
    await allocate(here, made, other, consumer(running))
    await finish(here)

    async def pruned():
        return reserved(await here.claims.get("c", NS)) == ["j"]

    await here.until(pruned)
    await here.quiet()
    assert allocation(await here.claims.get("c", NS)) is not None


@story
async def test_without_the_finalizer_a_claim_stays_allocated(here: World):
    """Rule 6.1: cleared only if the claim carries the finalizer."""
    made = await here.claims.create(claim())
    running = await here.pods.create(pod(claims=direct()))
    await allocate(here, made, consumer(running), protect=False)
    await finish(here)

    async def unreserved():
        found = await here.claims.get("c", NS)
        return not reserved(found) and found

    assert allocation(await here.until(unreserved)) is not None


@story
async def test_an_allocated_claim_that_was_never_reserved_is_left_until_it_is_deleted(here: World):
    """Rule 6.1: not touched unless deleted; then cleared, then the finalizer goes and so does the claim."""
    made = await here.claims.create(claim())
    held = await allocate(here, made)
    await here.quiet()
    assert (await here.claims.get("c", NS)).resource_version == held.resource_version
    await here.claims.delete("c", NS)
    await gone(here, "c")


@story
async def test_deleting_a_claim_in_use_waits_for_the_pod(here: World):
    """Rule 6.5 and C6: the finalizer holds the claim until its consumers are gone."""
    made = await here.claims.create(claim())
    running = await here.pods.create(pod(claims=direct()))
    await allocate(here, made, consumer(running))
    await here.claims.delete("c", NS)
    await here.quiet()
    assert allocation(await here.claims.get("c", NS)) is not None
    await finish(here)
    await gone(here, "c")


@story
async def test_a_generated_claim_goes_when_its_pod_is_done(here: World):
    """Rule 6.1: DELETE right away, without waiting for the owner to go."""
    await here.templates.create(template())
    running = await here.pods.create(pod())
    made = await generated(here)
    await allocate(here, made, consumer(running))
    await finish(here)
    await gone(here, made.name)
    assert await here.find(here.pods, "p") is not None


@story
async def test_without_transactions_a_generated_claim_goes_in_three_writes(here: World):
    """Rule 6.1: status, finalizer, deletion. Each relies on what came of the one before it."""
    await here.templates.create(template())
    running = await here.pods.create(pod())
    made = await generated(here)
    held = await allocate(here, made, consumer(running))
    await here.quiet()
    here.wire.requests.clear()
    await finish(here)
    seen = []
    async for event in here.claims.watch(NS, resource_version=held.resource_version):
        found = event.object
        seen.append((event.type.value, bool(allocation(found)), bool(found.metadata.finalizers)))
        if event.type.value == "DELETED":
            break
    assert seen == [("MODIFIED", False, True), ("MODIFIED", False, False), ("DELETED", False, False)]
    await here.quiet()
    writes = [one.method for one in here.wire.requests if f"/resourceclaims/{made.name}" in one.path]
    assert writes == ["PATCH", "PATCH", "DELETE"]


@story
async def test_a_generated_claim_that_somebody_has_come_to_hold_does_not_go(here: World):
    """C6: another pod is given devices with it, between the controller's look and the deletion."""
    await here.templates.create(template())
    await here.pods.create(pod())
    made = await generated(here)
    other = await here.pods.create(pod("q", claims=[]))
    await here.quiet()
    raced = False

    async def race(request: Request) -> None:
        nonlocal raced
        if request.method == "DELETE" and not raced:
            raced = True
            await allocate(here, made, consumer(other))

    here.wire.before = race
    await finish(here)
    await here.quiet()
    found = await here.claims.get(made.name, NS)
    assert raced and (found.uid, found.metadata.deletion_timestamp) == (made.uid, None)
    assert allocation(found) is not None and reserved(found) == ["q"]


@story
async def test_a_generated_claim_stays_while_its_pod_restarts(here: World):
    """A container that ends and is started again is not the end of its pod; nor is it when the node
    says Pending meanwhile, as after a restart of its machine."""
    await here.templates.create(template())
    running = await here.pods.create(pod(restartPolicy="Always", nodeName="n"))
    made = await generated(here)
    held = await allocate(here, made, consumer(running))
    ended = {"terminated": {"exitCode": 1, "reason": "Error"}}
    begun = {"running": {"startedAt": "2026-01-01T00:00:00Z"}}
    for phase, state, restarts in (
        ("Running", begun, 0),
        ("Running", ended, 0),
        ("Running", begun, 1),
        ("Pending", ended, 1),
        ("Running", begun, 2),
    ):
        image = {"image": "example/app:1", "imageID": ""}
        main = {"name": "main", "ready": state is begun, "restartCount": restarts, "state": state, **image}
        status = {"phase": phase, "containerStatuses": [main]}
        await here.pods.patch("p", {"status": status}, NS, subresource="status")
        await here.quiet()
        found = await here.claims.get(made.name, NS)
        assert (found.uid, found.metadata.deletion_timestamp) == (made.uid, None)
        assert allocation(found) == allocation(held) and reserved(found) == ["p"]
    await finish(here)
    await gone(here, made.name)


@story
async def test_a_claim_that_was_made_for_a_pod_and_never_recorded_goes_with_it(here: World):
    """Rule 6.1, C3: the controller died between the two writes, and the pod has finished since."""
    running = await here.pods.create(pod(claims=[]))
    await here.claims.create(claim(**owned_by(running)))
    await here.quiet()
    await finish(here)
    await gone(here, "c")


@story
async def test_a_generated_claim_of_a_pod_that_was_replaced_goes(here: World):
    """Rule 6.1: owned by another uid than the pod of that name has."""
    await here.pods.create(pod(claims=[]))
    earlier = owned_by(await here.pods.get("p", NS))
    earlier["ownerReferences"][0]["uid"] = "of-an-earlier-pod"
    await here.claims.create(claim(**earlier))
    await gone(here, "c")


@story
async def test_a_generated_claim_of_a_pod_that_is_not_there_is_left_to_garbage_collection(here: World):
    """Rule 6.1: the pod is not in the cache."""
    made = await here.pods.create(pod(claims=[]))
    await here.pods.delete("p", NS, grace_period_s=0)
    await here.claims.create(claim(**owned_by(made)))
    await here.quiet()
    assert await here.find(here.claims, "c") is not None


@story
async def test_who_owns_a_claim_is_left_to_garbage_collection_where_the_server_has_no_such_pod(here: World):
    """Rule 6.1: the cache has a pod of that name, which is not the owner, and the server has none."""
    await leave_behind(here)
    earlier = {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "of-an-earlier-pod", "controller": True}
    await here.claims.create(claim(ownerReferences=[earlier]))
    await here.quiet()
    assert here.wire.count("GET", "/pods/p") > 0
    assert await here.find(here.claims, "c") is not None


@story
async def test_the_claim_for_extended_resources_is_given_back_and_deleted(here: World):
    """Rule 6.1: found through pod.status; it is in no spec."""
    sent = pod(claims=[])
    sent["spec"]["containers"][0]["resources"] = {
        "requests": {"example.com/gpu": "1"},
        "limits": {"example.com/gpu": "1"},
    }
    running = await here.pods.create(sent)
    owner = owned_by(running)
    owner["annotations"] = {"resource.kubernetes.io/extended-resource-claim": "true"}
    made = await here.claims.create(claim(**owner))
    mapping = {"containerName": "main", "resourceName": "example.com/gpu", "requestName": "r"}
    status = {"resourceClaimName": "c", "requestMappings": [mapping]}
    await here.pods.patch("p", {"status": {"extendedResourceClaimStatus": status}}, NS, subresource="status")
    await allocate(here, made, consumer(running))
    await here.quiet()
    assert 'source="extended_resource"} 1' in here.metrics.text()
    await finish(here)
    await gone(here, "c")


@story
async def test_a_cache_that_is_behind_does_not_cost_a_running_pod_its_device(here: World):
    """C6. The pod of that name is replaced and the new one reserves the claim, while the
    controller's pods are those of the past. Upstream believes its cache here."""
    made = await here.claims.create(claim())
    await here.pods.create(pod(claims=direct()))
    await here.quiet()
    await freeze(here, "pods")
    await here.pods.delete("p", NS, grace_period_s=0)
    running = await here.pods.create(pod(claims=direct(), nodeName="n"))
    await allocate(here, made, consumer(running))
    await here.quiet()
    assert reserved(await here.claims.get("c", NS)) == ["p"]
    assert here.wire.count("GET", "/pods/p") >= 1


@story
async def test_a_cache_that_is_behind_does_not_cost_a_new_pod_its_claim(here: World):
    """The cache still has the earlier pod of that name; the claim is the later one's."""
    await leave_behind(here)
    later = await here.pods.create(pod())
    await here.claims.create(claim(**owned_by(later)))
    await here.quiet()
    assert await here.find(here.claims, "c") is not None


@story
async def test_an_owner_that_the_cache_never_hears_of_is_looked_at_again(here: World):
    """The server knows the claim's pod, and the cache an earlier one. Then a third has the name, and no watch
    tells of either."""
    claim_loop.CACHE_BEHIND_S, before = 0.2, claim_loop.CACHE_BEHIND_S
    try:
        await leave_behind(here)
        later = await here.pods.create(pod(claims=[]))
        await here.claims.create(claim(**owned_by(later)))
        await here.quiet()
        assert await here.find(here.claims, "c") is not None
        await here.pods.delete("p", NS, grace_period_s=0)
        await here.pods.create(pod(claims=[]))
        await gone(here, "c")
    finally:
        claim_loop.CACHE_BEHIND_S = before


@story
async def test_a_pod_that_the_cache_never_hears_of_is_looked_at_again(here: World):
    """C3. The server says that the pod is there; then it goes, and no watch tells of either."""
    claim_loop.CACHE_BEHIND_S, before = 0.2, claim_loop.CACHE_BEHIND_S
    try:
        made = await here.claims.create(claim())
        await here.quiet()
        await freeze(here, "pods")
        running = await here.pods.create(pod(claims=direct(), nodeName="n"))
        await allocate(here, made, consumer(running))
        await here.quiet()
        assert reserved(await here.claims.get("c", NS)) == ["p"]
        await here.pods.delete("p", NS, grace_period_s=0)
        await deallocated(here)
    finally:
        claim_loop.CACHE_BEHIND_S = before


@story
async def test_a_write_that_lost_a_race_is_decided_anew(here: World):
    """A second pod reserves the claim between the controller's look and its write."""
    made = await here.claims.create(claim())
    first, second = await here.pods.create(pod("p1", direct())), await here.pods.create(pod("p2", direct()))
    await allocate(here, made, consumer(first))
    raced = False

    async def race(request: Request) -> None:
        nonlocal raced
        if request.method == "PATCH" and not raced:
            raced = True
            both = [consumer(first), consumer(second)]
            await here.claims.patch("c", {"status": {"reservedFor": both}}, NS, subresource="status")

    here.wire.before = race
    await finish(here, "p1")

    async def pruned():
        return reserved(await here.claims.get("c", NS)) == ["p2"]

    await here.until(pruned)
    assert raced
    assert allocation(await here.claims.get("c", NS)) is not None


@story
async def test_an_idle_controller_asks_nothing(here: World):
    """Twenty pods with claims at rest: no request of any kind."""
    await here.templates.create(template())
    for n in range(20):
        running = await here.pods.create(pod(f"p{n}"))
        await allocate(here, await generated(here, f"p{n}"), consumer(running))
    await here.quiet()
    before = len(here.wire.requests)
    await asyncio.sleep(0.5)
    assert len(here.wire.requests) == before
