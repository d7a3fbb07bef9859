"""KEP-14 beside the other generations: one name over plugin and DRA nodes; pods that ask for everything."""

from allot.api import compute

from .compute import (
    RAW,
    Place,
    class_,
    container,
    cr,
    drop_class,
    given,
    heard,
    named,
    node,
    pod,
    put,
    to_a_cluster,
)
from .objects import DRIVER, GPU, GPU_CLASS, NS, device_class, said_of, slice_
from .test_14_scheduling import stays_pending

V100 = {"model": "v100"}
GOLD = class_("gpu-gold", ("model", "In", "v100"), deviceClassName=GPU_CLASS)


def claim(name: str) -> dict:
    exactly = {"deviceClassName": GPU_CLASS, "allocationMode": "ExactCount", "count": 1}
    spec = {"devices": {"requests": [{"name": "r", "exactly": exactly}]}}
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": name, "namespace": NS},
        "spec": spec,
    }


@to_a_cluster()
async def test_where_a_plugin_exports_the_plugin_serves(here: Place):
    """14-MIX-01: though a device class maps the raw name, and has devices on that very node."""
    await put(here, device_class(extended=RAW), slice_("n1"), node("n1", cr(V100, 1)))
    await heard(here)
    await here.classes_heard_of()
    await put(here, pod("p", {RAW: 1}))
    bound = await here.settled("p")
    assert given(bound) == {RAW: {named(V100): 1}}
    assert said_of(bound) is None
    await put(here, pod("q", {RAW: 1}))
    await stays_pending(here, "q", f"Insufficient {RAW}")
    assert await here.extended_claims() == []


@to_a_cluster()
async def test_one_name_over_both_kinds_of_nodes(here: Place):
    """14-MIX-04: bare and qualified; the pod names the claim where devices are DRA's."""
    qualified = f"{compute.limits.QUALIFIED}gpu-gold"
    await put(here, GOLD, device_class(extended=None), slice_("dra", devices=2))
    await put(here, node("plugin", cr(V100, 1)), node("dra"))
    await heard(here)
    await here.classes_heard_of()
    for name, asked in (("a", "gpu-gold"), ("b", "gpu-gold"), ("c", qualified)):
        await put(here, pod(name, {asked: 1}))
        await here.settled(name)
    await put(here, pod("d", {"gpu-gold": 1}))
    await stays_pending(here, "d", "gpu-gold")
    where = {name: await here.settled(name) for name in "abc"}
    nodes = [one.fields["spec"]["nodeName"] for one in where.values()]
    assert sorted(nodes) == ["dra", "dra", "plugin"]
    for one in where.values():
        on_dra = one.fields["spec"]["nodeName"] == "dra"
        assert (said_of(one) is not None) == on_dra
        assert bool(given(one)) != on_dra
    await drop_class(here, "gpu-gold")
    await put(here, class_("gpu-gold", ("model", "In", "v100")))
    await heard(here)
    await here.delete_pod(next(name for name, one in where.items() if said_of(one) is not None))
    await stays_pending(here, "d", "without compute resources of class gpu-gold")


@to_a_cluster()
async def test_a_pod_that_asks_for_everything_is_placed_whole_or_not_at_all(here: Place):
    """14-MIX-03, 14-ASK-05: a class, a raw name, a claim and an extended resource.

    On the first node everything is there but the raw name; on the second all of it."""
    nic = "sfc.com/nic"
    await put(here, class_("gpu-gold", ("model", "In", "v100")), device_class())
    await put(here, slice_("n1"), node("n1", cr(V100, 4)), claim("mine"))
    await heard(here)
    await here.classes_heard_of()
    asks = container(**{"gpu-gold": 1, nic: 1, GPU: 1})
    asks["resources"]["claims"] = [{"name": "own"}]
    await put(here, pod("p", None, asks, resourceClaims=[{"name": "own", "resourceClaimName": "mine"}]))
    await stays_pending(here, "p", nic)
    untouched = (await here.resource("resourceclaims").get("mine", NS)).fields.get("status") or {}
    assert "allocation" not in untouched
    assert await here.extended_claims() == []
    await put(here, slice_("n2"), node("n2", cr(V100, 1), cr({"speed": "40G"}, 1, raw=nic)))
    bound = await here.settled("p")
    assert bound.fields["spec"]["nodeName"] == "n2"
    assert given(bound) == {"gpu-gold": {named(V100): 1}, nic: {named({"speed": "40G"}, nic): 1}}
    own = (await here.resource("resourceclaims").get("mine", NS)).fields["status"]
    assert own["reservedFor"][0]["name"] == "p"
    devices = {one["device"] for one in own["allocation"]["devices"]["results"]}
    extended = {one for found in (await here.devices_of("p")).values() for one in found}
    assert not devices & extended
    assert DRIVER in {one["driver"] for one in own["allocation"]["devices"]["results"]}
