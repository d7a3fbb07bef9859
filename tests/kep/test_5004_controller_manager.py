"""KEP-5004, what the controllers do with the claim for a pod's extended resources.

It is made by the scheduler; here the test makes it, in the form of "Resource Claim API".
"""

from typing import Any

from allot.controllers import garbagecollection, resourceclaims
from controllers.resourceclaims.objects import (
    CLAIM_NAME,
    allocate,
    allocation,
    claim,
    consumer,
    finish,
    gone,
    reserved,
    template,
)
from controllers.world import NS, World, tell
from kep.objects import ANNOTATION, container, extended_status, mapping, pod


def with_controllers(story: Any) -> Any:
    def test() -> None:
        tell(story, resourceclaims.CONTROLLER, garbagecollection.CONTROLLER)

    test.__name__, test.__doc__ = story.__name__, story.__doc__
    return test


async def served(here: World, **spec: Any):
    """A pod that asks for an extended resource, and its special claim, allocated and reserved."""
    made = await here.pods.create(pod(container(gpu=1), nodeName="n", **spec))
    owner = {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": made.uid, "controller": True}
    special = claim("special", annotations={ANNOTATION: "true"}, ownerReferences=[owner])
    own = await allocate(here, await here.claims.create(special), consumer(made))
    status = extended_status(mapping(request="r"), claim="special")
    await here.pods.patch("p", {"status": status}, NS, subresource="status")
    return own


@with_controllers
async def test_it_goes_together_with_the_pod(here: World):
    """5004-CLAIM-17: Resource Claim API: it is owned by the pod and deleted together with the owning pod's
    deletion."""
    await served(here)
    await here.quiet()
    await here.pods.delete("p", NS, grace_period_s=0)
    await gone(here, "special")


@with_controllers
async def test_it_is_kept_while_the_pod_runs(here: World):
    """5004-CLAIM-19: Resource Claim API: its lifecycle is the pod's; nobody takes it for a claim made in
    vain, though no entry of the pod's spec names it."""
    own = await served(here)
    await here.quiet()
    found = await here.claims.get("special", NS)
    assert found.resource_version == own.resource_version
    assert allocation(found) is not None and reserved(found) == ["p"]


@with_controllers
async def test_it_is_kept_while_the_scheduler_is_still_busy_with_it(here: World):
    """5004-CLAIM-19: neither allocated nor reserved yet, and named by nobody."""
    made = await here.pods.create(pod(container(gpu=1)))
    owner = {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": made.uid, "controller": True}
    special = claim("special", annotations={ANNOTATION: "true"}, ownerReferences=[owner])
    own = await here.claims.create(special)
    await here.quiet()
    assert (await here.claims.get("special", NS)).resource_version == own.resource_version


@with_controllers
async def test_it_is_given_back_when_the_pod_has_completed(here: World):
    """5004-CLAIM-18: Resource Claim API: its allocation and reservedFor are used as those of any claim."""
    await served(here)
    await finish(here)
    await gone(here, "special")
    assert await here.find(here.pods, "p") is not None


@with_controllers
async def test_it_is_not_taken_for_the_claim_of_an_entry_of_the_pod(here: World):
    """5004-CLAIM-19: Resource Claim API: it has no annotation `resource.kubernetes.io/pod-claim-name`, as it
    was not made for a claim in the pod spec; an entry gets a claim of its own."""
    await here.templates.create(template())
    entry = {"name": "gpu", "resourceClaimTemplateName": "t"}
    own = await served(here, resourceClaims=[entry])
    assert CLAIM_NAME not in (own.metadata.annotations or {})

    async def recorded() -> str:
        status = (await here.pods.get("p", NS)).fields.get("status") or {}
        names = [one.get("resourceClaimName") for one in status.get("resourceClaimStatuses") or ()]
        return names[0] if names else ""

    name = await here.until(recorded)
    assert name != "special"
    assert (await here.claims.get(name, NS)).metadata.annotations == {CLAIM_NAME: "gpu"}
    assert await here.find(here.claims, "special") is not None


@with_controllers
async def test_it_is_counted_by_its_source(here: World):
    """5004-MON-01: Monitoring Requirements: the claims metric has the labels admin_access, allocated and
    source, which tell that a claim was made for extended resources."""
    await served(here)
    line = "dynamic_resource_allocation_resource_claims"
    line += '{allocated="true",admin_access="false",source="extended_resource"} 1'

    async def shown() -> bool:
        return line in here.metrics.text()

    await here.until(shown)
