"""KEP-5004, "Scheduling for Extended Resource backed by DRA": what a user sees, from pod to devices and back.

The names of upstream's tests are in docs/upstream-tests.md.
"""

import pytest

from kep.cluster import Place, reserved_for, to_a_cluster
from kep.objects import (
    ANNOTATION,
    DRIVER,
    FINALIZER,
    GPU,
    GPU_CLASS,
    IMPLICIT,
    NS,
    Fields,
    container,
    deployment,
    device_class,
    mapping,
    node,
    pod,
    said_of,
    slice_,
)

NIC = "example.com/nic"
NIC_CLASS = device_class("nic.example.com", NIC, driver="nic.example.com")
NIC_SLICE = slice_(driver="nic.example.com")


async def of_dra(here: Place, devices: int = 8) -> None:
    """One node, its devices, and the class that makes them example.com/gpu."""
    await here.put(device_class(), node(), slice_(devices=devices))


def example_class() -> Fields:
    """The KEP's own; its devices lack the attribute that it asks for, and have it here."""
    made = device_class()
    made["spec"]["selectors"][0]["cel"]["expression"] += f" && device.attributes['{DRIVER}'].type == 'gpu'"
    return made


def example_slice(version: str) -> Fields:
    made = slice_()
    about = {"attributes": {"type": {"string": "gpu"}}}
    for device in made["spec"]["devices"]:
        device.update({"basic": about} if version == "v1beta1" else about)
    return made


# -- the motivating example ----------------------------------------------------------------------


@pytest.mark.parametrize("version", ["v1", "v1beta1"])
@to_a_cluster()
async def test_the_deployment_of_the_kep_runs_on_a_node_of_dra_unmodified(here: Place, version: str):
    """5004-ASK-06: one of eight devices goes to the pod; the other seven are left for either kind."""
    for plural, made in (("deviceclasses", example_class()), ("resourceslices", example_slice(version))):
        made["apiVersion"] = f"resource.k8s.io/{version}"
        await here.client.resource("resource.k8s.io", version, plural, namespaced=False).create(made)
    await here.put(node())
    await here.put(deployment())

    async def one_pod():
        found = (await here.resource("pods").list(NS)).objects
        return found[0].name if found and found[0].fields["spec"].get("nodeName") else None

    name = await here.until(one_pod, "a pod of the deployment on its node")
    assert await here.devices_of(name) == {"container-0-request-0": ["gpu-0"]}
    await here.claim("ordinary", count=7, device_class=GPU_CLASS)
    await here.create("pods", pod(container(), name="other", resourceClaims=[_use("ordinary")]))
    await here.bound("other")
    held = await here.held()
    assert sorted(len(devices) for devices in held.values()) == [1, 7]


@to_a_cluster()
async def test_the_same_deployment_runs_on_device_plugin_nodes_too(here: Place):
    """5004-ASK-06, 5004-SCHED-04: e2e "pods on DRA nodes and device-plugin nodes": 2 of one kind, 2 of the
    other."""
    await of_dra(here, devices=2)
    await here.put(node("plugin", gpu=2), deployment(replicas=4))

    async def nodes():
        found = [one.fields["spec"].get("nodeName") for one in (await here.resource("pods").list(NS)).objects]
        return sorted(found) if len(found) == 4 and all(found) else None

    assert await here.until(nodes, "four pods on their nodes") == ["n1", "n1", "plugin", "plugin"]
    assert len(await here.extended_claims()) == 2


def _use(claim: str):
    return {"name": "c", "resourceClaimName": claim}


# -- the claim -----------------------------------------------------------------------------------


