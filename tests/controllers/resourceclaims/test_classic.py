"""Classic claims and the claim controller: names, classes, foreign claims, and the way back (KEP-3063)."""

import pytest

from allot.api import Object, User, classic, encode, errors
from allot.controllers import garbagecollection, resourceclaims
from allot.controllers.resourceclaims import loop
from allot.controllers.resourceclaims.memory import Gone, Made
from allot.informers import Added, Deleted, Informer, ResourceId
from api.classic.objects import DRIVER, allocated, class_
from api.classic.objects import claim as classic_claim
from api.classic.objects import consumer as someone
from api.classic.objects import template as classic_template
from controllers.resourceclaims.objects import (
    CLAIM_NAME,
    consumer,
    direct,
    exhaust,
    finish,
    generated,
    gone,
    pod,
    reserved,
    story,
)
from controllers.resourceclaims.objects import template as structured_template
from controllers.world import NS, World, tell

FINALIZER = classic.limits.finalizer_of(DRIVER)


def in_v1alpha1(here, plural="resourceclaims", namespaced=True):
    return here.client.resource("resource.k8s.io", "v1alpha1", plural, namespaced=namespaced)


async def prepared(here, **template):
    """A class and a template of it."""
    await in_v1alpha1(here, "resourceclasses", namespaced=False).create(class_())
    body = classic_template()
    body["spec"] |= template
    return await in_v1alpha1(here, "resourceclaimtemplates").create(body)


async def allocate(here, name, *consumers, shareable=False):
    """As a driver does: its finalizer, then allocation and reservation in one write."""
    claims = in_v1alpha1(here)
    await claims.patch(name, {"metadata": {"finalizers": [FINALIZER]}}, NS)
    status = {**allocated(resourceHandle="h", shareable=shareable), "reservedFor": list(consumers)}
    return await claims.patch(name, {"status": status}, NS, subresource="status")


async def deallocate(here, name):
    claims = in_v1alpha1(here)
    cleared = {"allocation": None, "driverName": None, "deallocationRequested": None}
    await claims.patch(name, {"status": cleared}, NS, subresource="status")
    await claims.patch(name, {"metadata": {"finalizers": None}}, NS)


async def event(here, reason):
    async def look():
        found = await here.client.resource("", "v1", "events").list(NS)
        return next((one for one in found.objects if one.fields.get("reason") == reason), None)

    return (await here.until(look)).fields["message"]


# -- made from templates


@story
async def test_a_claim_is_named_after_pod_and_entry(here: World):
    """3063-LIFE-03, 3063-LIFE-06, 3063-KCM-01, 3063-COMP-03, 3063-TMPL-02, 3063-TMPL-04, 3063-FLOW-02."""
    labels = {"labels": {"a": "b"}, "annotations": {"c": "d"}}
    template = await prepared(here, metadata=labels)
    made = await here.pods.create(pod())
    found = await generated(here)
    assert found.name == "p-gpu"
    seen = (await in_v1alpha1(here).get("p-gpu", NS)).fields
    assert seen["spec"] == template.fields["spec"]["spec"]
    metadata = seen["metadata"]
    (owner,) = metadata["ownerReferences"]
    assert (owner["kind"], owner["name"], owner["uid"], owner["controller"]) == ("Pod", "p", made.uid, True)
    assert (metadata["labels"], metadata["annotations"]) == ({"a": "b"}, {"c": "d", CLAIM_NAME: "gpu"})
    assert "generateName" not in metadata


@story
async def test_a_structured_claim_beside_it_is_made_as_ever(here: World):
    """One transaction for both."""
    await prepared(here)
    await here.templates.create(structured_template("s"))
    entries = [
        {"name": "gpu", "resourceClaimTemplateName": "t"},
        {"name": "nic", "resourceClaimTemplateName": "s"},
    ]
    await here.pods.create(pod(claims=entries))
    assert (await generated(here)).name == "p-gpu"
    other = await generated(here, entry="nic")
    assert other.name.startswith("p-nic-") and len(other.name) == len("p-nic-") + 5
    assert "resourceClassName" not in other.fields["spec"]


