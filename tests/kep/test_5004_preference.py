"""KEP-5004: who serves a resource on a node where several could: the device plugin or DRA."""

from kep.cluster import Place, to_a_cluster
from kep.objects import GPU, container, device_class, node, pod, said_of, slice_


@to_a_cluster()
async def test_where_a_device_plugin_serves_the_resource_it_does(here: Place):
    """5004-CLAIM-14, 5004-POD-01: e2e "prefer device plugin over DRA": the node has devices of DRA too,
    which no node should."""
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
