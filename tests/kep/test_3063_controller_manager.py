"""KEP-3063, what kube-controller-manager does for claims, told to the real server and controllers.

Statements that later KEPs replaced (immediate allocation, drivers that deallocate, a name made of pod
and entry alone) are held in the form that replaced them, and the docstring says so.
"""

import asyncio
from typing import Any

import pytest

from allot.api import errors
from allot.apiserver import identities
from allot.controllers import garbagecollection, resourceclaims
from controllers.resourceclaims.objects import (
    FINALIZER,
    allocate,
    allocation,
    claim,
    consumer,
    direct,
    finish,
    generated,
    gone,
    pod,
    reserved,
    template,
)
from controllers.world import NS, World, tell


def with_controllers(*controllers: Any) -> Any:
    """A story as a test, with these controllers beside that of claims."""

    def decorate(story: Any) -> Any:
        def test() -> None:
            tell(story, resourceclaims.CONTROLLER, *controllers)

        test.__name__, test.__doc__ = story.__name__, story.__doc__
        return test

    return decorate


async def released(here: World, name: str = "c") -> None:
    async def look() -> bool:
        found = await here.claims.get(name, NS)
        return allocation(found) is None and not reserved(found) and not found.metadata.finalizers

    await here.until(look)


# -- kube-controller-manager ---------------------------------------------------------------------


@with_controllers()
async def test_a_claim_is_created_from_the_template(here: World):
    """kube-controller-manager: a ResourceClaim is created from a ResourceClaimTemplate."""
    await here.templates.create(template())
    made = await here.pods.create(pod())
    found = await generated(here)
    assert found.fields["metadata"]["ownerReferences"][0]["uid"] == made.uid
    assert found.fields["spec"]["devices"]["requests"] == [
        {"name": "r", "exactly": {"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": 1}}
    ]


@with_controllers()
async def test_it_has_the_rights_to_create_and_update_claims_and_few_others(here: World):
    """kube-controller-manager: it needs permissions that allow creating and updating ResourceClaims."""
    its = here.server.client(identities.controller("resource-claim-controller"))
    claims = its.resource("resource.k8s.io", "v1", "resourceclaims")
    made = await claims.create(claim())
    await claims.patch("c", {"metadata": {"finalizers": [FINALIZER]}}, NS)
    await claims.patch("c", {"status": {"reservedFor": None}}, NS, subresource="status")
    assert made.name == "c"
    with pytest.raises(errors.Forbidden):
        await its.resource("", "v1", "pods").create(pod("another"))
    with pytest.raises(errors.Forbidden):
        await its.resource("", "v1", "secrets").list(NS)


@with_controllers()
async def test_reservations_of_deleted_pods_are_removed(here: World):
    """kube-controller-manager: removes reservedFor entries that reference deleted objects."""
    made = await here.claims.create(claim())
    running = await here.pods.create(pod(claims=direct(), nodeName="n"))
    await allocate(here, made, consumer(running))
    await here.quiet()
    assert reserved(await here.claims.get("c", NS)) == ["p"]
    await here.pods.delete("p", NS, grace_period_s=0)
    await released(here)


@pytest.mark.parametrize("phase", ["Succeeded", "Failed"])
def test_reservations_of_pods_that_have_completed_are_removed(phase):
    """kube-controller-manager: or pods that have completed ("Phase" is "done")."""

    async def story(here: World) -> None:
        made = await here.claims.create(claim())
        running = await here.pods.create(pod(claims=direct(), nodeName="n"))
        await allocate(here, made, consumer(running))
        await finish(here, phase=phase)
        await released(here)
        assert await here.find(here.pods, "p") is not None

    tell(story, resourceclaims.CONTROLLER)


@with_controllers()
async def test_a_node_may_not_write_the_status_of_a_claim(here: World):
    """kube-controller-manager: it must, because kubelet has no write permission for the claim's status."""
    made = await here.claims.create(claim())
    running = await here.pods.create(pod(claims=direct(), nodeName="n"))
    await allocate(here, made, consumer(running))
    nodes = here.server.client(identities.node("n")).resource("resource.k8s.io", "v1", "resourceclaims")
    with pytest.raises(errors.Forbidden):
        await nodes.patch("c", {"status": {"reservedFor": None}}, NS, subresource="status")


