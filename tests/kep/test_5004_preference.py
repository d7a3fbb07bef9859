"""KEP-5004: who serves a resource on a node where several could: the device plugin or DRA."""

import pytest

from kep.cluster import Place, to_a_cluster
from kep.objects import GPU, GPU_CLASS, container, device_class, node, pod, said_of, slice_


@to_a_cluster()
async def test_where_a_device_plugin_serves_the_resource_it_does(here: Place):
    """5004-CLAIM-14, 5004-POD-01, 5004-SCHED-01: e2e "prefer device plugin over DRA": the node has devices
    of DRA too, which no node should."""
    await here.put(device_class(), node(gpu=1), slice_(), pod())
    assert said_of(await here.settled()) is None
    assert await here.extended_claims() == []


@to_a_cluster()
async def test_a_plugin_and_dra_do_not_add_up_on_one_node(here: Place):
    """5004-SCHED-05: One of the plugin and eight of DRA do not serve a pod that needs two."""
    await here.put(device_class(), node(gpu=1), slice_(), pod(container(gpu=2)))
    assert f"Insufficient {GPU}" in await here.why_not()


@to_a_cluster()
async def test_the_plugins_own_count_holds(here: Place):
    """5004-SCHED-01, 5004-SCHED-05: also where the node has devices that are free."""
    await here.put(device_class(), node(gpu=1), slice_(), pod(name="first"))
    await here.settled("first")
    await here.put(pod())
    assert f"Insufficient {GPU}" in await here.why_not()
    await here.delete_pod("first")
    await here.settled()


@to_a_cluster()
async def test_one_pod_may_have_one_resource_of_each(here: Place):
    """5004-SCHED-06: The node's plugin serves NICs, DRA its GPUs: the claim is for the GPUs alone."""
    await here.put(device_class(), node(nic=1), slice_(), pod(container(gpu=1, nic=1)))
    said = said_of(await here.settled())
    assert said is not None
    assert [one["resourceName"] for one in said["requestMappings"]] == [GPU]
    assert await here.devices_of() == {"container-0-request-0": ["gpu-0"]}


@to_a_cluster()
async def test_the_choice_is_made_for_each_node(here: Place):
    """5004-SCHED-04: Without devices left on one, the other kind of node takes the pod, and the other way
    round."""
    await here.put(device_class(), node("dra"), slice_("dra", devices=1), node("plugin", gpu=1))
    for name in ("one", "two"):
        await here.put(pod(name=name))
    found = await here.bound("one", "two")
    assert sorted(found) == ["dra", "plugin"]
    for name, place in zip(("one", "two"), found, strict=True):
        assert (said_of(await here.settled(name)) is None) == (place == "plugin")
    await here.put(pod())
    await here.why_not()


@to_a_cluster()
async def test_a_node_with_neither_is_told_so(here: Place):
    """5004-SCHED-03."""
    await here.put(node(), pod())
    assert GPU in await here.why_not()


@to_a_cluster()
async def test_a_node_of_dra_without_devices_is_told_so(here: Place):
    await here.put(device_class(), node(), pod())
    assert await here.why_not()
    assert await here.extended_claims() == []


@pytest.mark.parametrize("offered", [{}, {"gpu": 0}], ids=["absent", "zero"])
@to_a_cluster()
async def test_where_a_plugin_offers_nothing_devices_serve(here: Place, offered: dict[str, int]):
    """5004-SCHED-02."""
    await here.put(device_class(), node(**offered), slice_(), pod())
    assert said_of(await here.settled()) is not None


@to_a_cluster()
async def test_the_claim_asks_for_what_the_plugin_of_the_chosen_node_does_not_serve(here: Place):
    """5004-FILT-01: pods of one template, on nodes of two kinds with room for one each."""
    nics = device_class("nic.example.com", "example.com/nic", driver="nic.example.com")
    await here.put(device_class(), nics)
    for name, offered in (("gpus", {"gpu": 1}), ("nics", {"nic": 1})):
        both = [slice_(name, devices=1), slice_(name, devices=1, driver="nic.example.com")]
        await here.put(node(name, **offered), *both)
    await here.quiet()
    await here.put(*(pod(container(gpu=1, nic=1), name=name) for name in "ab"))
    asked = {}
    for name, place in zip("ab", await here.bound("a", "b"), strict=True):
        (request,) = (await here.claim_of(name)).fields["spec"]["devices"]["requests"]
        asked[place] = request["name"], request["exactly"]["deviceClassName"]
    assert asked == {
        "gpus": ("container-0-request-1", "nic.example.com"),
        "nics": ("container-0-request-0", "gpu.example.com"),
    }


@to_a_cluster()
async def test_a_pod_with_claims_whose_resource_the_plugin_serves_has_no_other_claim(here: Place):
    """5004-SCHED-07."""
    await here.put(device_class(), node(gpu=1), slice_())
    await here.claim("mine", device_class=GPU_CLASS)
    await here.put(pod(resourceClaims=[{"name": "c", "resourceClaimName": "mine"}]))
    assert said_of(await here.settled()) is None
    assert list(await here.held()) == ["mine"]
    assert here.wire.count("POST", "/resourceclaims") == 0
