"""Which devices a node may use, from slices that come and go in any order."""

import gc

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from allot.allocation import BadNodeSelector, BadSlice, Features, Inventory, Node, PoolId
from allot.api import meta, resource

from .builders import DRIVER, EVERYTHING, HERE, cards, device, partition, slice_of, stocked

THERE = Node("there", {"zone": "b"})


def seen(inventory: Inventory, node: Node = HERE) -> list[str]:
    return [str(one.id.name) for one in inventory.view(node).devices]


def rule(name: str, **spec):
    taint = {"key": name, "effect": "NoSchedule"}
    return meta.view(resource.DeviceTaintRule, {"metadata": {"name": name}, "spec": {"taint": taint, **spec}})


def test_a_node_sees_its_own_devices_and_those_that_reach_it():
    inventory = stocked(
        slice_of(device("mine"), name="a", pool="a"),
        slice_of(device("theirs"), name="b", pool="b", nodeName="there"),
        slice_of(device("anyones"), name="c", pool="c", allNodes=True),
        slice_of(device("zoned"), name="d", pool="d", nodeSelector=_in_zone("a")),
    )

    assert seen(inventory) == ["mine", "anyones", "zoned"]
    assert seen(inventory, THERE) == ["theirs", "anyones"]


def test_pools_come_by_name_slices_by_name_and_devices_as_published():
    """First fit: names are priorities."""
    inventory = stocked(
        slice_of(device("z"), device("a"), name="s2", pool="p1", slices=2),
        slice_of(device("m"), name="s1", pool="p1", slices=2),
        slice_of(device("first"), name="s9", pool="p0"),
    )

    assert seen(inventory) == ["first", "m", "z", "a"]


def test_devices_that_must_be_made_ready_are_the_last_choice():
    conditions = {"bindingConditions": ["ready"], "bindingFailureConditions": ["broken"]}
    inventory = stocked(
        slice_of(device("slow", **conditions), name="a", pool="a"),
        slice_of(device("fast"), name="b", pool="b"),
    )

    assert seen(inventory) == ["fast", "slow"]


def test_a_newer_generation_hides_the_older_one():
    inventory = stocked(
        slice_of(device("old"), name="a", generation=1), slice_of(device("new"), name="b", generation=2)
    )

    assert seen(inventory) == ["new"]


def test_an_incomplete_newer_generation_does_not_bring_the_older_one_back():
    """D3: half an update is no inventory."""
    inventory = stocked(
        slice_of(device("old"), name="a", generation=1),
        slice_of(device("new"), name="b", generation=2, slices=2),
    )
    (pool,) = inventory.view(HERE).pools

    assert pool.incomplete
    assert seen(inventory) == []


def test_a_newer_generation_elsewhere_makes_an_incomplete_pool_obsolete():
    """A pool over several nodes whose driver has moved on, and has nothing for this node any more."""
    inventory = stocked(
        slice_of(device("old"), name="a", generation=1, slices=2),
        slice_of(device("new"), name="b", generation=2, nodeName="there"),
    )

    assert inventory.view(HERE).pools == ()


def test_a_newer_generation_elsewhere_goes_unnoticed_by_a_node_that_has_the_whole_pool():
    inventory = stocked(
        slice_of(device("old"), name="a", generation=1),
        slice_of(device("new"), name="b", generation=2, nodeName="there"),
    )

    assert seen(inventory) == ["old"]


@pytest.mark.parametrize(
    ("why", "slices"),
    [
        ("duplicate device name twin", [slice_of(device("twin"), device("twin"))]),
        (
            "counter set card-0 not found",
            [slice_of(partition("part", "card-0", 1), slices=1)],
        ),
        (
            "counter bandwidth not found in counter set card-0",
            [
                slice_of(
                    device(
                        "part",
                        consumesCounters=[
                            {"counterSet": "card-0", "counters": {"bandwidth": {"value": "1"}}}
                        ],
                    ),
                    slices=2,
                ),
                cards(8),
            ],
        ),
        (
            "duplicate counter set name card-0",
            [
                slice_of(name="a", slices=2, sharedCounters=[{"name": "card-0", "counters": {}}]),
                slice_of(name="b", slices=2, sharedCounters=[{"name": "card-0", "counters": {}}]),
            ],
        ),
    ],
)
def test_a_pool_that_contradicts_itself_is_invalid(why, slices):
    (pool,) = stocked(*slices).view(HERE).pools

    assert pool.invalid == why


