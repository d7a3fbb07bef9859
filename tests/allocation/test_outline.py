"""Nodes in the same situation: worked out once, and the plan of one copied to the other."""

from typing import Any

from hypothesis import example, given, settings
from hypothesis import strategies as st

from allot.allocation import (
    FIRST_FIT,
    LEAST_WASTE,
    SPREAD,
    Inventory,
    Ledger,
    Node,
    Outlines,
    Plan,
    allocate,
    outline,
    taken_by,
)
from allot.base import RandomIds

from .builders import EVERYTHING, claim, demanded, device, larger_than, partition, prefers, slice_of, wants

NODES = [Node(f"n{number}") for number in range(3)]


def publish(inventory: Inventory, node: Node) -> None:
    """A card in parts, two ports that can be shared, three GPUs of two kinds: on every node alike."""
    port = {
        "allowMultipleAllocations": True,
        "capacity": {
            "bandwidth": {"value": "10", "requestPolicy": {"default": "1"}},
            "memory": {"value": "1Gi", "requestPolicy": {"default": "1Mi"}},
        },
    }
    devices = [
        partition("whole", "card-0", 8),
        partition("half-0", "card-0", 4),
        partition("half-1", "card-0", 4),
        device("port-0", attributes={"port": 0}, **port),
        device("port-1", attributes={"port": 1}, **port),
        device("gpu-0", gib=16),
        device("gpu-1", gib=80),
        device("gpu-2", gib=16),
    ]
    sets = [{"name": "card-0", "counters": {"memory": {"value": "8Gi"}}}]
    inventory.apply(
        slice_of(*devices, name=f"{node.name}-devices", pool=node.name, nodeName=node.name, slices=2)
    )
    inventory.apply(
        slice_of(
            name=f"{node.name}-counters", pool=node.name, nodeName=node.name, slices=2, sharedCounters=sets
        )
    )


def share(bandwidth: str) -> dict[str, Any]:
    only = "device.allowMultipleAllocations == true"
    return wants("r", 1, only, capacity={"requests": {"bandwidth": bandwidth}})


DEMANDS = {
    "any": [wants()],
    "two": [wants("r", 2)],
    "large": [wants("r", 1, larger_than(10))],
    "parts": [wants("r", 2, larger_than(3))],
    "list": [prefers("r", wants("huge", 1, larger_than(79)), wants("any"))],
    "share": [share("3")],
    "most": [share("8")],
}

steps = st.lists(
    st.tuples(st.sampled_from(list(DEMANDS)), st.sampled_from(NODES), st.booleans()), max_size=25
)


SMALL_AND_LARGE_SHARE = [
    ("share", NODES[0], True),
    ("most", NODES[1], True),
    ("share", NODES[0], False),
    ("share", NODES[1], False),
]
"""One sharer on each node; on the second it leaves too little."""


@example(SMALL_AND_LARGE_SHARE, LEAST_WASTE)
@given(steps, st.sampled_from([FIRST_FIT, LEAST_WASTE, SPREAD]))
@settings(max_examples=200, deadline=None)
def test_a_copied_plan_is_the_plan_that_would_be_made(history, policy):
    """SEARCH4. Each step asks one node and perhaps holds what it got, so that situations part and meet."""
    inventory, ledger, ids = Inventory(EVERYTHING), Ledger(), RandomIds()
    for node in NODES:
        publish(inventory, node)
    demands = {name: demanded(claim(*requests)) for name, requests in DEMANDS.items()}
    outlines = {name: Outlines(inventory, ledger, one, policy) for name, one in demands.items()}
    for name, node, held in history:
        outlines[name].look(node)
        copied = outlines[name].plan(node)
        made = allocate(node, inventory, ledger, demands[name], policy)
        assert type(copied) is type(made)
        if isinstance(made, Plan) and isinstance(copied, Plan):
            assert (copied.picks, copied.cost) == (made.picks, made.cost)
            if held:
                (allocation,) = copied.results(ids)
                ledger.settle(ids.uid(), taken_by(allocation))


def test_the_plan_of_a_node_in_the_same_situation_is_not_searched_for(monkeypatch):
    inventory = Inventory(EVERYTHING)
    for node in NODES:
        publish(inventory, node)
    outlines = Outlines(inventory, Ledger(), demanded(claim(wants("r", 2))))
    outlines.look(NODES[0])
    monkeypatch.setattr(outline, "allocate", None)  # whoever searches now fails

    copied = outlines.plan(NODES[1])
    assert isinstance(copied, Plan)
    assert {pick.device.id.pool for pick in copied.picks} == {"n1"}
