"""KEP-5004, "Resource Claim API" and "Pod API": the claim that the scheduler makes for a pod, and the status
that names it, asked of the real server."""

import pytest

from allot.api import core, errors, meta
from allot.apiserver import identities
from allot.client import Patch
from allot.scheduler import extended
from kep.objects import (
    ANNOTATION,
    FINALIZER,
    GPU_CLASS,
    NS,
    container,
    extended_status,
    mapping,
    node,
    pod,
    said_of,
)
from kep.telling import Desk, refused, soon, to_the_server

# -- Resource Claim API -------------------------------------------------------------------------


def devices_of(fields):
    """What the scheduler would ask for on a node of DRA."""
    view = meta.view(core.Pod, fields)
    asked = extended.read_asked(view.spec)
    names = tuple((name, GPU_CLASS) for name in asked.names)
    return view, extended.device_requests(asked, extended.Delegation(names))


RESULTS = [
    {"request": "container-0-request-0", "driver": "gpu.example.com", "pool": "n1", "device": f"gpu-{at}"}
    for at in range(2)
]


@to_the_server()
async def test_the_scheduler_may_do_what_the_claim_of_a_pod_needs(here: Desk):
    """5004-CLAIM-23: make it, protect it, allocate and reserve it, name it in the pod's status, and take all
    of that back."""
    scheduler = here.of(identities.SCHEDULER)
    asker = await here.pods.create(pod(container(gpu=2)))
    made = await scheduler.claims.create(extended.body(*devices_of(asker.fields)))
    metadata = made.fields["metadata"]
    assert (made.namespace, metadata["annotations"]) == (NS, {ANNOTATION: "true"})
    (owner,) = metadata["ownerReferences"]
    assert (owner["kind"], owner["name"], owner["uid"], owner["controller"]) == ("Pod", "p", asker.uid, True)
    assert made.name.startswith("p-extended-resources-")
    (request,) = made.fields["spec"]["devices"]["requests"]
    assert request["name"] == "container-0-request-0"
    assert request["exactly"] == {"deviceClassName": GPU_CLASS, "allocationMode": "ExactCount", "count": 2}
    made = await scheduler.claims.update(made.changed({"metadata": {"finalizers": [FINALIZER]}}))
    user = {"resource": "pods", "name": "p", "uid": asker.uid}
    held = {"allocation": {"devices": {"results": RESULTS}}, "reservedFor": [user]}
    made = await scheduler.claims.update_status(made.changed({"status": held}))
    await scheduler.pods.patch("p", {"status": extended_status(claim=made.name)}, NS, subresource="status")
    assert said_of(await here.pods.get("p", NS)) is not None
    free = made.changed({"status": {"allocation": None, "reservedFor": None}})
    made = await scheduler.claims.update_status(free)
    made = await scheduler.claims.update(made.changed({"metadata": {"finalizers": []}}))
    await scheduler.claims.delete(made.name, NS)
    assert not (await here.claims.list(NS)).objects


@pytest.mark.parametrize("name", ["p" * 253, "p" * 57 + ".q", "p" * 227 + ".q", "p" * 240 + "-q"])
@to_the_server()
async def test_a_claim_can_be_made_for_any_pods_name(here: Desk, name: str):
    """5004-CLAIM-05."""
    fields = pod(name=name)
    fields["metadata"]["uid"] = "u"
    made = await here.claims.create(extended.body(*devices_of(fields)))
    assert made.name.startswith(name[:38])


# -- Pod API ------------------------------------------------------------------------------------


async def tell(desk: Desk, status, name="p"):
    return await desk.pods.patch(name, {"status": status}, NS, subresource="status")


@to_the_server()
async def test_the_scheduler_tells_the_pod_which_claim_it_has(here: Desk):
    asker = await here.pods.create(pod())
    _, devices = devices_of(asker.fields)
    patch = extended.status_patch(asker.uid, "p-extended-resources-abcde", devices)
    told = await here.of(identities.SCHEDULER).pods.patch("p", patch, NS, subresource="status")
    assert said_of(told) == extended_status()["extendedResourceClaimStatus"]