def test_counters_are_known_wherever_the_pool_is_used():
    """The slice with the counters is on another node than the devices that draw from them."""
    inventory = stocked(cards(8), slice_of(partition("far", "card-0", 4), slices=2, nodeName="there"))
    (pool,) = inventory.view(THERE).pools

    assert pool.usable
    assert seen(inventory, THERE) == ["far"]


def test_without_the_gate_grouped_slices_are_not_there():
    grouped = device(
        "grouped", consumesCounters=[{"counterSet": "card-0", "counters": {}, "compatibilityGroups": ["mig"]}]
    )
    (pool,) = stocked(slice_of(grouped, slices=2), cards(8), features=EVERYTHING).view(HERE).pools

    assert pool.incomplete


def test_without_the_gate_devices_that_choose_their_nodes_are_not_there():
    chosen = slice_of(device("choosy", allNodes=True), perDeviceNodeSelection=True)

    assert seen(stocked(chosen)) == ["choosy"]
    assert stocked(chosen, features=Features()).view(HERE).pools == ()


def test_alike_devices_are_one_kind_and_a_kind_goes_with_its_last_device():
    inventory = stocked(slice_of(device("a", gib=80), device("b", gib=80), device("c", gib=40)))

    assert len(inventory.kinds) == 2
    inventory.apply(slice_of(device("a", gib=80)))
    gc.collect()
    assert len(inventory.kinds) == 1


def test_a_taint_rule_reaches_the_devices_it_names_and_leaves_with_the_rule():
    inventory = stocked(slice_of(device("a"), device("b")))
    inventory.apply_taint_rule(rule("broken", deviceSelector={"device": "b"}))

    assert [[taint.key for taint in one.taints] for one in inventory.view(HERE).devices] == [[], ["broken"]]
    inventory.remove_taint_rule("broken")
    assert [one.taints for one in inventory.view(HERE).devices] == [(), ()]


def test_a_taint_rule_without_a_selector_is_about_every_device():
    inventory = stocked(slice_of(device("a")))
    inventory.apply_taint_rule(rule("all"))
    inventory.apply(slice_of(device("later"), name="s2", pool="p2"))

    assert [[taint.key for taint in one.taints] for one in inventory.view(HERE).devices] == [["all"], ["all"]]


def test_an_amount_that_is_none_is_refused_by_name_and_changes_nothing():
    inventory = stocked(slice_of(device("a")))
    bad = slice_of(device("b", capacity={"memory": {"value": "much"}}))

    with pytest.raises(BadSlice, match=r"slice slice, device b: capacity\[memory\]"):
        inventory.apply(bad)
    assert seen(inventory) == ["a"]


def test_a_node_selector_that_cannot_be_read_is_said_so():
    selector = {"nodeSelectorTerms": [{"matchExpressions": [{"key": "zone", "operator": "Near"}]}]}
    inventory = stocked(slice_of(device("a"), nodeSelector=selector))

    with pytest.raises(BadNodeSelector, match="slice slice"):
        inventory.view(HERE)


def test_only_nodes_that_a_change_may_concern_have_moved():
    """INV2, INV4."""
    inventory = stocked(
        slice_of(device("a"), name="a", pool="a"), slice_of(device("b"), name="b", pool="b", nodeName="there")
    )
    view, before = inventory.view(HERE), inventory.revision
    inventory.apply(slice_of(device("b2"), name="b", pool="b", nodeName="there"))

    assert inventory.moved_since(before) == {"there"}
    assert inventory.view(HERE) is view
    inventory.apply(slice_of(device("c"), name="c", pool="c", allNodes=True))
    assert inventory.moved_since(before) is None


def test_a_fork_can_add_and_remove_without_its_parent_noticing():
    """INV3: what if this node had another card?"""
    inventory = stocked(slice_of(device("a"), name="a", pool="a"), slice_of(device("b"), name="b", pool="b"))
    fork = inventory.fork()
    fork.apply(slice_of(device("new"), name="c", pool="c"))
    fork.remove("a")

    assert seen(fork) == ["b", "new"]
    assert seen(inventory) == ["a", "b"]