@to_a_cluster()
async def test_the_claim_of_a_scheduled_pod(here: Place):
    """5004-CLAIM-01, 5004-CLAIM-02, 5004-CLAIM-13: Owned by the pod, annotated, allocated, reserved,
    protected; not a claim from a template."""
    await of_dra(here)
    await here.put(pod())
    asker, claim = await here.settled(), await here.claim_of()
    metadata = claim.fields["metadata"]
    assert metadata["annotations"] == {ANNOTATION: "true"}
    (owner,) = metadata["ownerReferences"]
    assert (owner["kind"], owner["name"], owner["uid"], owner["controller"]) == ("Pod", "p", asker.uid, True)
    assert metadata["finalizers"] == [FINALIZER]
    (reserved,) = claim.fields["status"]["reservedFor"]
    assert (reserved["resource"], reserved["name"], reserved["uid"]) == ("pods", "p", asker.uid)
    (result,) = claim.fields["status"]["allocation"]["devices"]["results"]
    assert (result["driver"], result["pool"]) == ("gpu.example.com", "n1")
    assert claim.fields["status"]["allocation"]["allocationTimestamp"]


@to_a_cluster()
async def test_the_status_of_a_scheduled_pod(here: Place):
    """5004-POD-01, 5004-POD-02, 5004-CLAIM-07: e2e "accurately populate ExtendedResourceClaimStatus"."""
    await of_dra(here)
    await here.put(pod(container(cpu="1", gpu=2)))
    said = said_of(await here.settled())
    assert said is not None
    assert said["requestMappings"] == [mapping(request="container-0-request-1")]  # after cpu
    (claim,) = await here.extended_claims()
    assert said["resourceClaimName"] == claim.name
    assert [one["name"] for one in claim.fields["spec"]["devices"]["requests"]] == ["container-0-request-1"]


CASES = {
    "explicit, one container, one resource": ([container(gpu=2)], {"container-0-request-0": 2}),
    "implicit, one container, one resource": ([container(implicit=2)], {"container-0-request-0": 2}),
    "implicit and explicit, one container": (
        [container(gpu=1, implicit=2)],
        {"container-0-request-0": 2, "container-0-request-1": 1},
    ),
    "three resources, one container": (
        [container(gpu=1, implicit=1, nic=2)],
        {"container-0-request-0": 1, "container-0-request-1": 1, "container-0-request-2": 2},
    ),
    "three containers, one resource each": (
        [container("a", gpu=1), container("b", nic=1), container("c", implicit=1)],
        {"container-0-request-0": 1, "container-1-request-0": 1, "container-2-request-0": 1},
    ),
    "three containers, several resources each": (
        [container("a", gpu=1, nic=1), container("b", gpu=1, implicit=1), container("c", nic=2, implicit=1)],
        {
            "container-0-request-0": 1,
            "container-0-request-1": 1,
            "container-1-request-0": 1,
            "container-1-request-1": 1,
            "container-2-request-0": 1,
            "container-2-request-1": 2,
        },
    ),
}


@pytest.mark.parametrize("case", CASES)
@to_a_cluster()
async def test_each_container_gets_a_request_for_each_resource(here: Place, case: str):
    """5004-CLAIM-04, 5004-CLAIM-06: One claim for the pod, whatever it asks for; integration
    "Explicit/ImplicitExtendedResource"."""
    containers, counts = CASES[case]
    await of_dra(here)
    await here.put(NIC_CLASS, NIC_SLICE, pod(*containers))
    found = await here.devices_of()
    assert {request: len(devices) for request, devices in found.items()} == counts
    assert len(await here.extended_claims()) == 1
    claim = await here.claim_of()
    classes = {
        one["name"]: one["exactly"]["deviceClassName"] for one in claim.fields["spec"]["devices"]["requests"]
    }
    by_resource = {GPU: GPU_CLASS, IMPLICIT: GPU_CLASS, NIC: "nic.example.com"}
    said = said_of(await here.settled())
    assert said is not None
    for one in said["requestMappings"]:
        assert classes[one["requestName"]] == by_resource[one["resourceName"]]
    assert {one["containerName"] for one in said["requestMappings"]} == {one["name"] for one in containers}


@to_a_cluster()
async def test_init_containers_and_sidecars_use_what_the_pod_holds(here: Place):
    """5004-ASK-04: 3 for a moment, 2 afterwards: 3 devices, of which the init container uses all."""
    await of_dra(here, devices=3)
    init = [container("setup", gpu=3), container("proxy", keeps_running=True, gpu=1)]
    await here.put(pod(container(gpu=1), init=init))
    found = await here.devices_of()
    assert {request: len(devices) for request, devices in found.items()} == {
        "container-0-request-0": 1,
        "container-1-request-0": 1,
        "container-2-request-0": 1,
    }
    said = said_of(await here.settled())
    assert said is not None
    used = {one["requestName"] for one in said["requestMappings"] if one["containerName"] == "setup"}
    assert used == set(found)


