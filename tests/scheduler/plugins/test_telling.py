"""Why the devices of many nodes do not do: which nodes are looked at, and how devices are counted."""

from collections.abc import Sequence
from typing import Any

import msgspec

from allot.allocation import DeviceId, Features, Taken
from allot.api import Object, resource
from allot.scheduler.cycle import Unplaced
from allot.scheduler.explaining import explained
from allot.scheduler.extended import read_asked
from allot.scheduler.plugins.devices.asking import DeviceAsk
from allot.scheduler.plugins.devices.checking import Asked
from allot.scheduler.plugins.devices.telling import EXAMPLES_MAX, REQUESTS_MAX, ShortOfDevices
from allot.scheduler.snapshot import Snapshot

from ..cluster import DRIVER, claim_spec, slice_of
from ..objects import node, pod
from ..test_board import claim, device_class
from ..test_cycle import USES_C, decided, devices_only

MANY = EXAMPLES_MAX + 8
TAINT = {"key": "broken", "effect": "NoSchedule"}


def cluster(wanted: Object | None = None, features: Sequence[str] = ("DeviceTaints",)) -> Snapshot:
    snapshot = Snapshot(Features.of(features))
    snapshot.put_class(device_class("gpu"))
    snapshot.put_claim(wanted or claim("c", 1, 1))
    return snapshot


def furnish(snapshot: Snapshot, name: str, *devices: dict[str, Any], used: bool = False, **spec: Any) -> None:
    snapshot.put_node(node(name))
    publish(snapshot, name, *devices, **spec)
    if used:
        driver = spec.get("driver", DRIVER)
        taken = [Taken(DeviceId(driver, name, one["name"])) for one in devices]
        snapshot.ledger.settle(f"holder-on-{name}", taken)


def publish(snapshot: Snapshot, name: str, *devices: dict[str, Any], **spec: Any) -> None:
    published = msgspec.convert(slice_of(name, devices, **spec), resource.ResourceSlice)
    snapshot.inventory.apply(published)


def several(name: str, requests: int) -> Object:
    """A claim with so many requests."""
    (one,) = claim_spec()["devices"]["requests"]
    listed = [{**one, "name": f"gpu-{at}"} for at in range(requests)]
    return claim(name, 1, 1).changed({"spec": {"devices": {"requests": listed}}})


def refused(snapshot: Snapshot) -> Unplaced:
    outcome, _ = decided(devices_only(budget=1000), pod("p", **USES_C), snapshot)
    assert isinstance(outcome, Unplaced)
    return outcome


def nodes_looked_at(outcome: Unplaced) -> tuple[str, ...]:
    (sentence,) = outcome.sentences
    assert isinstance(sentence, ShortOfDevices)
    return sentence.nodes


# -- which nodes are looked at --------------------------------------------------------------------


def test_nodes_with_devices_of_another_driver_come_behind_those_with_the_right_ones():
    """Each has a device like no other, so no two nodes look alike."""
    snapshot = cluster()
    for at in range(MANY):
        card = {"name": "nic-0", "attributes": {"serial": {"int": at}}}
        furnish(snapshot, f"nic-{at:02}", card, driver="nic.example.com")
    furnish(snapshot, "zz", {"name": "gpu-0"}, used=True)
    looked_at = nodes_looked_at(refused(snapshot))
    assert looked_at[0] == "zz"
    assert len(looked_at) == EXAMPLES_MAX


def test_of_every_situation_one_node_is_looked_at_before_there_are_two_of_any():
    snapshot = cluster()
    for at in range(MANY):
        furnish(snapshot, f"full-{at:02}", {"name": "gpu-0"}, used=True)
    furnish(snapshot, "tainted", {"name": "gpu-0", "taints": [TAINT]})
    looked_at = nodes_looked_at(refused(snapshot))
    assert "tainted" in looked_at[:2]
    assert len(looked_at) == EXAMPLES_MAX
    assert "of 32 devices 31 in use, 1 tainted" in explained(refused(snapshot), snapshot)


def test_one_node_stands_for_all_that_offer_nothing():
    snapshot = cluster()
    for at in range(MANY):
        snapshot.put_node(node(f"plain-{at:02}"))
    outcome = refused(snapshot)
    assert nodes_looked_at(outcome) == ("plain-00",)
    assert explained(outcome, snapshot) == (
        f"0/{MANY} nodes are available: {MANY} cannot allocate all claims. "
        "Devices on the node looked at: request gpu wants 1, and none is offered."
    )


# -- how devices are counted ----------------------------------------------------------------------