def test_counters_of_a_whole_pool_concern_only_the_nodes_that_have_its_devices():
    """INV2. A fleet of cards in parts: what happens on one node is no news for the others."""
    inventory = stocked(
        cards(8),
        slice_of(partition("part", "card-0", 4), slices=2),
        slice_of(device("b"), name="b", pool="b", nodeName="there"),
    )
    before = inventory.revision

    assert inventory.nodes_of(PoolId(DRIVER, "pool")) == {"here"}
    assert [pool.id.name for pool in inventory.view(THERE).pools] == ["b"]
    inventory.apply(slice_of(partition("part", "card-0", 8), slices=2))
    assert inventory.moved_since(before) == {"here"}


def test_counters_of_another_node_concern_only_those_who_have_devices_of_the_pool():
    """A driver that has published its counters and not yet its devices stops nobody elsewhere."""
    inventory = stocked(cards(8))
    assert [pool.incomplete for pool in inventory.view(HERE).pools] == [True]
    assert inventory.view(THERE).pools == ()

    inventory.apply(slice_of(partition("part", "card-9", 4), slices=2))
    assert inventory.view(HERE).pools[0].invalid
    assert inventory.view(THERE).pools == ()


def test_counters_of_another_node_do_not_keep_an_obsolete_pool_alive():
    """The node's own slices are half the pool, and the driver has moved on elsewhere."""
    inventory = stocked(
        cards(8),
        slice_of(partition("old", "card-0", 4), slices=2, nodeName="there"),
        slice_of(device("new"), name="new", generation=2),
    )

    assert inventory.view(THERE).pools == ()


def test_counters_that_show_a_pool_in_pieces_concern_every_node_until_it_is_whole():
    """Whoever asks for all devices must know all of them (D3), where the counters are everybody's."""
    inventory = stocked(cards(8, allNodes=True))
    (pool,) = inventory.view(THERE).pools
    assert pool.incomplete

    inventory.apply(slice_of(partition("part", "card-0", 4), slices=2))
    assert inventory.view(THERE).pools == ()
    inventory.apply(slice_of(partition("part", "card-9", 4), slices=2))
    (pool,) = inventory.view(THERE).pools
    assert "card-9" in pool.invalid
    inventory.remove("counters")
    assert inventory.view(THERE).pools == ()


published = st.builds(
    lambda name, pool, generation, count, node, devices: slice_of(
        *(device(one) for one in devices),
        name=name,
        pool=pool,
        generation=generation,
        slices=count,
        **({"allNodes": True} if node is None else {"nodeName": node}),
    ),
    st.sampled_from("abcd"),
    st.sampled_from(["p", "q"]),
    st.integers(1, 2),
    st.integers(1, 2),
    st.sampled_from(["here", "there", None]),
    st.lists(st.sampled_from("xyz"), max_size=2),
) | st.builds(
    lambda card, pool, drawn: (
        slice_of(partition("x", card, 4), pool=pool, slices=2) if drawn else cards(8, pool=pool)
    ),
    st.sampled_from(["card-0", "card-1"]),
    st.sampled_from(["p", "q"]),
    st.booleans(),
)


def described(inventory: Inventory) -> list[object]:
    return [
        [
            (pool.id, pool.incomplete, pool.invalid, [d.id for d in pool.devices])
            for pool in inventory.view(n).pools
        ]
        for n in (HERE, THERE)
    ]


@given(
    st.lists(published, max_size=8),
    st.integers(0, 8),
    st.sets(st.sampled_from([*"abcd", "slice", "counters"])),
)
@settings(max_examples=200)
def test_a_history_and_its_outcome_give_the_same_views(history, forked_at, removed):
    """INV1, with a fork somewhere on the way and removals at the end."""
    inventory = Inventory(EVERYTHING)
    latest = {}
    for at, one in enumerate(history):
        if at == forked_at:
            described(inventory)  # so that the parent has views to be wrong about
            inventory = inventory.fork()
        inventory.apply(one)
        latest[one.metadata.name] = one
        described(inventory)
    for name in removed:
        inventory.remove(name)
        latest.pop(name, None)

    fresh = stocked(*latest.values())
    assert described(inventory) == described(fresh)


def _in_zone(zone: str):
    terms = [{"matchExpressions": [{"key": "zone", "operator": "In", "values": [zone]}]}]
    return {"nodeSelectorTerms": terms}