@story
async def test_without_its_class_a_claim_is_not_made_and_with_it_at_once(here: World):
    """3063-FLOW-02 and X-20: the pod hears why, and the class's creation is enough."""
    await in_v1alpha1(here, "resourceclaimtemplates").create(classic_template())
    await here.pods.create(pod())
    assert 'resource class "gpu"' in await event(here, "FailedResourceClaimCreation")
    assert (await here.claims.list(NS)).objects == ()
    await in_v1alpha1(here, "resourceclasses", namespaced=False).create(class_())
    assert (await generated(here)).name == "p-gpu"


@story
async def test_templates_and_claims_are_looked_for_in_the_namespace_of_the_pod(here: World):
    """3063-CORE-11, 3063-CORE-12: it waits for one there."""
    await in_v1alpha1(here, "resourceclasses", namespaced=False).create(class_())
    await here.client.resource("", "v1", "namespaces", namespaced=False).create({"metadata": {"name": "far"}})
    body = classic_template()
    far = {**body, "metadata": {"name": "t", "namespace": "far"}}
    templates = in_v1alpha1(here, "resourceclaimtemplates")
    await templates.create(far)
    await here.pods.create(pod())
    assert '"t" not found' in await event(here, "FailedResourceClaimCreation")
    await templates.create(body)
    assert (await generated(here)).namespace == NS


@story
async def test_a_foreign_claim_of_the_name_blocks_the_pod_until_it_is_gone(here: World):
    """3063-KCM-03, 3063-CORE-10, 3063-LIFE-07: it is left alone, and the pod gets its own when it goes."""
    await prepared(here)
    foreign = await in_v1alpha1(here).create(classic_claim(name="p-gpu"))
    await here.pods.create(pod())
    assert "already exists" in await event(here, "FailedResourceClaimCreation")
    kept = await here.claims.get("p-gpu", NS)
    assert (kept.uid, kept.resource_version) == (foreign.uid, foreign.resource_version)
    assert not (await here.pods.get("p", NS)).fields["status"].get("resourceClaimStatuses")
    await here.claims.delete("p-gpu", NS)
    assert (await generated(here)).uid != foreign.uid


@story
async def test_a_pod_that_is_being_deleted_gets_no_claim(here: World):
    """3063-KCM-02."""
    await in_v1alpha1(here, "resourceclaimtemplates").create(classic_template())
    body = pod(nodeName="n1")
    body["metadata"]["finalizers"] = ["example.com/kept"]
    await here.pods.create(body)
    await here.pods.delete("p", NS)
    await in_v1alpha1(here, "resourceclasses", namespaced=False).create(class_())
    await here.pods.create(pod("q"))
    await generated(here, "q")
    assert [one.name for one in (await here.claims.list(NS)).objects] == ["q-gpu"]


@story
async def test_a_quota_that_is_used_up_keeps_the_claim_from_being_made(here: World):
    """3063-RISK-09, 3063-PRR-07."""
    await prepared(here)
    await exhaust(here, "gpu.resourceclass.node.k8s.io/resourceclaims")
    await here.pods.create(pod())
    assert "exceeded quota" in await event(here, "FailedResourceClaimCreation")
    assert (await here.claims.list(NS)).objects == ()
    await here.client.resource("", "v1", "resourcequotas").delete("full", NS)
    assert (await generated(here)).name == "p-gpu"


@story
async def test_attempts_and_failures_are_counted(here: World):
    """3063-MON-02, 3063-MON-03, 3063-MON-04."""
    await prepared(here)
    await in_v1alpha1(here).create(classic_claim(name="q-gpu"))
    await here.pods.create(pod("q"))
    await event(here, "FailedResourceClaimCreation")
    await here.pods.create(pod())
    await generated(here)
    counted = dict(
        line.rsplit(" ", 1)
        for line in here.metrics.text().splitlines()
        if line.startswith("resource_controller_")
    )
    total, failed = (
        float(counted[f"resource_controller_create_{one}"]) for one in ("total", "failures_total")
    )
    assert failed >= 1 and total == failed + 1
    assert 'workqueue_adds_total{name="resource_claim"}' in here.metrics.text()


@story
async def test_a_template_that_comes_anew_changes_no_claim(here: World):
    """3063-TMPL-05."""
    await prepared(here)
    await here.pods.create(pod())
    first = await generated(here)
    templates = in_v1alpha1(here, "resourceclaimtemplates")
    await templates.delete("t", NS)
    await templates.create(classic_template(allocationMode="Immediate"))
    await here.pods.create(pod("q"))
    assert (await generated(here, "q")).fields["spec"]["allocationMode"] == "Immediate"
    now = await here.claims.get("p-gpu", NS)
    assert (now.uid, now.fields["spec"]) == (first.uid, first.fields["spec"])


