"""KEP-5004, "Feature Enablement and Rollback": the gate DRAExtendedResource, off, on and off again."""

from kep.cluster import Place, to_a_cluster
from kep.objects import GPU, container, device_class, node, pod, slice_


@to_a_cluster(DRAExtendedResource=False)
async def test_with_the_gate_off_only_device_plugins_serve(here: Place):
    await here.put(device_class(), node(), slice_(), pod())
    assert GPU in await here.why_not()
    assert await here.extended_claims() == []
    await here.put(node("plugin", gpu=1))
    assert await here.bound("p") == ["plugin"]


@to_a_cluster(DRAExtendedResource=False)
async def test_with_the_gate_off_implicit_names_are_not_served_either(here: Place):
    await here.put(device_class(extended=None), node(), slice_(), pod(container(implicit=1)))
    await here.why_not()
    assert await here.extended_claims() == []