def test_a_device_that_several_nodes_reach_counts_once():
    snapshot = cluster()
    for name in "abcd":
        snapshot.put_node(node(name))
    publish(snapshot, "fabric", {"name": "gpu-0"}, {"name": "gpu-1"}, allNodes=True)
    snapshot.ledger.settle("other", [Taken(DeviceId(DRIVER, "fabric", f"gpu-{at}")) for at in range(2)])
    assert "on the 4 nodes looked at: request gpu wants 1, and of 2 devices 2 in use" in explained(
        refused(snapshot), snapshot
    )


def test_a_device_that_another_node_may_use_counts_where_it_came_furthest():
    """It chooses its node itself: seen from the other it is elsewhere, and at home it is in use."""
    snapshot = cluster(features=["DeviceTaints", "PartitionableDevices"])
    for name in "ab":
        snapshot.put_node(node(name))
    at_home = ({"name": "gpu-a", "nodeName": "a"}, {"name": "gpu-b", "nodeName": "b"})
    publish(snapshot, "fabric", *at_home, perDeviceNodeSelection=True)
    snapshot.ledger.settle("other", [Taken(DeviceId(DRIVER, "fabric", f"gpu-{name}")) for name in "ab"])
    assert "of 2 devices 2 in use" in explained(refused(snapshot), snapshot)


def test_what_is_free_is_told_by_the_node_that_has_most_of_it():
    """Ten are free over all nodes, and nine are wanted: that must not read like a contradiction."""
    snapshot = cluster(claim("c", 1, 9))
    for name, free in (("a", 8), ("b", 2)):
        furnish(snapshot, name, *({"name": f"gpu-{at}"} for at in range(free)))
    furnish(snapshot, "c", *({"name": f"gpu-{at}"} for at in range(3)), used=True)
    assert explained(refused(snapshot), snapshot).endswith(
        "request gpu wants 9, and of 13 devices at most 8 free on one node (10 in all), 3 in use."
    )


ROOT = f"{DRIVER}/pcieRoot"


def on_one_root(count: int, *, distinct: bool = False) -> Object:
    rule = {"distinctAttribute" if distinct else "matchAttribute": ROOT}
    (request,) = claim_spec(count)["devices"]["requests"]
    return claim("c", 1, 1).changed({"spec": {"devices": {"requests": [request], "constraints": [rule]}}})


def rooted(*roots: str) -> list[dict[str, Any]]:
    return [
        {"name": f"gpu-{at}", "attributes": {"pcieRoot": {"string": root}}} for at, root in enumerate(roots)
    ]


def test_the_constraint_that_keeps_free_devices_apart_is_named():
    snapshot = cluster(on_one_root(2))
    furnish(snapshot, "a", *rooted("p0", "p1"))
    furnish(snapshot, "b", *rooted("p0", "p1", "p2"))
    assert explained(refused(snapshot), snapshot).endswith(
        "request gpu wants 2, and of 5 devices at most 3 free on one node (5 in all); "
        f"2 devices with one value of {ROOT} are needed, no value has more than 1 free."
    )


def test_where_nodes_differ_in_what_keeps_devices_apart_each_is_counted():
    snapshot = cluster(on_one_root(3))
    furnish(snapshot, "a", *rooted("p0", "p1", "p2"))
    furnish(snapshot, "b", *rooted("p0", "p0", "p1"))
    furnish(snapshot, "c", *rooted("p0", "p1", "p2"))
    needed = f"3 devices with one value of {ROOT} are needed, no value has more than"
    assert explained(refused(snapshot), snapshot).endswith(
        f"{needed} 1 free (on 2 nodes); {needed} 2 free (on 1 node)."
    )


def test_values_that_must_differ_are_told_too():
    snapshot = cluster(on_one_root(2, distinct=True), features=["ConsumableCapacity"])
    furnish(snapshot, "a", *rooted("p0", "p0"))
    assert explained(refused(snapshot), snapshot).endswith(
        f"of 2 devices 2 free; 2 different values of {ROOT} are needed, 1 can be had."
    )


def test_what_is_left_out_is_counted_in_good_english():
    for extra, words in ((1, "and 1 more request."), (2, "and 2 more requests.")):
        snapshot = cluster(several("c", REQUESTS_MAX + extra))
        furnish(snapshot, "a", {"name": "gpu-0"}, used=True)
        assert explained(refused(snapshot), snapshot).endswith(words)


# -- what is wrong with the question itself -------------------------------------------------------


def test_an_error_in_what_stands_for_an_extended_resource_is_told_by_the_name_of_the_resource():
    wanted = pod("p", requests={"example.com/gpu": "1"})
    asked = Asked(DeviceAsk(extended=read_asked(wanted.spec)), wanted, cluster())
    error = "claim default/<extended-resources>, request container-0-request-0: what is wrong"
    assert asked.anonymous(error) == "request example.com/gpu of container main: what is wrong"