@to_a_cluster()
async def test_no_claim_is_made_where_none_is_needed(here: Place):
    """5004-ASK-03, 5004-PREF-01, 5004-GATE-05: A request of zero (e2e "zero request"), and a pod that asks
    for nothing."""
    await of_dra(here)
    await here.put(pod(container(gpu=0)), pod(container(cpu="1"), name="plain"))
    for name in ("p", "plain"):
        assert said_of(await here.settled(name)) is None
    assert await here.extended_claims() == []


@to_a_cluster()
async def test_extended_resources_and_claims_in_one_pod(here: Place):
    """5004-SCHED-09: e2e "extended resources together with ResourceClaim": two claims, found together or not
    at all."""
    await of_dra(here, devices=3)
    await here.claim("mine", count=2, device_class=GPU_CLASS)
    await here.put(pod(resourceClaims=[_use("mine")]))
    await here.settled()
    special = await here.claim_of()
    assert await here.held() == {"mine": ["n1/gpu-0", "n1/gpu-1"], special.name: ["n1/gpu-2"]}
    claim = await here.resource("resourceclaims").get("mine", NS)
    assert reserved_for(claim) == reserved_for(special) == ["p"]


@to_a_cluster()
async def test_a_pod_that_needs_both_gets_both_or_waits(here: Place):
    """5004-SCHED-09."""
    await of_dra(here, devices=2)
    await here.claim("mine", count=2, device_class=GPU_CLASS)
    await here.put(pod(resourceClaims=[_use("mine")]))
    await here.why_not()
    assert await here.held() == {}
    assert await here.extended_claims() == []


# -- what is left ----------------------------------------------------------------------------------


@to_a_cluster()
async def test_devices_are_not_promised_twice(here: Place):
    """5004-SCHED-08: e2e "must prevent overcommitment": three pods, two devices; many decided before any is
    written."""
    await of_dra(here, devices=2)
    await here.put(*(pod(name=name) for name in "abc"))

    async def two():
        found = [one for one in "abc" if await here.node_of(one)]
        return found if len(found) == 2 else None

    placed = await here.until(two, "two pods on the node")
    (waiting,) = set("abc") - set(placed)
    await here.why_not(waiting)
    devices = [device for held in (await here.held()).values() for device in held]
    assert sorted(devices) == ["n1/gpu-0", "n1/gpu-1"]
    assert here.wire.count("POST", "/resourceclaims") == 2  # nor was it tried
    await here.delete_pod(placed[0])
    await here.settled(waiting)


@to_a_cluster()
async def test_claims_and_extended_resources_draw_on_the_same_devices(here: Place):
    """5004-SCHED-08: No static partition between the two."""
    await of_dra(here, devices=1)
    await here.claim("mine", device_class=GPU_CLASS)
    await here.put(pod(container(), name="first", resourceClaims=[_use("mine")]))
    await here.settled("first")
    await here.put(pod())
    await here.why_not()
    await here.delete_pod("first")
    assert await here.devices_of() == {"container-0-request-0": ["gpu-0"]}


@pytest.mark.parametrize("phase", ["Succeeded", "Failed"])
@to_a_cluster()
async def test_the_claim_goes_when_the_pod_has_ended(here: Place, phase: str):
    """5004-CLAIM-18: e2e "cleanup when pods complete" and "... fail": the pod is still there, its devices
    are free."""
    await of_dra(here, devices=1)
    await here.put(pod())
    await here.settled()
    await here.finish(phase=phase)
    await here.no_claims()
    await here.put(pod(name="next"))
    assert await here.devices_of("next") == {"container-0-request-0": ["gpu-0"]}


@to_a_cluster()
async def test_the_claim_goes_with_its_pod(here: Place):
    """5004-CLAIM-17."""
    await of_dra(here, devices=1)
    await here.put(pod())
    await here.settled()
    await here.delete_pod()
    await here.no_claims()
