"""`planning.defrag.fragmentation`: the largest that fits, against what as much free capacity would allow."""

import pytest

from allot.planning.defrag import Fragmentation, fragmentation, telling

from ..clusters import Fields, hardware
from .worlds import GPU, MIG, divided, here, node, running, template, whole

SMALL = template("small", MIG, profile="1g.10gb")
ONE = template("one", GPU)


def measured(*objects: Fields) -> Fragmentation:
    return fragmentation(here(*objects).reading.snapshot)


def gpus(**nodes: int) -> list[Fields]:
    return [one for name, count in nodes.items() for one in (node(name), whole(name, count))]


def on(name: str, *devices: str, wanted: Fields = ONE) -> list[Fields]:
    return [
        one
        for device in devices
        for one in running(f"{name}-{device}".replace(".", "-"), name, [device], wanted)
    ]


def test_a_partition_in_the_middle_keeps_a_larger_one_out():
    """A memory slice in the middle of a GPU is taken: seven are left, and four in a row with room for the
    larger half are not among them."""
    found = measured(node("a"), *divided("a", 1), SMALL, *on("a", "gpu-0-mig-1g-10gb-3", wanted=SMALL))
    (pool,) = found.pools
    assert pool.measure.fits is not None and pool.measure.fits.name == "3g.40gb"
    assert pool.measure.allows is not None and pool.measure.allows.name == "4g.40gb"
    assert pool.measure.lost == pytest.approx(1 - 0.478011 / 0.505116)
    assert pool.measure.free == pytest.approx(1 - 0.126279, abs=1e-6)


def test_at_the_edge_it_keeps_nothing_out():
    """The same partition at the end: what is free is in one piece."""
    found = measured(node("a"), *divided("a", 1), SMALL, *on("a", "gpu-0-mig-1g-10gb-6", wanted=SMALL))
    (pool,) = found.pools
    assert pool.measure.fits == pool.measure.allows and pool.measure.lost == 0


def test_two_gpus_with_a_little_on_each_have_no_whole_one():
    used = on("a", "gpu-0-mig-1g-10gb-0", "gpu-1-mig-1g-10gb-0", wanted=SMALL)
    found = measured(node("a"), *divided("a", 2), SMALL, *used)
    (pool,) = found.pools
    assert pool.measure.fits is not None and pool.measure.fits.name == "3g.40gb"
    assert pool.measure.allows is not None and pool.measure.allows.name == "H100-SXM5-80GB"
    sizes = {rung.name: (fit, would) for rung, fit, would in found.makes[0].sizes}
    assert sizes["H100-SXM5-80GB"] == (0, 1) and sizes["1g.10gb"] == (12, 12)
    assert sizes["4g.40gb"] == (0, 3)


def test_what_is_free_is_told_in_devices_and_hundredths():
    used = on("a", "gpu-0-mig-1g-10gb-0", wanted=SMALL)
    found = measured(node("a"), *divided("a", 2), SMALL, *used)
    assert "1 pool, 1.87 of 2 free" in telling.report(found)


def test_what_an_amount_is_short_of_is_not_allowed_by_free_places():
    """Seven small ones: a memory slice is left, and no decoder."""
    used = on("a", *(f"gpu-0-mig-1g-10gb-{at}" for at in range(7)), wanted=SMALL)
    (pool,) = measured(node("a"), *divided("a", 1), SMALL, *used).pools
    assert pool.measure.free > 0
    assert pool.measure.allows is None and pool.measure.fits is None and pool.measure.lost == 0


def test_whole_devices_are_fragmented_between_nodes():
    """Four are free, two on each of two nodes: four on one node would be possible, and two are."""
    found = measured(*gpus(a=4, b=4), ONE, *on("a", "gpu-0", "gpu-1"), *on("b", "gpu-2", "gpu-3"))
    (make,) = found.makes
    assert make.measure.fits is not None and make.measure.fits.name == "2xgpu"
    assert make.measure.allows is not None and make.measure.allows.name == "4xgpu"
    assert make.measure.lost == 0.5 and (make.measure.free, make.measure.of) == (4, 8)
    assert [(fit, would) for _, fit, would in make.sizes] == [(4, 4), (2, 2), (0, 1), (0, 1)]
    assert all(one.measure.lost == 0 for one in found.pools)


def test_no_group_is_larger_than_a_node():
    (make,) = measured(*gpus(a=2, b=2)).makes
    assert make.measure.allows is not None and make.measure.allows.name == "2xgpu" and make.measure.lost == 0


def test_shares_of_one_device_are_measured_by_capacity():
    """400G a NIC, of which others have 100G and 300G: 300G is the most that one has left."""
    found = measured(*hardware("nic", 1))
    (make,) = found.makes
    assert make.measure.fits is not None and make.measure.fits.name == "400G bandwidth"
    claims = []
    for name, device, amount in (("x", 0, "100G"), ("y", 1, "300G"), ("z", 2, "400G"), ("w", 3, "200G")):
        claim, user = running(name, "nic-0", [f"nic-{device}"], ONE)
        (result,) = claim["status"]["allocation"]["devices"]["results"]
        result |= {
            "driver": "nic.example.com",
            "shareID": f"00000000-0000-0000-0000-00000000000{device}",
            "consumedCapacity": {"bandwidth": amount},
        }
        claims += [claim, user]
    (make,) = measured(*hardware("nic", 1), *claims).makes
    assert make.measure.fits is not None and make.measure.fits.name == "300G bandwidth"
    assert make.measure.allows is not None and make.measure.allows.name == "400G bandwidth"
    assert make.measure.lost == 0.25


def test_devices_with_a_taint_are_not_free_and_closed_nodes_are_not_counted():
    sick = whole("a", 2)
    sick["spec"]["devices"][0]["taints"] = [{"key": "sick", "effect": "NoSchedule"}]
    shut = node("b")
    shut["spec"] = {"unschedulable": True}
    found = measured(node("a"), sick, shut, whole("b", 2))
    assert [(one.pool.name, one.measure.free) for one in found.pools] == [("a", 1)]
    assert found.closed == {"b": "cordoned"} and "not counted" in telling.report(found)


def test_the_report_says_it_in_words():
    used = on("a", "gpu-0-mig-1g-10gb-0", "gpu-1-mig-1g-10gb-0", wanted=SMALL)
    text = telling.report(measured(node("a"), *divided("a", 2), SMALL, *used))
    assert "the largest that fits is 3g.40gb (on a); as much free capacity would allow H100-SXM5-80GB" in text
    assert "fragmented: 52%" in text
    assert "pools that are fragmented by themselves: 1 of 1" in text
    assert telling.report(measured(node("a"))) == "no devices are published in slices"
