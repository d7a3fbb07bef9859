"""Which of many nodes: the order, and how little is done to keep it."""

from hypothesis import given, settings
from hypothesis import strategies as st

from allot.allocation import (
    LEAST_WASTE,
    SPREAD,
    DeviceId,
    Inventory,
    Ledger,
    Node,
    Policy,
    Ranker,
    Refused,
    Taken,
    outline,
    rank,
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


def names(ranked) -> list[str]:
    return [one.node for one in ranked]


def test_the_node_that_wastes_least_comes_first_and_those_without_room_not_at_all():
    inventory = stocked(on(NODES[0], 80), on(NODES[1], 10), on(NODES[2], 40), on(NODES[3], 1))

    ranked = rank(NODES, inventory, Ledger(), demanded(claim(wants("r", 1, larger_than(10)))))
    assert names(ranked) == ["n1", "n2", "n0"]


def test_what_the_claim_prefers_comes_before_what_the_policy_prefers():
    inventory = stocked(on(NODES[0], 10), on(NODES[1], 80))
    demand = demanded(claim(prefers("r", wants("big", 1, larger_than(80)), wants("any"))))

    assert names(rank(NODES, inventory, Ledger(), demand)) == ["n1", "n0"]


def test_spread_likes_empty_nodes():
    inventory = stocked(on(NODES[0], 8, 8), on(NODES[1], 8, 8))
    ledger = Ledger()
    take(ledger, NODES[0], "d0")

    assert names(rank(NODES, inventory, ledger, demanded(claim(wants())), SPREAD)) == ["n1", "n0"]


def test_only_nodes_that_moved_are_looked_at_again(monkeypatch):
    """R2: of four nodes one changes hands; the other three are not asked."""
    inventory = stocked(*(on(node, 8, 8) for node in NODES))
    ledger = Ledger()
    ranker = Ranker(inventory, ledger, demanded(claim(wants())))
    for node in NODES:
        ranker.put(node)
    ranker.ranked()
    asked: list[str] = []
    look_again = Ranker._look_again
    monkeypatch.setattr(
        Ranker, "_look_again", lambda self, name: (asked.append(name), look_again(self, name))[1]
    )

    take(ledger, NODES[2], "d0")
    ranker.ranked()
    ranker.ranked()

    assert asked == ["n2"]


def test_nodes_in_the_same_situation_are_worked_out_once(monkeypatch):
    """R3."""
    worked: list[str] = []
    allocate = outline.allocate
    monkeypatch.setattr(
        outline, "allocate", lambda node, *rest: (worked.append(node.name), allocate(node, *rest))[1]
    )
    inventory = stocked(*(on(node, 8, 8) for node in NODES))

    assert names(rank(NODES, inventory, Ledger(), demanded(claim(wants())))) == ["n0", "n1", "n2", "n3"]
    assert len(worked) == 1


def test_a_policy_that_cares_for_names_is_asked_on_every_node():
    """The nodes are alike but for the names of their devices."""
    far_first = Policy("far first", lambda candidate: (-float(candidate.device.id.pool.removeprefix("n")),))
    inventory = stocked(*(on(node, 8) for node in NODES))

    assert names(rank(NODES, inventory, Ledger(), demanded(claim(wants())), far_first)) == [
        "n3",
        "n2",
        "n1",
        "n0",
    ]


def test_a_node_that_goes_leaves_the_ranking():
    ranker = Ranker(stocked(on(NODES[0], 8), on(NODES[1], 8)), Ledger(), demanded(claim(wants())))
    for node in NODES:
        ranker.put(node)
    assert names(ranker.ranked()) == ["n0", "n1"]

    ranker.drop("n0")
    assert names(ranker.ranked()) == ["n1"]


def test_a_refusal_is_kept_by_node():
    twins = slice_of(device("twin"), device("twin"), name="n0", pool="n0", nodeName="n0")
    ranker = Ranker(stocked(twins, on(NODES[1], 8)), Ledger(), demanded(claim(wants())))
    for node in NODES:
        ranker.put(node)

    assert names(ranker.ranked()) == ["n1"]
    ((name, refusal),) = ranker.refusals()
    assert name == "n0"
    assert isinstance(refusal, Refused)


def test_a_node_without_an_answer_is_not_one_that_does_not_fit():
    inventory = stocked(on(NODES[0], 4, 80), on(NODES[1], 80))
    ranker = Ranker(inventory, Ledger(), demanded(claim(wants("r", 1, larger_than(80)))), budget=0)
    for node in NODES[:2]:
        ranker.put(node)

    assert names(ranker.ranked()) == []
    assert ranker.undecided() == {"n0", "n1"}


def test_a_device_that_is_held_and_no_longer_published_still_fills_its_pool():
    """Known from the ranking that is made afresh, and not to be taken for an empty node."""
    inventory, ledger = stocked(on(NODES[1], 4)), Ledger()
    ranker = Ranker(inventory, ledger, demanded(claim(wants())), SPREAD)
    ranker.put(NODES[1])
    (empty,) = ranker.ranked()
    take(ledger, NODES[1], "d7")

    (filled,) = ranker.ranked()
    assert filled.cost > empty.cost


events = st.lists(
    st.one_of(
        st.tuples(st.just("slice"), st.integers(0, 3), st.lists(st.sampled_from([4, 8]), max_size=3)),
        st.tuples(st.just("shared"), st.just(0), st.lists(st.sampled_from([4, 8]), max_size=2)),
        st.tuples(st.just("take"), st.integers(0, 3), st.sampled_from(["d0", "d1"])),
        st.tuples(st.just("free"), st.integers(0, 3), st.sampled_from(["d0", "d1"])),
        st.tuples(st.just("node"), st.integers(0, 3), st.booleans()),
    ),
    max_size=15,
)


@given(events, st.sampled_from([LEAST_WASTE, SPREAD]))
@settings(max_examples=150, deadline=None)
def test_a_ranking_that_is_kept_is_the_ranking_made_afresh(history, policy):
    """R1, whatever happens in between."""
    inventory, ledger = Inventory(EVERYTHING), Ledger()
    demand = demanded(claim(wants("big", 1, larger_than(4)), wants("other")))
    ranker = Ranker(inventory, ledger, demand, policy)
    nodes: dict[str, Node] = {}
    for verb, number, what in history:
        node = NODES[number]
        if verb == "slice":
            inventory.apply(on(node, *what))
        elif verb == "shared":
            devices = [device(f"s{at}", gib=gib) for at, gib in enumerate(what)]
            inventory.apply(slice_of(*devices, name="shared", pool="shared", allNodes=True))
        elif verb == "take":
            take(ledger, node, what)
        elif verb == "free":
            ledger.release(f"{node.name}-{what}")
        elif what:
            ranker.put(node)
            nodes[node.name] = node
        else:
            ranker.drop(node.name)
            nodes.pop(node.name, None)

        assert list(ranker.ranked()) == list(rank(nodes.values(), inventory, ledger, demand, policy))