def test_a_pod_is_looked_at_when_a_class_comes_and_when_the_claim_in_its_way_goes():
    """3063-CORE-10 and X-20: at once, and not when it is tried again after a wait."""
    pods, claims, templates = (
        Informer(ResourceId("", "v1", plural)) for plural in ("pods", "claims", "templates")
    )
    waiting = pod()
    waiting["metadata"]["uid"] = "u"
    pods.cache.put(Object(encode(waiting)))
    stored = {
        "metadata": {"name": "t", "namespace": NS, "uid": "t"},
        "spec": {"spec": {"resourceClassName": "gpu"}},
    }
    templates.cache.put(Object(encode(stored)))
    looked_at: list[str] = []

    class Loop:
        def add(self, item: loop.Item) -> None:
            looked_at.append(str(item))

    router = loop.Router(Loop(), None, None, pods, claims, templates, Gone(), Made())  # type: ignore[arg-type]
    router.class_changed(Added(Object(encode({"metadata": {"name": "other"}}))))
    assert looked_at == []
    router.class_changed(Added(Object(encode({"metadata": {"name": "gpu"}}))))
    assert looked_at == ["pod:default/p"]
    gone_by = {"metadata": {"name": "p-gpu", "namespace": NS, "uid": "c"}, "spec": {}}
    router.claim_changed(Deleted(Object(encode(gone_by))))
    assert looked_at == ["pod:default/p", "pod:default/p"]


# -- the way back


@story
async def test_a_completed_pod_leaves_and_its_claim_is_deleted(here: World):
    """3063-KCM-06, 3063-KCM-08, 3063-LIFE-05 and O-18: the reservation goes first, then the claim, and the
    allocation is its driver's to clear."""
    await prepared(here)
    made = await here.pods.create(pod())
    await generated(here)
    await allocate(here, "p-gpu", consumer(made))
    await finish(here)

    async def look():
        found = await here.claims.get("p-gpu", NS)
        return found if found.metadata.deletion_timestamp else None

    leaving = await here.until(look)
    assert reserved(leaving) == []
    assert leaving.fields["status"]["allocation"]["resourceHandle"] == "h"
    await deallocate(here, "p-gpu")
    await gone(here, "p-gpu")
    assert (await here.pods.get("p", NS)).fields["status"]["phase"] == "Succeeded"


