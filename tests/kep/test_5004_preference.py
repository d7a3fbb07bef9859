"""KEP-5004: who serves a resource where several could: the device plugin or DRA, and which class."""

import asyncio

import pytest

from kep.cluster import Place, to_a_cluster
from kep.objects import GPU, GPU_CLASS, IMPLICIT, container, device_class, node, pod, said_of, slice_

NIC = "example.com/nic"
OTHER = device_class("other.example.com", driver="other.example.com")


async def class_of(here: Place, name: str = "p") -> str:
    claim = await here.claim_of(name)
    (request,) = claim.fields["spec"]["devices"]["requests"]
    return str(request["exactly"]["deviceClassName"])


# -- device plugin or DRA --------------------------------------------------------------------------


@to_a_cluster()
async def test_where_a_device_plugin_serves_the_resource_it_does(here: Place):
    """e2e "prefer device plugin over DRA": the node has devices of DRA too, which no node should."""
    await here.put(device_class(), node(gpu=1), slice_(), pod())
    assert said_of(await here.settled()) is None
    assert await here.extended_claims() == []


@to_a_cluster()
async def test_a_plugin_and_dra_do_not_add_up_on_one_node(here: Place):
    """One of the plugin and eight of DRA do not serve a pod that needs two."""
    await here.put(device_class(), node(gpu=1), slice_(), pod(container(gpu=2)))
    assert f"Insufficient {GPU}" in await here.why_not()


@to_a_cluster()
async def test_the_plugins_own_count_holds(here: Place):
    await here.put(device_class(), node(gpu=1), pod(name="first"))
    await here.settled("first")
    await here.put(pod())
    assert f"Insufficient {GPU}" in await here.why_not()
    await here.delete_pod("first")
    await here.settled()


@to_a_cluster()
async def test_one_pod_may_have_one_resource_of_each(here: Place):
    """The node's plugin serves NICs, DRA its GPUs: the claim is for the GPUs alone."""
    await here.put(device_class(), node(nic=1), slice_(), pod(container(gpu=1, nic=1)))
    said = said_of(await here.settled())
    assert said is not None
    assert [one["resourceName"] for one in said["requestMappings"]] == [GPU]
    assert await here.devices_of() == {"container-0-request-0": ["gpu-0"]}


@to_a_cluster()
async def test_the_choice_is_made_for_each_node(here: Place):
    """Without devices left on one, the other kind of node takes the pod, and the other way round."""
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
    await here.put(node(), pod())
    assert GPU in await here.why_not()


@to_a_cluster()
async def test_a_node_of_dra_without_devices_is_told_so(here: Place):
    await here.put(device_class(), node(), pod())
    assert await here.why_not()
    assert await here.extended_claims() == []


# -- which class ------------------------------------------------------------------------------------


async def a_second_later() -> None:
    """Times are written to the second."""
    await asyncio.sleep(1.05)


@to_a_cluster()
async def test_of_two_classes_the_one_created_later_serves(here: Place):
    await here.put(OTHER)
    await a_second_later()
    await here.put(device_class(), node(), slice_(), pod())
    assert await class_of(here) == GPU_CLASS


@to_a_cluster()
async def test_of_two_classes_of_one_second_the_first_by_name_serves(here: Place):
    """Made anew until they share their second."""
    for _ in range(20):
        await here.put(OTHER, device_class())
        times = {one.metadata.creation_timestamp for one in await here.all("deviceclasses")}
        if len(times) == 1:
            break
        for name in ("other.example.com", GPU_CLASS):
            await here.resource("deviceclasses").delete(name)
    await here.put(node(), slice_(), pod())
    assert await class_of(here) == GPU_CLASS


@to_a_cluster()
async def test_when_the_later_class_goes_the_earlier_one_serves(here: Place):
    """Upstream waits until the earlier one is touched."""
    await here.put(device_class())
    await a_second_later()
    await here.put(OTHER, node(), slice_(), pod())
    await here.why_not()
    await here.resource("deviceclasses").delete("other.example.com")
    assert await class_of(here) == GPU_CLASS


@to_a_cluster()
async def test_when_the_earlier_class_goes_the_later_one_still_serves(here: Place):
    """Upstream forgets the resource."""
    await here.put(OTHER)
    await a_second_later()
    await here.put(device_class(), node(), slice_())
    await here.resource("deviceclasses").delete("other.example.com")
    await here.put(pod())
    assert await class_of(here) == GPU_CLASS


@to_a_cluster()
async def test_a_class_that_lost_its_name_to_another_serves_its_implicit_one(here: Place):
    await here.put(device_class())
    await a_second_later()
    await here.put(OTHER, node(), slice_(), pod(container(implicit=1)))
    assert await class_of(here) == GPU_CLASS


@to_a_cluster()
async def test_a_class_that_selects_other_devices_is_believed_at_once(here: Place):
    """Upstream keeps the class as it was when its name last changed."""
    await here.put(device_class(driver="nobody.example.com"), node(), slice_(), pod())
    await here.why_not()
    await here.resource("deviceclasses").patch(GPU_CLASS, {"spec": device_class()["spec"]})
    assert await class_of(here) == GPU_CLASS


@pytest.mark.parametrize("resource", [GPU, IMPLICIT])
@to_a_cluster()
async def test_a_class_that_is_gone_serves_nobody(here: Place, resource: str):
    await here.put(device_class(), node(), slice_())
    await here.resource("deviceclasses").delete(GPU_CLASS)
    asking = container()
    asking["resources"] = {"limits": {resource: "1"}}
    await here.put(pod(asking))
    assert resource in await here.why_not()
