"""Which of many nodes: the order that outlines give, and how little is worked out for it."""

from collections.abc import Iterable

from hypothesis import given, settings
from hypothesis import strategies as st

from allot.allocation import (
    LEAST_WASTE,
    SPREAD,
    DeviceId,
    Inventory,
    Ledger,
    Node,
    Outline,
    Outlines,
    Policy,
    Refused,
    Taken,
    outline,
)

from .builders import (
    DRIVER,
    EVERYTHING,
    claim,
    demanded,
    device,
    larger_than,
    prefers,
    slice_of,
    stocked,
    wants,
)

NODES = [Node(f"n{number}") for number in range(4)]


def on(node: Node, *gib: int):
    devices = [device(f"d{at}", gib=amount) for at, amount in enumerate(gib)]
    return slice_of(*devices, name=node.name, pool=node.name, nodeName=node.name)


def take(ledger: Ledger, node: Node, name: str) -> None:
    ledger.settle(f"{node.name}-{name}", [Taken(DeviceId(DRIVER, node.name, name))])


def ranked(outlines: Outlines, nodes: Iterable[Node] = NODES) -> list[str]:
    """The nodes that fit: what the claims prefer first, then what the policy does."""
    found = {node.name: outlines.of(node) for node in nodes}
    fitting = {name: one for name, one in found.items() if isinstance(one, Outline) and one.fits}
    return sorted(fitting, key=lambda name: (fitting[name].preference, fitting[name].cost, name))


def test_the_node_that_wastes_least_comes_first_and_those_without_room_not_at_all():
    inventory = stocked(on(NODES[0], 80), on(NODES[1], 10), on(NODES[2], 40), on(NODES[3], 1))

    outlines = Outlines(inventory, Ledger(), demanded(claim(wants("r", 1, larger_than(10)))))
    assert ranked(outlines) == ["n1", "n2", "n0"]


def test_what_the_claim_prefers_comes_before_what_the_policy_prefers():
    inventory = stocked(on(NODES[0], 10), on(NODES[1], 80))
    demand = demanded(claim(prefers("r", wants("big", 1, larger_than(80)), wants("any"))))

    assert ranked(Outlines(inventory, Ledger(), demand)) == ["n1", "n0"]


def test_spread_likes_empty_nodes():
    inventory = stocked(on(NODES[0], 8, 8), on(NODES[1], 8, 8))
    ledger = Ledger()
    take(ledger, NODES[0], "d0")

    assert ranked(Outlines(inventory, ledger, demanded(claim(wants())), SPREAD)) == ["n1", "n0"]


def test_nodes_in_the_same_situation_are_worked_out_once(monkeypatch):
    worked: list[str] = []
    allocate = outline.allocate
    monkeypatch.setattr(
        outline, "allocate", lambda node, *rest: (worked.append(node.name), allocate(node, *rest))[1]
    )
    inventory = stocked(*(on(node, 8, 8) for node in NODES))

    assert ranked(Outlines(inventory, Ledger(), demanded(claim(wants())))) == ["n0", "n1", "n2", "n3"]
    assert len(worked) == 1


def test_a_policy_that_cares_for_names_is_asked_on_every_node():
    """The nodes are alike but for the names of their devices."""
    far_first = Policy("far first", lambda candidate: (-float(candidate.device.id.pool.removeprefix("n")),))
    inventory = stocked(*(on(node, 8) for node in NODES))

    assert ranked(Outlines(inventory, Ledger(), demanded(claim(wants())), far_first)) == [
        "n3",
        "n2",
        "n1",
        "n0",
    ]


def test_a_refusal_is_of_a_node():
    twins = slice_of(device("twin"), device("twin"), name="n0", pool="n0", nodeName="n0")
    outlines = Outlines(stocked(twins, on(NODES[1], 8)), Ledger(), demanded(claim(wants())))
    assert ranked(outlines) == ["n1"]
    assert isinstance(outlines.of(NODES[0]), Refused)


def test_a_node_without_an_answer_is_not_one_that_does_not_fit():
    inventory = stocked(on(NODES[0], 4, 80), on(NODES[1], 80))
    outlines = Outlines(inventory, Ledger(), demanded(claim(wants("r", 1, larger_than(80)))), budget=0)
    assert [outlines.of(node) for node in NODES[:2]] == [None, None]


def test_a_device_that_is_held_and_no_longer_published_still_fills_its_pool():
    """Known from outlines that are made afresh, and not to be taken for an empty node."""
    inventory, ledger = stocked(on(NODES[1], 4)), Ledger()
    outlines = Outlines(inventory, ledger, demanded(claim(wants())), SPREAD)
    empty = outlines.of(NODES[1])
    take(ledger, NODES[1], "d7")
    filled = outlines.of(NODES[1])
    assert isinstance(empty, Outline) and isinstance(filled, Outline)
    assert filled.cost > empty.cost


events = st.lists(
    st.one_of(
        st.tuples(st.just("slice"), st.integers(0, 3), st.lists(st.sampled_from([4, 8]), max_size=3)),
        st.tuples(st.just("shared"), st.just(0), st.lists(st.sampled_from([4, 8]), max_size=2)),
        st.tuples(st.just("take"), st.integers(0, 3), st.sampled_from(["d0", "d1"])),
        st.tuples(st.just("free"), st.integers(0, 3), st.sampled_from(["d0", "d1"])),
    ),
    max_size=15,
)


@given(events, st.sampled_from([LEAST_WASTE, SPREAD]))
@settings(max_examples=150, deadline=None)
def test_outlines_that_are_kept_are_outlines_made_afresh(history, policy):
    """Whatever happens in between."""
    inventory, ledger = Inventory(EVERYTHING), Ledger()
    demand = demanded(claim(wants("big", 1, larger_than(4)), wants("other")))
    kept = Outlines(inventory, ledger, demand, policy)
    for verb, number, what in history:
        node = NODES[number]
        if verb == "slice":
            inventory.apply(on(node, *what))
        elif verb == "shared":
            devices = [device(f"s{at}", gib=gib) for at, gib in enumerate(what)]
            inventory.apply(slice_of(*devices, name="shared", pool="shared", allNodes=True))
        elif verb == "take":
            take(ledger, node, what)
        else:
            ledger.release(f"{node.name}-{what}")
        afresh = Outlines(inventory, ledger, demand, policy)
        assert [kept.of(one) for one in NODES] == [afresh.of(one) for one in NODES]
