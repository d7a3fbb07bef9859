"""The shapes are the ones that people know by name, and each is possible."""

import pytest

from allot.allocation import Features, Inventory, Ledger, Node, Plan, allocate, read_demand, taken_by
from allot.api import Gates, meta, resource
from allot.base import RandomIds
from allot.bench import NOT_HERE, SHAPES, UnknownShape, find, objects

BARE = "SchedulingWithResourceClaimTemplate"


@pytest.mark.parametrize(
    ("name", "nodes", "claims_before", "pods_before", "pods"),
    [
        ("5000pods_500nodes", 500, 2500, 0, 2500),
        ("full_500nodes", 500, 4990, 0, 10),
        ("match_fast", 1, 0, 0, 2),
        ("SchedulingWithResourceClaim/5000pods_500nodes", 500, 0, 2500, 2500),
        ("ExtendedResource/Implicit_25classes_2000pods_200nodes", 200, 0, 1000, 1000),
        ("ExtendedResourceScoring/5000pods_500nodes", 500, 0, 0, 5000),
        ("ConsumableCapacity/full_1000nodes", 1000, 0, 7990, 10),
        ("PartitionableBacktracking/full_1000nodes", 1000, 990, 0, 10),
        ("ListAttributes/empty_500nodes", 500, 0, 0, 500),
    ],
)
def test_amounts_are_those_of_the_names(name, nodes, claims_before, pods_before, pods):
    shape = find(name)
    assert shape.nodes == nodes
    amounts = (shape.claims_before, shape.pods_before, shape.pods)
    assert [amount.at(nodes) for amount in amounts] == [claims_before, pods_before, pods]


def test_a_bare_name_is_one_of_claim_templates():
    assert find("fast") is find(f"{BARE}/fast") is SHAPES[f"{BARE}/fast"]


@pytest.mark.parametrize("name", ["nosuch", "Nosuch/fast", *(f"{test}/fast" for test in NOT_HERE)])
def test_other_names_are_refused_with_a_reason(name):
    with pytest.raises(UnknownShape, match=r"--list|not supported|no pods"):
        find(name)


def test_a_shape_grows_with_its_nodes():
    """Half full stays half full, and full leaves room for ten."""
    assert find("half_500nodes").on(5000).claims_before.at(5000) == 25_000
    assert find("full_500nodes").on(5000).claims_before.at(5000) == 49_990
    assert find("5000pods_500nodes").on(50).pods.at(50) == 250


def test_a_steady_shape_can_be_had_at_once_and_the_other_way_round():
    burst = find("empty_500nodes").in_bursts()
    assert not burst.steady and burst.pods.at(500) == 2500
    full = find("full_100nodes").in_bursts()
    assert full.pods.at(100) == 10
    steady = find("5000pods_500nodes").kept_up()
    assert steady.steady and steady.pods.at(500) == 10
    assert find("fast").in_bursts() is find("fast")
    assert find("fast").with_pods(3).pods.at(1) == 3


CLAIMING = [shape for shape in SHAPES.values() if shape.scene.claim and shape.nodes == 1]


@pytest.mark.parametrize("shape", CLAIMING, ids=lambda shape: shape.name)
def test_a_node_has_room_for_as_many_claims_as_it_says(shape):
    """As the allocator fills it: no more and no less, so that a full shape is full and possible."""
    features = Features.from_gates(Gates(dict.fromkeys(shape.gates, True)))
    inventory, ledger, node = Inventory(features), Ledger(), Node("node-00000")
    for published in objects.slices(shape.scene, node.name):
        inventory.apply(meta.view(resource.ResourceSlice, published))
    classes = [meta.view(resource.DeviceClass, one) for one in shape.scene.classes]
    claim = meta.view(resource.ResourceClaim, objects.claim("c", shape.scene.claim))
    demand = read_demand([claim], {one.metadata.name: one for one in classes}, features)
    served = 0
    while isinstance(answer := allocate(node, inventory, ledger, demand), Plan):
        (allocation,) = answer.results(RandomIds())
        ledger.settle(str(served), taken_by(allocation))
        served += 1
    assert served * max(shape.scene.pods_per_claim, 1) == shape.scene.room


def test_devices_are_as_large_as_real_ones():
    (device, *others) = find("fast").scene.devices
    assert len(others) == 9
    assert len(device["attributes"]) == 13
    assert len(device["capacity"]) == 2
