"""KEP-5004, what wakes a pod that waits for an extended resource."""

from kep.cluster import Place, to_a_cluster
from kep.objects import (
    GPU,
    GPU_CLASS,
    container,
    device_class,
    node,
    pod,
    said_of,
    slice_,
)


@to_a_cluster()
async def test_a_node_that_is_added_takes_pods_that_wait(here: Place):
    """5004-EVENT-01."""
    await here.put(device_class(), slice_(), pod())
    await here.why_not()
    await here.create("nodes", node())  # with its status, as a node registers itself
    await here.settled()


@to_a_cluster()
async def test_a_node_that_gets_a_label_takes_pods_that_wait_for_it(here: Place):
    """5004-EVENT-01."""
    await here.put(device_class(), node(), slice_(), pod(nodeSelector={"zone": "a"}))
    await here.why_not()
    await here.resource("nodes").patch("n1", {"metadata": {"labels": {"zone": "a"}}})
    await here.settled()


@to_a_cluster()
async def test_a_slice_that_changes_serves_pods_that_wait(here: Place):
    """5004-EVENT-05."""
    await here.put(device_class(), node(), slice_(devices=1), pod(container(gpu=2)))
    await here.why_not()
    more = slice_(devices=2, generation=2)
    await here.resource("resourceslices").patch(more["metadata"]["name"], {"spec": more["spec"]})
    await here.settled()


@to_a_cluster()
async def test_a_claim_that_is_given_back_serves_pods_that_wait(here: Place):
    """5004-EVENT-06: by its last user, who stays."""
    await here.put(device_class(), node(), slice_(devices=1))
    await here.claim("mine", device_class=GPU_CLASS)
    await here.put(
        pod(container(), name="first", resourceClaims=[{"name": "c", "resourceClaimName": "mine"}])
    )
    await here.settled("first")
    await here.put(pod())
    await here.why_not()
    await here.finish("first")
    await here.settled()
    assert (await here.held()).keys() == {(await here.claim_of()).name}


@to_a_cluster()
async def test_a_special_claim_that_is_deleted_serves_pods_that_wait(here: Place):
    """5004-EVENT-06."""
    await here.put(device_class(), node(), slice_(devices=1), pod(name="first"))
    await here.settled("first")
    await here.put(pod())
    await here.why_not()
    await here.delete_pod("first")
    await here.settled()


@to_a_cluster()
async def test_a_class_that_is_created_serves_pods_that_wait(here: Place):
    """5004-EVENT-04: e2e "process after DeviceClass creation": before that only a device plugin could."""
    await here.put(node(), slice_(), pod(), pod(container(implicit=1), name="implicit"))
    for name in ("p", "implicit"):
        assert await here.why_not(name)
    await here.put(device_class())
    for name in ("p", "implicit"):
        await here.settled(name)


@to_a_cluster()
async def test_a_class_that_gets_the_name_serves_pods_that_wait(here: Place):
    """5004-EVENT-04."""
    await here.put(device_class(extended=None), node(), slice_(), pod())
    await here.why_not()
    await here.resource("deviceclasses").patch(GPU_CLASS, {"spec": {"extendedResourceName": GPU}})
    await here.settled()


@to_a_cluster()
async def test_devices_that_are_published_serve_pods_that_wait(here: Place):
    """5004-EVENT-05."""
    await here.put(device_class(), node(), pod())
    await here.why_not()
    await here.put(slice_())
    await here.settled()


@to_a_cluster()
async def test_a_device_plugin_that_arrives_serves_pods_that_wait(here: Place):
    """5004-EVENT-02: The KEP: with one addition, the update of a node's allocatable resources."""
    await here.put(device_class(), node(), pod())
    await here.why_not()
    await here.update_node(node(gpu=1))
    assert said_of(await here.settled()) is None


@to_a_cluster()
async def test_a_device_plugin_that_is_uninstalled_makes_way_for_dra(here: Place):
    """5004-EVENT-03: e2e "process after device plugin uninstall": its resource stays in the node at zero."""
    await here.put(device_class(), node(gpu=1), slice_(), pod(name="first"))
    assert said_of(await here.settled("first")) is None
    await here.put(pod())
    await here.why_not()
    await here.update_node(node(gpu=0))
    assert said_of(await here.settled()) is not None
