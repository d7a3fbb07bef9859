"""KEP-5004, the API: "Device Class API", "Resource Claim API", "Pod API", asked of the real server."""

import pytest

from allot.api import core, errors, meta
from allot.apiserver import identities
from allot.client import Patch
from allot.scheduler import extended
from kep.objects import (
    ANNOTATION,
    GPU,
    GPU_CLASS,
    IMPLICIT,
    NS,
    container,
    device_class,
    extended_status,
    mapping,
    node,
    pod,
    said_of,
)
from kep.telling import Desk, refused, soon, to_the_server

LONG = "a" * 64 + ".example.com"

# -- Device Class API ---------------------------------------------------------------------------


@to_the_server()
async def test_a_device_class_may_say_which_extended_resource_it_is(here: Desk):
    made = await here.classes.create(device_class())
    assert made.fields["spec"]["extendedResourceName"] == GPU
    plain = await here.classes.create(device_class("plain", extended=None))
    assert "extendedResourceName" not in plain.fields["spec"]


@to_the_server()
async def test_the_name_may_be_given_changed_and_taken_away_later(here: Desk):
    await here.classes.create(device_class(extended=None))
    for name in (GPU, "example.com/other", None):
        changed = await here.classes.patch(GPU_CLASS, {"spec": {"extendedResourceName": name}})
        assert changed.fields["spec"].get("extendedResourceName") == name


@pytest.mark.parametrize(
    "name",
    [
        "gpu",
        "kubernetes.io/gpu",
        IMPLICIT,
        "requests.example.com/gpu",
        "example.com/",
        f"example.com/{'g' * 64}",
    ],
)
@to_the_server()
async def test_a_name_that_no_container_could_ask_for_is_refused(here: Desk, name: str):
    """e2e "reject invalid name"."""
    with refused("spec.extendedResourceName"):
        await here.classes.create(device_class(extended=name))


@to_the_server()
async def test_several_classes_may_have_one_name(here: Desk):
    """It should be one; what happens otherwise is decided when pods are scheduled."""
    await here.classes.create(device_class("one"))
    await here.classes.create(device_class("other"))
    assert len((await here.classes.list()).objects) == 2


@to_the_server()
async def test_device_classes_are_the_administrators(here: Desk):
    """Application developers and operators cannot change them, whatever their namespace lets them do."""
    bind = here.client.resource("rbac.authorization.k8s.io", "v1", "rolebindings")
    await bind.create(
        {
            "metadata": {"name": "dev", "namespace": NS},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "edit"},
            "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "dev"}],
        }
    )
    developer = here.of(identities.user("dev"))
    await soon(lambda: developer.pods.create(pod()), but_for=errors.Forbidden)
    with pytest.raises(errors.Forbidden):
        await developer.classes.create(device_class())
    await here.classes.create(device_class())
    with pytest.raises(errors.Forbidden):
        await developer.classes.patch(GPU_CLASS, {"spec": {"extendedResourceName": "example.com/mine"}})


@to_the_server(DRAExtendedResource=False)
async def test_with_the_gate_off_the_name_is_dropped(here: Desk):
    made = await here.classes.create(device_class())
    assert "extendedResourceName" not in made.fields["spec"]


# -- asking for it ------------------------------------------------------------------------------


@to_the_server()
async def test_a_pod_may_ask_before_anybody_serves_the_resource(here: Desk):
    """The mapping is made by the administrator, at any time, and no pod changes for it."""
    made = await here.pods.create(pod(container(gpu=1, implicit=2)))
    asked = made.fields["spec"]["containers"][0]["resources"]
    assert asked["requests"] == asked["limits"] == {GPU: "1", IMPLICIT: "2"}


@pytest.mark.parametrize("amount", ["500m", "1.5", "-1"])
@to_the_server()
async def test_explicit_names_are_asked_for_in_whole_numbers(here: Desk, amount: str):
    with pytest.raises(errors.Invalid):
        await here.pods.create(pod(container(gpu=amount)))


@to_the_server()
async def test_a_request_without_a_limit_is_refused_for_explicit_names(here: Desk):
    """An extended resource is not overcommitted."""
    asking = container()
    asking["resources"] = {"requests": {GPU: "1"}}
    with refused("spec.containers[0].resources.limits"):
        await here.pods.create(pod(asking))


@to_the_server()
async def test_a_class_whose_name_is_too_long_has_no_implicit_resource(here: Desk):
    """The name part of a resource has 63 letters; a class may have 253. Its explicit name works."""
    await here.classes.create(device_class(LONG, extended=GPU))
    asking = container()
    asking["resources"] = {"limits": {f"deviceclass.resource.kubernetes.io/{LONG}": "1"}}
    with pytest.raises(errors.Invalid):
        await here.pods.create(pod(asking))
    await here.pods.create(pod(container(gpu=1)))