@to_the_server()
async def test_a_later_pod_of_that_name_is_not_told(here: Desk):
    """5004-POD-14."""
    asker = await here.pods.create(pod())
    _, devices = devices_of(asker.fields)
    await here.pods.delete("p", NS, grace_period_s=0)
    await here.pods.create(pod())
    with refused("metadata.uid"):
        await here.pods.patch("p", extended.status_patch(asker.uid, "c", devices), NS, subresource="status")
    assert said_of(await here.pods.get("p", NS)) is None


STATUS = "status.extendedResourceClaimStatus"


@pytest.mark.parametrize(
    ("told", "field"),
    [
        (mapping(container="Demo_"), "requestMappings[0].containerName"),
        (mapping(container="other"), "requestMappings[0].containerName"),
        (mapping(container=""), "requestMappings[0].containerName"),
        (mapping(request="Request_0"), "requestMappings[0].requestName"),
        (mapping(resource="example.com/nic"), "requestMappings[0].resourceName"),
        (mapping(container="setup"), "requestMappings[0].resourceName"),
    ],
    ids=[
        "not a label",
        "no such container",
        "no container",
        "not a label either",
        "not asked for",
        "asked for by another",
    ],
)
@to_the_server()
async def test_a_mapping_names_a_container_and_what_it_asks_for(here: Desk, told, field: str):
    """5004-POD-04, 5004-POD-05, 5004-POD-06: The resource need not be a label; container and request must
    be."""
    await here.pods.create(pod(container(gpu=1), init=[container("setup", nic0=1)]))
    with pytest.raises(errors.Invalid) as caught:
        await tell(here, extended_status(told))
    assert f"{STATUS}.{field}" in [cause.field for cause in caught.value.causes]


@to_the_server()
async def test_init_containers_are_mapped_too(here: Desk):
    """5004-POD-04, 5004-POD-08."""
    await here.pods.create(pod(container(gpu=1), init=[container("setup", gpu=1)]))
    await tell(here, extended_status(mapping("setup"), mapping("demo")))
    assert len(said_of(await here.pods.get("p", NS))["requestMappings"]) == 2


@to_the_server()
async def test_a_container_may_have_several_requests_for_one_resource(here: Desk):
    """5004-POD-08: An init container that uses the devices of others, and some of its own."""
    await here.pods.create(pod())
    await tell(here, extended_status(mapping(), mapping(request="container-1-request-0")))
    with refused(f"{STATUS}.requestMappings[1]"):
        await tell(here, extended_status(mapping(), mapping()))


@pytest.mark.parametrize(
    "status",
    [
        {},
        {"resourceClaimName": "c"},
        {"resourceClaimName": "c", "requestMappings": []},
        {"requestMappings": [mapping()]},
        {"resourceClaimName": "No_Name", "requestMappings": [mapping()]},
    ],
)
@to_the_server()
async def test_the_status_is_whole_or_not_there(here: Desk, status):
    """5004-POD-07."""
    await here.pods.create(pod())
    with pytest.raises(errors.Invalid):
        await tell(here, {"extendedResourceClaimStatus": status})


@to_the_server()
async def test_the_status_can_be_replaced_and_not_forgotten(here: Desk):
    """5004-POD-10: A later attempt names its own claim; a client that does not know the field clears
    nothing."""
    await here.pods.create(pod())
    await tell(here, extended_status(claim="first"))
    await tell(here, extended_status(claim="second"))
    await tell(here, {"extendedResourceClaimStatus": None, "phase": "Running"})
    assert said_of(await here.pods.get("p", NS))["resourceClaimName"] == "second"
    found = await here.pods.get("p", NS)
    status = {key: said for key, said in found.fields["status"].items() if "extended" not in key}
    told = await here.pods.update_status({**found.fields, "status": {**status, "phase": "Failed"}})
    assert told.fields["status"]["phase"] == "Failed"
    assert said_of(told)["resourceClaimName"] == "second"


@to_the_server(DRAExtendedResource=False)
async def test_with_the_gate_off_the_pod_is_not_told(here: Desk):
    """5004-GATE-01."""
    await here.pods.create(pod())
    told = await tell(here, {**extended_status(), "phase": "Running"})
    assert said_of(told) is None