@with_controllers()
async def test_users_that_are_not_pods_are_left_to_whoever_put_them_there(here: World):
    """Sharing a single ResourceClaim: users of a claim don't need to be pods."""
    made = await here.claims.create(claim())
    other = {"apiGroup": "example.com", "resource": "trainings", "name": "t", "uid": "u"}
    held = await allocate(here, made, other)
    await here.quiet()
    assert (await here.claims.get("c", NS)).resource_version == held.resource_version


@with_controllers()
async def test_claims_of_a_completed_pod_are_deleted(here: World):
    """kube-controller-manager: also deletes ResourceClaims that are owned by a completed pod."""
    await here.templates.create(template())
    running = await here.pods.create(pod())
    made = await generated(here)
    await allocate(here, made, consumer(running))
    await finish(here)
    await gone(here, made.name)


# -- Ephemeral vs. persistent ResourceClaims lifecycle -------------------------------------------


@with_controllers(garbagecollection.CONTROLLER)
async def test_a_persistent_claim_outlives_every_pod(here: World):
    """Ephemeral vs. persistent ResourceClaims lifecycle: independent of any particular pod, used by
    pods at the same time or one after the other, deleted by the user."""
    made = await here.claims.create(claim())
    first = await here.pods.create(pod("first", direct(), nodeName="n"))
    second = await here.pods.create(pod("second", direct(), nodeName="n"))
    await allocate(here, made, consumer(first), consumer(second))
    for name in ("first", "second"):
        await here.pods.delete(name, NS, grace_period_s=0)
    await released(here)
    third = await here.pods.create(pod("third", direct(), nodeName="n"))
    await allocate(here, await here.claims.get("c", NS), consumer(third))
    assert (await here.claims.get("c", NS)).uid == made.uid
    await here.claims.delete("c", NS)
    await here.quiet()
    assert await here.find(here.claims, "c") is not None  # in use
    await here.pods.delete("third", NS, grace_period_s=0)
    await gone(here, "c")


@with_controllers(garbagecollection.CONTROLLER)
async def test_an_ephemeral_claim_belongs_to_its_pod_and_goes_with_it(here: World):
    """Ephemeral vs. persistent ResourceClaims lifecycle: a normal ResourceClaim with the pod as owner;
    once the pod got deleted, the garbage collector deletes the claim."""
    await here.templates.create(template())
    for name in ("a", "b"):
        await here.pods.create(pod(name))
    first, second = await generated(here, "a"), await generated(here, "b")
    assert first.uid != second.uid
    await here.quiet()
    await here.pods.delete("a", NS, grace_period_s=0)
    await gone(here, first.name)
    assert await here.find(here.claims, second.name) is not None


@with_controllers()
async def test_devices_come_back_although_the_completed_pod_stays(here: World):
    """Ephemeral vs. persistent ResourceClaims lifecycle: ownership is not sufficient, since completed
    pods are not deleted immediately; their allocations are released."""
    await here.templates.create(template())
    running = await here.pods.create(pod(nodeName="n"))
    made = await generated(here)
    await allocate(here, made, consumer(running))
    await finish(here)
    await gone(here, made.name)
    assert (await here.pods.get("p", NS)).uid == running.uid


@with_controllers()
async def test_a_claim_that_happens_to_have_the_name_is_not_the_pods(here: World):
    """Ephemeral vs. persistent ResourceClaims lifecycle: ownership must be checked, to detect accidental
    conflicts. Names are generated today, and the record in the pod's status is checked instead."""
    persistent = await here.claims.create(claim("p-gpu"))
    await here.templates.create(template())
    made = await here.pods.create(pod(nodeName="n"))
    own = await generated(here)
    assert own.fields["metadata"]["ownerReferences"][0]["uid"] == made.uid
    recorded = [{"name": "gpu", "resourceClaimName": "p-gpu"}]
    await here.pods.patch("p", {"status": {"resourceClaimStatuses": recorded}}, NS, subresource="status")
    await allocate(here, persistent)
    await here.quiet()
    assert reserved(await here.claims.get("p-gpu", NS)) == []


# -- Resource allocation and usage flow ----------------------------------------------------------


