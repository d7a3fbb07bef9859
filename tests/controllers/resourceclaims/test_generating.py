"""Claims from templates, over the real server. Rule 6.1 (syncPod)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from allot.api.generated import base_name
from allot.controllers import resourceclaims
from allot.informers import Limits
from controllers.resourceclaims.objects import (
    CLAIM_NAME,
    allocate,
    allocation,
    claim,
    consumer,
    direct,
    exhaust,
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
from controllers.world import NS, World, tell


@story
async def test_a_pod_gets_a_claim_of_its_own_and_its_status_names_it(here: World):
    """Rule 6.1: generateName `<pod>-<claim>-`, labels and annotations of the template and the
    annotation with the pod's name for it, owned by the pod as controller, recorded by SSA."""
    await here.templates.create(template(labels={"a": "b"}, annotations={"x": "y"}))
    made = await here.pods.create(pod())
    claim = await generated(here)
    assert claim.name.startswith("p-gpu-")
    assert claim.metadata.labels == {"a": "b"}
    assert claim.metadata.annotations == {"x": "y", CLAIM_NAME: "gpu"}
    (owner,) = claim.fields["metadata"]["ownerReferences"]
    assert owner == {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": made.uid, "controller": True}
    assert claim.fields["spec"]["devices"]["requests"][0]["exactly"]["deviceClassName"] == "gpu"
    managers = (await here.pods.get("p", NS)).fields["metadata"]["managedFields"]
    (entry,) = [one for one in managers if one["manager"] == "ResourceClaimController"]
    assert (entry["operation"], entry["subresource"]) == ("Apply", "status")
    assert (
        'creates_total{status="success",admin_access="false",owner_api_group="",owner_api_kind="Pod"} 1'
        in here.metrics.text()
    )
    assert (
        'resource_claims{allocated="false",admin_access="false",source="resource_claim_template"} 1'
        in here.metrics.text()
    )


@story
async def test_a_pod_that_names_a_claim_directly_gets_none(here: World):
    await here.pods.create(pod(claims=direct()))
    await here.quiet()
    assert (await here.claims.list(NS)).objects == ()


@story
async def test_a_pod_that_leaves_or_is_done_gets_no_claim(here: World):
    await here.pods.create(pod("leaving", nodeName="n"))
    await here.pods.create(pod("done"))
    await here.pods.delete("leaving", NS, grace_period_s=30)
    await finish(here, "done")
    await here.quiet()
    await here.templates.create(template())
    await here.quiet()
    assert (await here.claims.list(NS)).objects == ()


@story
async def test_each_entry_of_a_pod_gets_its_claim_and_a_later_record_keeps_the_earlier(here: World):
    """Rule 6.1: the apply repeats what is recorded, for what it leaves out would be removed."""
    await here.templates.create(template("first"))
    entries = [
        {"name": "one", "resourceClaimTemplateName": "first"},
        {"name": "two", "resourceClaimTemplateName": "second"},
    ]
    await here.pods.create(pod(claims=entries))
    one = await generated(here, entry="one")
    await here.templates.create(template("second"))
    two = await generated(here, entry="two")
    await here.quiet()
    settled = await here.pods.get("p", NS)
    assert settled.fields["status"]["resourceClaimStatuses"] == [
        {"name": "one", "resourceClaimName": one.name},
        {"name": "two", "resourceClaimName": two.name},
    ]
    await here.quiet()
    assert (await here.pods.get("p", NS)).resource_version == settled.resource_version


@story
async def test_a_missing_template_is_told_on_the_pod_and_its_arrival_is_enough(here: World):
    """Rule 6.1: event FailedResourceClaimCreation, "PodResourceClaim <name>: <error>"; counted."""
    await here.pods.create(pod())
    events = here.client.resource("", "v1", "events")

    async def reported():
        found = [e for e in (await events.list(NS)).objects if e.fields["involvedObject"]["name"] == "p"]
        return found and found[0].fields.get("count", 1) >= 3 and found

    (event,) = await here.until(reported)
    assert event.fields["reason"] == "FailedResourceClaimCreation"
    assert event.fields["type"] == "Warning"
    assert event.fields["message"].startswith('PodResourceClaim gpu: resource claim template "t":')
    await here.templates.create(template())
    assert (await generated(here)).name.startswith("p-gpu-")


@story
async def test_a_claim_that_is_refused_again_and_again_is_one_event_that_is_counted(here: World):
    """Rule 6.1. Each attempt has a name of its own; with it every attempt would be an event of its own."""
    await exhaust(here, "count/resourceclaims.resource.k8s.io")
    await here.templates.create(template())
    await here.pods.create(pod())
    events = here.client.resource("", "v1", "events")

    async def repeated():
        found = (await events.list(NS, field_selector="reason=FailedResourceClaimCreation")).objects
        return sum(one.fields.get("count", 1) for one in found) >= 4 and found

    (event,) = await here.until(repeated)
    assert event.fields["message"].startswith(
        'PodResourceClaim gpu: resourceclaims.resource.k8s.io "p-gpu-" is forbidden: exceeded quota: full,'
    )


def test_a_template_that_arrives_wakes_the_pods_that_wait_for_it(monkeypatch):
    """However long their next attempt is away."""
    monkeypatch.setattr(Limits, "failure_s", lambda self, failures: 600.0)

    async def waiting(here: World) -> None:
        await here.pods.create(pod())
        await here.quiet()
        await here.templates.create(template())
        await generated(here)

    tell(waiting, resourceclaims.CONTROLLER)


@story
async def test_a_claim_that_was_made_and_not_recorded_is_found_again(here: World):
    """Rule 6.1: reuse an orphan owned by the pod with the matching annotation."""
    made = await here.pods.create(pod())
    orphan = await here.claims.create(claim("orphan", **owned_by(made)))
    await here.claims.create(claim("other", **owned_by(made, entry="another")))
    await here.templates.create(template())
    assert (await generated(here)).uid == orphan.uid


@story
async def test_a_recorded_claim_that_vanished_is_made_again(here: World):
    """Rule 6.1: a recorded claim that vanished is created again."""
    await here.templates.create(template())
    await here.pods.create(pod())
    first = await generated(here)
    await here.claims.delete(first.name, NS)

    async def another():
        found = await generated(here)
        return found.uid != first.uid and found

    assert (await here.until(another)).name != first.name


@story
async def test_a_recorded_claim_that_the_cache_does_not_show_is_asked_for_before_it_is_made_again(
    here: World,
):
    """Rule 6.1: falls back to a live GET."""
    made = await here.pods.create(pod())
    await here.quiet()
    await freeze(here, "resourceclaims")
    await here.claims.create(claim(**owned_by(made)))
    recorded = [{"name": "gpu", "resourceClaimName": "c"}]
    await here.pods.patch("p", {"status": {"resourceClaimStatuses": recorded}}, NS, subresource="status")
    await here.quiet()
    await here.templates.create(template())
    await here.quiet()
    assert [one.name for one in (await here.claims.list(NS)).objects] == ["c"]
    assert here.wire.count("GET", "/resourceclaims/c") >= 1


@story
async def test_a_recorded_claim_of_somebody_else_is_left_alone_and_not_used(here: World):
    """Rule 6.1 and C4: the foreign claim stays as it is; the pod gets one of its own."""
    foreign = await here.claims.create(claim("foreign"))
    await here.templates.create(template())
    made = await here.pods.create(pod(schedulingGates=[{"name": "wait"}]))
    first = await generated(here)
    await here.pods.patch(
        "p",
        {"status": {"resourceClaimStatuses": [{"name": "gpu", "resourceClaimName": "foreign"}]}},
        NS,
        subresource="status",
    )

    async def own():
        found = await generated(here)
        return found.name != "foreign" and found

    again = await here.until(own)
    assert again.fields["metadata"]["ownerReferences"][0]["uid"] == made.uid
    assert again.uid == first.uid
    assert (await here.claims.get("foreign", NS)).resource_version == foreign.resource_version


@story
async def test_a_recorded_claim_that_the_pod_owns_no_more_is_made_again(here: World):
    """Rule 6.1: so is one that is no longer owned; it stays for whoever has it now."""
    await here.templates.create(template())
    made = await here.pods.create(pod())
    first = await generated(here)
    await here.claims.patch(first.name, {"metadata": {"ownerReferences": None}}, NS)

    async def another():
        found = await generated(here)
        return found.uid != first.uid and found

    again = await here.until(another)
    assert again.fields["metadata"]["ownerReferences"][0]["uid"] == made.uid
    assert (await here.claims.get(first.name, NS)).metadata.deletion_timestamp is None


@story
async def test_no_claim_is_made_where_none_is_wanted(here: World):
    """A recorded entry without a name means that generation was skipped on purpose."""
    made = await here.pods.create(pod())
    await here.pods.patch(
        "p", {"status": {"resourceClaimStatuses": [{"name": "gpu"}]}}, NS, subresource="status"
    )
    await here.quiet()
    await here.templates.create(template())
    await here.quiet()
    assert (await here.claims.list(NS)).objects == ()
    assert made.name == "p"


@story
async def test_a_pod_that_came_without_the_scheduler_is_reserved_once_there_is_an_allocation(here: World):
    """Rule 6.1: adds reservedFor for claims that are already allocated; never triggers allocation."""
    made = await here.claims.create(claim())
    await here.pods.create(pod(claims=direct(), nodeName="n"))
    await here.quiet()
    assert allocation(await here.claims.get("c", NS)) is None
    await allocate(here, made)

    async def is_reserved():
        return reserved(await here.claims.get("c", NS)) == ["p"]

    await here.until(is_reserved)


@story
async def test_the_claim_of_another_pod_is_not_reserved(here: World):
    """C4: a pod names a claim that was generated for another one."""
    await here.templates.create(template())
    await here.pods.create(pod("owner"))
    made = await generated(here, "owner")
    await here.pods.create(pod("thief", claims=direct(made.name), nodeName="n"))
    await allocate(here, made)
    await here.quiet()
    assert reserved(await here.claims.get(made.name, NS)) == []


@story
async def test_the_claim_for_the_extended_resources_of_another_pod_is_not_reserved(here: World):
    """C12: a pod that was put on a node by hand names it."""
    owner = await here.pods.create(pod("owner", claims=[]))
    special = {"annotations": {"resource.kubernetes.io/extended-resource-claim": "true"}}
    made = await here.claims.create(claim("special", **{**owned_by(owner), **special}))
    await allocate(here, made, consumer(owner))
    await here.pods.create(pod("thief", claims=direct("special"), nodeName="n"))
    await here.quiet()
    assert reserved(await here.claims.get("special", NS)) == ["owner"]


@story
async def test_a_claim_for_extended_resources_stays_for_whoever_else_is_listed(here: World):
    """C12: its own pod has ended, and somebody was listed in it by hand."""
    owner, other = await here.pods.create(pod("owner", claims=[])), await here.pods.create(pod("other"))
    special = {"annotations": {"resource.kubernetes.io/extended-resource-claim": "true"}}
    made = await here.claims.create(claim("special", **{**owned_by(owner), **special}))
    await allocate(here, made, consumer(owner), consumer(other))
    await here.pods.patch("owner", {"status": {"phase": "Succeeded"}}, NS, subresource="status")

    async def is_left_to_the_other():
        return reserved(await here.claims.get("special", NS)) == ["other"]

    await here.until(is_left_to_the_other)
    await here.quiet()
    now = await here.claims.get("special", NS)
    assert allocation(now) is not None and now.metadata.deletion_timestamp is None


@story
async def test_a_claim_made_twice_is_reduced_to_the_recorded_one(here: World):
    """C3: an answer was lost, the claim was made again; the second is nobody's."""
    await here.templates.create(template())
    made = await here.pods.create(pod())
    first = await generated(here)
    await here.claims.create(claim("twice", **owned_by(made)))
    await gone(here, "twice")
    assert (await here.claims.get(first.name, NS)).uid == first.uid


@story
async def test_what_the_controller_does_not_know_survives_it(here: World):
    """S3: fields of pod, template and claim that no view of the controller has."""
    wanted = template()
    config = [{"opaque": {"driver": "d.example.com", "parameters": {"deep": [1]}}}]
    wanted["spec"]["spec"]["devices"]["config"] = config
    await here.templates.create(wanted)
    sent = pod(dnsConfig={"searches": ["x"]}, nodeName="n")
    await here.pods.create(sent)
    claim = await generated(here)
    assert claim.fields["spec"]["devices"]["config"] == config
    annotated = {"metadata": {"annotations": {"seen": "by somebody"}}}
    await here.claims.patch(claim.name, annotated, NS)
    await allocate(here, claim)

    async def is_reserved():
        return reserved(await here.claims.get(claim.name, NS)) == ["p"]

    await here.until(is_reserved)
    kept = (await here.claims.get(claim.name, NS)).fields
    assert kept["spec"]["devices"]["config"] == config
    assert kept["metadata"]["annotations"]["seen"] == "by somebody"
    assert (await here.pods.get("p", NS)).fields["spec"]["dnsConfig"] == {"searches": ["x"]}


@pytest.mark.parametrize(
    ("pod_name", "entry", "base"),
    [
        ("web-0", "gpu", "web-0-gpu-"),
        ("p" * 50, "gpu12", "p" * 50 + "-gpu12-"),  # 57 letters just fit
        ("p" * 51, "gpu12", "p" * 50 + "-gpu1"),
        ("p" * 253, "c" * 63, "p" * 45 + "-" + "c" * 11),
    ],
)
def test_long_names_are_cut_in_proportion(pod_name, entry, base):
    """Rule 6.1: `pod[:len(pod)*57/L] + "-" + claim[:len(claim)*57/L]`, no trailing dash."""
    assert base_name(pod_name, entry) == base


@given(st.integers(1, 253), st.integers(1, 63))
def test_a_base_name_leaves_room_for_the_random_letters(pod_length, entry_length):
    assert len(base_name("p" * pod_length, "c" * entry_length)) <= 57