@to_the_server()
async def test_ephemeral_containers_ask_for_nothing(here: Desk):
    """The KEP: "containers can be initContainers, regular containers, but cannot be ephemeral containers"."""
    ephemeral = {"name": "debug", "image": "i", "resources": {"limits": {GPU: "1"}}}
    with pytest.raises(errors.Invalid) as caught:
        await here.pods.create(pod(ephemeralContainers=[ephemeral]))
    assert any("ephemeralContainers" in cause.field for cause in caught.value.causes)


# -- Resource Claim API -------------------------------------------------------------------------


def devices_of(fields):
    """What the scheduler would ask for on a node of DRA."""
    view = meta.view(core.Pod, fields)
    asked = extended.read_asked(view.spec)
    names = tuple((name, GPU_CLASS) for name in asked.names)
    return view, extended.device_requests(asked, extended.Delegation(names))


@to_the_server()
async def test_the_scheduler_may_make_the_claim_of_a_pod(here: Desk):
    """Namespaced, owned by the pod, annotated, without the annotation of template claims."""
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
    await scheduler.claims.delete(made.name, NS)


@pytest.mark.parametrize("name", ["p" * 253, "p" * 57 + ".q", "p" * 227 + ".q", "p" * 240 + "-q"])
@to_the_server()
async def test_a_claim_can_be_made_for_any_pods_name(here: Desk, name: str):
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
        (mapping(request="Request_0"), "requestMappings[0].requestName"),
        (mapping(resource="example.com/nic"), "requestMappings[0].resourceName"),
        (mapping(container="setup"), "requestMappings[0].resourceName"),
    ],
    ids=["not a label", "no such container", "not a label either", "not asked for", "asked for by another"],
)
@to_the_server()
async def test_a_mapping_names_a_container_and_what_it_asks_for(here: Desk, told, field: str):
    """The resource need not be a label; container and request must be."""
    await here.pods.create(pod(container(gpu=1), init=[container("setup", nic0=1)]))
    with pytest.raises(errors.Invalid) as caught:
        await tell(here, extended_status(told))
    assert f"{STATUS}.{field}" in [cause.field for cause in caught.value.causes]


@to_the_server()
async def test_init_containers_are_mapped_too(here: Desk):
    await here.pods.create(pod(container(gpu=1), init=[container("setup", gpu=1)]))
    await tell(here, extended_status(mapping("setup"), mapping("demo")))
    assert len(said_of(await here.pods.get("p", NS))["requestMappings"]) == 2


@to_the_server()
async def test_a_container_may_have_several_requests_for_one_resource(here: Desk):
    """An init container that uses the devices of others, and some of its own."""
    await here.pods.create(pod())
    await tell(here, extended_status(mapping(), mapping(request="container-1-request-0")))
    with refused(f"{STATUS}.requestMappings[1]"):
        await tell(here, extended_status(mapping(), mapping()))


@pytest.mark.parametrize("status", [{}, {"resourceClaimName": "c"}, {"requestMappings": [mapping()]}])
@to_the_server()
async def test_the_status_is_whole_or_not_there(here: Desk, status):
    await here.pods.create(pod())
    with pytest.raises(errors.Invalid):
        await tell(here, {"extendedResourceClaimStatus": status})


@to_the_server()
async def test_the_status_can_be_replaced_and_not_forgotten(here: Desk):
    """A later attempt names its own claim; a client that does not know the field clears nothing."""
    await here.pods.create(pod())
    await tell(here, extended_status(claim="first"))
    await tell(here, extended_status(claim="second"))
    await tell(here, {"extendedResourceClaimStatus": None, "phase": "Running"})
    assert said_of(await here.pods.get("p", NS))["resourceClaimName"] == "second"


@to_the_server(DRAExtendedResource=False)
async def test_with_the_gate_off_the_pod_is_not_told(here: Desk):
    await here.pods.create(pod())
    told = await tell(here, {**extended_status(), "phase": "Running"})
    assert said_of(told) is None


@to_the_server()
async def test_the_node_of_the_pod_reads_its_claim_and_no_other_node_does(here: Desk):
    """The KEP: "It is discovered by the kubelet via pod.Status.ExtendedResourceClaimStatus"."""
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
    await here.nodes.create(node())
    await here.pods.create(pod(nodeName="n1"))
    with pytest.raises(errors.Forbidden):
        await tell(here.of(identities.node("n1")), extended_status(claim="somebody-elses"))


@to_the_server()
async def test_the_mappings_are_one_list(here: Desk):
    """A strategic merge replaces them: they belong to one claim."""
    await here.pods.create(pod(container(gpu=1, nic=1)))
    await tell(here, extended_status())
    other = extended_status(mapping(resource="example.com/nic", request="container-0-request-1"))
    told = await here.pods.patch("p", {"status": other}, NS, type=Patch.STRATEGIC, subresource="status")
    assert [one["resourceName"] for one in said_of(told)["requestMappings"]] == ["example.com/nic"]