@with_controllers()
async def test_a_step_that_fails_changes_nothing_and_is_tried_until_it_succeeds(here: World):
    """Resource allocation and usage flow: steps may fail without changing the system state, and must
    then be retried until they succeed."""
    refusals = 0

    async def refuse(request: Any) -> None:
        nonlocal refusals
        if request.method == "POST" and request.path.endswith("/resourceclaims") and refusals < 4:
            refusals += 1
            raise errors.Unavailable("not now")

    here.wire.before = refuse
    await here.templates.create(template())
    await here.pods.create(pod())
    await generated(here)
    assert refusals == 4
    assert len((await here.claims.list(NS)).objects) == 1


@with_controllers()
async def test_a_deleted_claim_without_users_is_deallocated_and_let_go(here: World):
    """Resource allocation and usage flow: with a deletionTimestamp and an empty reservedFor the resource
    is deallocated, finalizer and allocation go, and the server removes the claim. (By this controller
    today; then by the driver.)"""
    made = await here.claims.create(claim())
    await allocate(here, made)
    await here.claims.delete("c", NS)
    await gone(here, "c")


# -- User permissions and quotas -----------------------------------------------------------------


@with_controllers()
async def test_who_may_make_pods_gets_claims_through_them(here: World):
    """User permissions and quotas: claims are created on behalf of the user; rules that prevent creating
    ResourceClaims do not prevent it."""
    rbac = "rbac.authorization.k8s.io"
    roles = here.client.resource(rbac, "v1", "roles")
    bindings = here.client.resource(rbac, "v1", "rolebindings")
    rules = [{"apiGroups": [""], "resources": ["pods"], "verbs": ["create"]}]
    await roles.create({"metadata": {"name": "pods", "namespace": NS}, "rules": rules})
    reference = {"apiGroup": rbac, "kind": "Role", "name": "pods"}
    subject = {"apiGroup": rbac, "kind": "User", "name": "ann"}
    await bindings.create(
        {"metadata": {"name": "pods", "namespace": NS}, "roleRef": reference, "subjects": [subject]}
    )
    await here.templates.create(template())
    await here.quiet()
    anns = here.server.client(identities.user("ann"))
    with pytest.raises(errors.Forbidden):
        await anns.resource("resource.k8s.io", "v1", "resourceclaims").create(claim())
    await anns.resource("", "v1", "pods").create(pod())
    await generated(here)


@with_controllers()
async def test_the_number_of_claims_in_a_namespace_can_be_limited(here: World):
    """User permissions and quotas: the number of ResourceClaims per namespace can be limited, under the
    name `count/resourceclaims.resource.k8s.io` today. Whose pod waits is told so."""
    name = "count/resourceclaims.resource.k8s.io"
    quotas = here.client.resource("", "v1", "resourcequotas")
    await quotas.create({"metadata": {"name": "q", "namespace": NS}, "spec": {"hard": {name: "1"}}})
    counted = {"status": {"hard": {name: "1"}, "used": {name: "0"}}}  # as its controller would
    await quotas.patch("q", counted, NS, subresource="status")
    await here.templates.create(template())
    await here.pods.create(pod("first"))
    await generated(here, "first")
    await here.pods.create(pod("second"))
    events = here.client.resource("", "v1", "events")

    async def explained() -> bool:
        texts = [one.fields["message"] for one in (await events.list(NS)).objects]
        return any("exceeded quota: q" in text for text in texts)

    await here.until(explained)
    assert len((await here.claims.list(NS)).objects) == 1


# -- Monitoring requirements, scalability --------------------------------------------------------


@with_controllers()
async def test_creations_failures_and_the_queue_are_counted(here: World):
    """Monitoring Requirements: claims created, failures to, and the workqueue `resource_claim`; the first
    two are one metric with a status today."""
    await here.templates.create(template())
    await here.pods.create(pod())
    await generated(here)
    text = here.metrics.text()
    created = "dynamic_resource_allocation_resourceclaim_creates_total"
    assert (
        f'{created}{{status="success",admin_access="false",owner_api_group="",owner_api_kind="Pod"}} 1'
        in text
    )
    assert 'workqueue_adds_total{name="resource_claim"}' in text


@with_controllers()
async def test_a_claim_at_rest_costs_no_requests(here: World):
    """Scalability: once a ResourceClaim is allocated and the pod runs, there are no periodic API calls."""
    await here.templates.create(template())
    running = await here.pods.create(pod(nodeName="n"))
    await allocate(here, await generated(here), consumer(running))
    await here.quiet()
    before = len(here.wire.requests)
    await asyncio.sleep(0.5)
    assert len(here.wire.requests) == before
