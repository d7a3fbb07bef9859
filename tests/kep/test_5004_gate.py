"""KEP-5004, "Feature Enablement and Rollback": the gate DRAExtendedResource, off, on and off again."""

import pytest

from kep.cluster import Place, to_a_cluster
from kep.objects import GPU, GPU_CLASS, IMPLICIT, container, device_class, node, pod, said_of, slice_


@to_a_cluster(DRAExtendedResource=False)
async def test_with_the_gate_off_only_device_plugins_serve(here: Place):
    """5004-GATE-02."""
    await here.put(device_class(), node(), slice_(), pod())
    assert GPU in await here.why_not()
    assert await here.extended_claims() == []
    await here.put(node("plugin", gpu=1))
    assert await here.bound("p") == ["plugin"]


@to_a_cluster(DRAExtendedResource=False)
async def test_with_the_gate_off_implicit_names_are_not_served_either(here: Place):
    """5004-GATE-02."""
    await here.put(device_class(extended=None), node(), slice_(), pod(container(implicit=1)))
    await here.why_not()
    assert await here.extended_claims() == []
    await here.put(node("plugin", implicit=1))
    assert await here.bound("p") == ["plugin"]


@pytest.mark.parametrize("resource", [GPU, IMPLICIT], ids=["explicit", "implicit"])
@to_a_cluster()
async def test_who_runs_keeps_running_through_off_and_on(here: Place, resource: str):
    """5004-GATE-01, 5004-GATE-03, 5004-GATE-04: off: pod and claim stay, nothing new is served, what ends
    is given back. On: served again."""
    asks = container(**{"gpu" if resource == GPU else "implicit": 1})
    await here.put(device_class(), node(), slice_(devices=2), pod(asks, name="stays"), pod(asks, name="ends"))
    before = {name: said_of(await here.settled(name)) for name in ("stays", "ends")}
    held = await here.held()

    await here.restart(DRAExtendedResource=False)
    assert await here.held() == held
    assert said_of(await here.settled("stays")) == before["stays"]
    await here.finish("stays", phase="Running")
    assert said_of(await here.settled("stays")) == before["stays"]
    await here.put(pod(asks, name="new"))
    assert resource in await here.why_not("new")
    await here.delete_pod("ends")

    async def one_left() -> bool:
        return len(await here.extended_claims()) == 1

    await here.until(one_left, "the claim of the pod that ended is gone")

    await here.restart(DRAExtendedResource=True)
    assert await here.bound("new") == ["n1"]
    assert said_of(await here.settled("stays")) == before["stays"]
    devices = [device for claim in (await here.held()).values() for device in claim]
    assert sorted(devices) == ["n1/gpu-0", "n1/gpu-1"]


@to_a_cluster()
async def test_a_class_keeps_its_name_while_the_gate_is_off(here: Place):
    """5004-GATE-01: A field that is in use is not stripped by a write that does not touch it; a new one is
    not taken."""
    await here.put(device_class(), device_class("plain", extended=None))
    await here.restart(DRAExtendedResource=False)
    classes = here.resource("deviceclasses")
    kept = await classes.patch(GPU_CLASS, {"metadata": {"labels": {"a": "b"}}})
    assert kept.fields["spec"]["extendedResourceName"] == GPU
    refused = await classes.patch("plain", {"spec": {"extendedResourceName": GPU}})
    assert "extendedResourceName" not in refused.fields["spec"]
