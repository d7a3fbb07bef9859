"""KEP-5004, the API: "Device Class API", and what pods may ask for, asked of the real server."""

import pytest

from allot.api import errors
from allot.apiserver import identities
from kep.objects import (
    GPU,
    GPU_CLASS,
    IMPLICIT,
    NS,
    container,
    device_class,
    pod,
)
from kep.telling import Desk, refused, soon, to_the_server

LONG = "a" * 64 + ".example.com"

# -- Device Class API ---------------------------------------------------------------------------


@to_the_server()
async def test_a_device_class_may_say_which_extended_resource_it_is(here: Desk):
    """5004-CLASS-01."""
    made = await here.classes.create(device_class())
    assert made.fields["spec"]["extendedResourceName"] == GPU
    plain = await here.classes.create(device_class("plain", extended=None))
    assert "extendedResourceName" not in plain.fields["spec"]


@to_the_server()
async def test_the_name_may_be_given_changed_and_taken_away_later(here: Desk):
    """5004-CLASS-02."""
    await here.classes.create(device_class(extended=None))
    for name in (GPU, "example.com/other", None):
        changed = await here.classes.patch(GPU_CLASS, {"spec": {"extendedResourceName": name}})
        assert changed.fields["spec"].get("extendedResourceName") == name


@pytest.mark.parametrize(
    "name",
    [
        "gpu",
        "kubernetes.io/gpu",
        "x.kubernetes.io/gpu",
        IMPLICIT,
        "requests.example.com/gpu",
        "example.com/gpu/large",
        "example.com/",
        f"example.com/{'g' * 64}",
    ],
)
@to_the_server()
async def test_a_name_that_no_container_could_ask_for_is_refused(here: Desk, name: str):
    """5004-CLASS-03, 5004-IMPL-02: e2e "reject invalid name"; nothing is stored."""
    with refused("spec.extendedResourceName"):
        await here.classes.create(device_class(extended=name))
    assert not (await here.classes.list()).objects
    await here.classes.create(device_class())
    with refused("spec.extendedResourceName"):
        await here.classes.patch(GPU_CLASS, {"spec": {"extendedResourceName": name}})
    assert (await here.classes.get(GPU_CLASS)).fields["spec"]["extendedResourceName"] == GPU


@to_the_server()
async def test_a_name_may_be_as_long_as_a_name_part_can_be(here: Desk):
    """5004-CLASS-04."""
    name = f"example.com/{'g' * 63}"
    made = await here.classes.create(device_class(extended=name))
    assert made.fields["spec"]["extendedResourceName"] == name


VERSIONS = ("v1", "v1beta2", "v1beta1")


@pytest.mark.parametrize("written", VERSIONS)
@to_the_server()
async def test_the_name_reads_and_writes_alike_through_every_version(here: Desk, written: str):
    """5004-CLASS-05."""

    def classes(version: str):
        return here.client.resource("resource.k8s.io", version, "deviceclasses", namespaced=False)

    made = {**device_class(), "apiVersion": f"resource.k8s.io/{written}"}
    await classes(written).create(made)
    for name in (GPU, "example.com/other", None):
        await classes(written).patch(GPU_CLASS, {"spec": {"extendedResourceName": name}})
        for version in VERSIONS:
            read = await classes(version).get(GPU_CLASS)
            assert read.fields["apiVersion"] == f"resource.k8s.io/{version}"
            assert read.fields["spec"].get("extendedResourceName") == name


@to_the_server()
async def test_several_classes_may_have_one_name(here: Desk):
    """5004-CLASS-06: It should be one; what happens otherwise is decided when pods are scheduled."""
    await here.classes.create(device_class("one"))
    await here.classes.create(device_class("other"))
    assert len((await here.classes.list()).objects) == 2


@to_the_server()
async def test_device_classes_are_the_administrators(here: Desk):
    """5004-CLASS-13: Application developers and operators cannot change them, whatever their namespace lets
    them do."""
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
    """5004-GATE-01."""
    made = await here.classes.create(device_class())
    assert "extendedResourceName" not in made.fields["spec"]


# -- asking for it ------------------------------------------------------------------------------


@to_the_server()
async def test_a_pod_may_ask_before_anybody_serves_the_resource(here: Desk):
    """5004-ASK-02, 5004-ASK-05: The mapping is made by the administrator, at any time, and no pod changes
    for it."""
    made = await here.pods.create(pod(container(gpu=1, implicit=2)))
    asked = made.fields["spec"]["containers"][0]["resources"]
    assert asked["requests"] == asked["limits"] == {GPU: "1", IMPLICIT: "2"}


@pytest.mark.parametrize("amount", ["500m", "1.5", "-1"])
@to_the_server()
async def test_explicit_names_are_asked_for_in_whole_numbers(here: Desk, amount: str):
    """5004-ASK-01."""
    with pytest.raises(errors.Invalid):
        await here.pods.create(pod(container(gpu=amount)))


@to_the_server()
async def test_a_request_without_a_limit_is_refused_for_explicit_names(here: Desk):
    """5004-ASK-01: An extended resource is not overcommitted."""
    asking = container()
    asking["resources"] = {"requests": {GPU: "1"}}
    with refused("spec.containers[0].resources.limits"):
        await here.pods.create(pod(asking))


@pytest.mark.parametrize(("requests", "limits"), [("1", "2"), ("2", "1")])
@to_the_server()
async def test_explicit_names_are_limited_to_what_is_requested(here: Desk, requests: str, limits: str):
    """5004-ASK-01."""
    asking = container()
    asking["resources"] = {"requests": {GPU: requests}, "limits": {GPU: limits}}
    with refused("spec.containers[0].resources.requests"):
        await here.pods.create(pod(asking))


@pytest.mark.parametrize(
    "asked",
    [
        {"limits": {IMPLICIT: "500m"}},
        {"requests": {IMPLICIT: "1"}},
        {"requests": {IMPLICIT: "1"}, "limits": {IMPLICIT: "3"}},
    ],
    ids=["a part", "a request alone", "a request below its limit"],
)
@to_the_server()
async def test_implicit_names_are_asked_for_like_cpu(here: Desk, asked):
    """5004-IMPL-05."""
    asking = container()
    asking["resources"] = asked
    made = await here.pods.create(pod(asking))
    kept = made.fields["spec"]["containers"][0]["resources"]
    assert kept == {"requests": asked.get("requests") or asked["limits"], **asked}


@to_the_server()
async def test_a_class_whose_name_is_too_long_has_no_implicit_resource(here: Desk):
    """5004-IMPL-03: The name part of a resource has 63 letters; a class may have 253. Its explicit name
    works."""
    await here.classes.create(device_class(LONG, extended=GPU))
    asking = container()
    asking["resources"] = {"limits": {f"deviceclass.resource.kubernetes.io/{LONG}": "1"}}
    with pytest.raises(errors.Invalid):
        await here.pods.create(pod(asking))
    await here.pods.create(pod(container(gpu=1)))


@to_the_server()
async def test_ephemeral_containers_ask_for_nothing(here: Desk):
    """5004-ASK-04: The KEP: "containers can be initContainers, regular containers, but cannot be ephemeral
    containers"."""
    ephemeral = {"name": "debug", "image": "i", "resources": {"limits": {GPU: "1"}}}
    with pytest.raises(errors.Invalid) as caught:
        await here.pods.create(pod(ephemeralContainers=[ephemeral]))
    assert any("ephemeralContainers" in cause.field for cause in caught.value.causes)
    await here.pods.create(pod())
    with refused("spec"):
        await here.pods.patch("p", {"spec": {"ephemeralContainers": [ephemeral]}}, NS)