@story
async def test_who_may_create_pods_gets_claims_through_templates(here: World):
    """3063-RISK-05, 3063-KCM-04: made by the controller, in its own name and with its own rights."""
    await prepared(here)
    group = "rbac.authorization.k8s.io"
    pods_only = {"rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["create"]}]}
    role = {"metadata": {"name": "pods-only"}, **pods_only}
    await here.client.resource(group, "v1", "clusterroles", namespaced=False).create(role)
    bound = {
        "metadata": {"name": "pods-only"},
        "subjects": [{"kind": "User", "apiGroup": group, "name": "alice"}],
        "roleRef": {"kind": "ClusterRole", "apiGroup": group, "name": "pods-only"},
    }
    await here.client.resource(group, "v1", "clusterrolebindings", namespaced=False).create(bound)
    hers = here.server.client(User("alice"))

    async def created():
        try:
            return await hers.resource("", "v1", "pods").create(pod())
        except errors.Forbidden:
            return None  # the server has not heard of the role yet

    await here.until(created)
    with pytest.raises(errors.Forbidden):
        await hers.resource("resource.k8s.io", "v1alpha1", "resourceclaims").create(classic_claim())
    assert (await generated(here)).name == "p-gpu"


@story
async def test_a_claim_of_the_user_stays_allocated_after_its_pod(here: World):
    """3063-KCM-05, 3063-COMP-04, 3063-FLOW-18, 3063-LIFE-01, 3063-ALT-01: named claims outlive their pods,
    and say themselves how they stand."""
    await in_v1alpha1(here).create(classic_claim())
    made = await here.pods.create(pod(claims=direct()))
    await allocate(here, "c", consumer(made))
    await here.pods.delete("p", NS)

    async def look():
        return not reserved(await here.claims.get("c", NS))

    await here.until(look)
    left = await here.claims.get("c", NS)
    assert left.fields["status"]["allocation"]["resourceHandle"] == "h"
    assert list(left.metadata.finalizers) == [FINALIZER]
    assert left.metadata.deletion_timestamp is None


@story
async def test_one_of_several_leaves_and_the_others_stay(here: World):
    """3063-KCM-05, 3063-KCM-06: another uid under the same name is another consumer."""
    await in_v1alpha1(here).create(classic_claim())
    first, second = [await here.pods.create(pod(name, direct())) for name in ("p", "q")]
    former = someone("former", "q")
    await allocate(here, "c", consumer(first), consumer(second), former, shareable=True)
    await finish(here)

    async def look():
        found = await here.claims.get("c", NS)
        return [one["uid"] for one in found.fields["status"]["reservedFor"]] == [second.uid]

    await here.until(look)


@story
async def test_nobody_reserves_a_classic_claim_for_a_pod_that_came_without_the_scheduler(here: World):
    """3063-FLOW-12: its node refuses it."""
    await in_v1alpha1(here).create(classic_claim())
    await allocate(here, "c")
    await here.pods.create(pod(claims=direct(), nodeName="n1"))
    await prepared(here)
    await here.pods.create(pod("q"))
    await generated(here, "q")  # it has been all around meanwhile
    assert reserved(await here.claims.get("c", NS)) == []


@story
async def test_a_consumer_that_is_not_a_pod_is_kept_while_it_exists(here: World):
    """3063-KCM-07, 3063-SHARE-05, C7: any group and resource, and by uid."""
    maps = here.client.resource("", "v1", "configmaps")
    first = await maps.create({"metadata": {"name": "job", "namespace": NS}})
    other = await maps.create({"metadata": {"name": "other", "namespace": NS}})
    await in_v1alpha1(here).create(classic_claim())
    users = [
        someone(first.uid, "job", "configmaps"),
        someone(other.uid, "other", "configmaps"),
        someone("former", "job", "configmaps"),
        someone("unknown", "w", "widgets", apiGroup="example.com"),
    ]
    await allocate(here, "c", *users, shareable=True)

    def listed(*wanted):
        async def look():
            found = await here.claims.get("c", NS)
            return [one["uid"] for one in found.fields["status"]["reservedFor"]] == list(wanted)

        return look

    await here.until(listed(first.uid, other.uid, "unknown"))
    await maps.delete("job", NS)
    await here.until(listed(other.uid, "unknown"))
    await maps.delete("other", NS)
    await here.until(listed("unknown"))
    assert (await here.claims.get("c", NS)).fields["status"]["allocation"]["resourceHandle"] == "h"


def test_deleting_the_pod_deletes_its_claim_and_its_scheduling():
    """3063-LIFE-04, 3063-FLOW-15, 3063-PSCHED-02: by owner, and the driver's finalizer holds the claim."""

    async def told(here: World):
        await prepared(here)
        made = await here.pods.create(pod())
        await generated(here)
        await allocate(here, "p-gpu", consumer(made))
        owner = {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": made.uid, "controller": True}
        schedulings = in_v1alpha1(here, "podschedulings")
        await schedulings.create({"metadata": {"name": "p", "namespace": NS, "ownerReferences": [owner]}})
        await here.pods.delete("p", NS)

        async def look():
            found = await here.claims.get("p-gpu", NS)
            return bool(found.metadata.deletion_timestamp) and not reserved(found)

        await here.until(look)
        await deallocate(here, "p-gpu")
        await gone(here, "p-gpu")

        async def is_gone():
            try:
                await schedulings.get("p", NS)
            except errors.NotFound:
                return True
            return False

        await here.until(is_gone)

    tell(told, resourceclaims.CONTROLLER, garbagecollection.CONTROLLER)


@story
async def test_without_classic_claims_nothing_more_is_written_or_asked(here: World):
    """3063-RISK-02, 3063-SCALE-01, 3063-SCALE-02, 3063-MON-06: one watch of classes, and no write."""
    await here.templates.create(structured_template())
    for at in range(20):
        await here.pods.create(pod(f"plain-{at}", claims=[]))
    await here.pods.create(pod())
    await generated(here)
    asked = [
        one.path for one in here.wire.requests if "/v1alpha1/" in one.path and "resource.k8s.io" in one.path
    ]
    assert asked == []
    assert not any("plain" in one.path or b"plain" in one.body for one in here.wire.requests)