@to_the_server()
async def test_the_node_of_the_pod_reads_its_claim_and_no_other_node_does(here: Desk):
    """5004-POD-13: The KEP: "It is discovered by the kubelet via pod.Status.ExtendedResourceClaimStatus"."""
    await here.nodes.create(node())
    asker = await here.pods.create(pod(nodeName="n1"))
    made = await here.claims.create(extended.body(*devices_of(asker.fields)))
    mine, other = here.of(identities.node("n1")), here.of(identities.node("n2"))
    with pytest.raises(errors.Forbidden):
        await mine.claims.get(made.name, NS)
    await tell(here, extended_status(claim=made.name))
    found = await soon(lambda: mine.claims.get(made.name, NS), but_for=errors.Forbidden)
    assert found.uid == made.uid
    with pytest.raises(errors.Forbidden):
        await other.claims.get(made.name, NS)


@to_the_server()
async def test_a_node_does_not_say_which_claim_its_pods_have(here: Desk):
    """5004-POD-12."""
    await here.nodes.create(node())
    await here.pods.create(pod(nodeName="n1"))
    with pytest.raises(errors.Forbidden):
        await tell(here.of(identities.node("n1")), extended_status(claim="somebody-elses"))


@to_the_server()
async def test_the_mappings_are_one_list(here: Desk):
    """5004-POD-11: A strategic merge replaces them: they belong to one claim."""
    await here.pods.create(pod(container(gpu=1, nic=1)))
    await tell(here, extended_status())
    other = extended_status(mapping(resource="example.com/nic", request="container-0-request-1"))
    told = await here.pods.patch("p", {"status": other}, NS, type=Patch.STRATEGIC, subresource="status")
    assert [one["resourceName"] for one in said_of(told)["requestMappings"]] == ["example.com/nic"]


@to_the_server()
async def test_who_applies_the_mappings_owns_them_all(here: Desk):
    """5004-POD-11: nobody adds to a list that another wrote; who takes it over replaces it."""
    await here.pods.create(pod(container(gpu=1, nic=1)))
    other = mapping(resource="example.com/nic", request="container-0-request-1")

    async def apply(manager: str, mapped, force: bool = False):
        wanted = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "namespace": NS}}
        wanted["status"] = extended_status(mapped)
        return await here.pods.apply(wanted, field_manager=manager, force=force, subresource="status")

    await apply("one", mapping())
    with pytest.raises(errors.Conflict):
        await apply("two", other)
    told = await apply("two", other, force=True)
    assert said_of(told)["requestMappings"] == [other]


@to_the_server()
async def test_only_the_status_is_a_way_to_say_it(here: Desk):
    """5004-POD-09: who creates or updates the pod says nothing by it."""
    made = await here.pods.create({**pod(), "status": extended_status(claim="made")})
    assert said_of(made) is None
    updated = await here.pods.update({**made.fields, "status": extended_status(claim="updated")})
    assert said_of(updated) is None
    patched = await here.pods.patch("p", {"status": extended_status(claim="patched")}, NS)
    assert said_of(patched) is None
    assert said_of(await tell(here, extended_status(claim="told"))) is not None


def health(name: str, container: str = "demo", statuses: str = "containerStatuses"):
    resources = [{"resourceID": "gpu-0", "health": "Healthy"}]
    listed = [{"name": name, "resources": resources}]
    said = {"name": container, "image": "demo:1", "imageID": "", "ready": True, "restartCount": 0}
    return {statuses: [{**said, "allocatedResourcesStatus": listed}]}


@to_the_server()
async def test_health_is_told_under_the_claim_and_the_requests_of_the_container(here: Desk):
    """5004-POD-15."""
    await here.pods.create(pod(container(gpu=1), init=[container("setup", gpu=2)]))
    ours, setups = mapping(request="container-1-request-0"), mapping("setup")
    await tell(here, extended_status(ours, setups, claim="special"))
    for name in ("special/container-0-request-0", "special", "other/container-1-request-0"):
        with refused("status.containerStatuses[0].allocatedResourcesStatus[0].name"):
            await tell(here, health(f"claim:{name}"))
    told = await tell(here, health("claim:special/container-1-request-0"))
    assert told.fields["status"]["containerStatuses"][0]["allocatedResourcesStatus"]
    await tell(here, health("claim:special/container-0-request-0", "setup", "initContainerStatuses"))
