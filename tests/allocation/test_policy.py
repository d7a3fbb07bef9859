"""Which of many fitting devices to take."""

from allot.allocation import (
    LEAST_WASTE,
    POLICIES,
    SPREAD,
    Candidate,
    Cost,
    DeviceId,
    Ledger,
    Plan,
    Policy,
    Taken,
)
from allot.api import Quantity

from .builders import (
    DRIVER,
    cards,
    chosen,
    claim,
    device,
    given,
    larger_than,
    partition,
    slice_of,
    stocked,
    wants,
)


def held(*names: str) -> Ledger:
    ledger = Ledger()
    ledger.settle("somebody", [Taken(DeviceId(DRIVER, "pool", name)) for name in names])
    return ledger


def test_the_small_request_gets_the_small_device():
    """The 80 GiB card stays free for whoever needs it."""
    inventory = stocked(slice_of(device("large", gib=80), device("small", gib=10), device("middle", gib=40)))

    assert chosen(given(inventory, claim(wants()), policy=LEAST_WASTE)) == ["small"]
    assert chosen(given(inventory, claim(wants("r", 1, larger_than(20))), policy=LEAST_WASTE)) == ["middle"]


def test_equal_devices_go_in_the_order_of_publication():
    inventory = stocked(slice_of(device("b", gib=8), device("a", gib=8)))

    assert chosen(given(inventory, claim(wants(count=2)), policy=LEAST_WASTE)) == ["b", "a"]


def two_cards():
    parts = [
        part
        for card in ("card-0", "card-1")
        for part in (
            partition(f"{card}-whole", card, 8),
            partition(f"{card}-left", card, 4),
            partition(f"{card}-right", card, 4),
        )
    ]
    return stocked(cards(8, 8), slice_of(*parts, slices=2))


def test_a_partition_comes_from_the_card_that_is_broken_already():
    small = claim(wants())

    assert chosen(given(two_cards(), small, policy=LEAST_WASTE, ledger=held("card-1-left"))) == [
        "card-1-right"
    ]


def test_the_whole_card_is_the_last_that_a_small_request_takes():
    assert chosen(given(two_cards(), claim(wants(count=2)), policy=LEAST_WASTE)) == [
        "card-0-left",
        "card-0-right",
    ]


def test_a_partition_sits_where_it_costs_the_fewest_large_ones():
    """Places 0 to 7; the large ones cover 0-3 and 4-7, and 4-7 is broken already."""

    def at(name: str, first: int, last: int):
        draws = {f"slot-{n}": {"value": "1"} for n in range(first, last + 1)}
        return device(name, consumesCounters=[{"counterSet": "card", "counters": draws}])

    slots = {f"slot-{n}": {"value": "1"} for n in range(8)}
    inventory = stocked(
        slice_of(
            at("large-0", 0, 3), at("large-4", 4, 7), *(at(f"small-{n}", n, n) for n in range(8)), slices=2
        ),
        slice_of(name="counters", slices=2, sharedCounters=[{"name": "card", "counters": slots}]),
    )
    small = claim(wants("r", 1, 'device.driver == "gpu.example.com"'))

    assert chosen(given(inventory, small, policy=LEAST_WASTE, ledger=held("small-5"))) == ["small-4"]


def test_a_shared_device_is_filled_before_another_is_opened():
    devices = [device(name, gib=8, allowMultipleAllocations=True) for name in ("fresh", "used")]
    ledger = Ledger()
    ledger.settle("other", [Taken(DeviceId(DRIVER, "pool", "used"), "s", {"memory": Quantity.parse("2Gi")})])
    ask = claim(wants(capacity={"requests": {"memory": "1Gi"}}))

    assert chosen(given(stocked(slice_of(*devices)), ask, policy=LEAST_WASTE, ledger=ledger)) == ["used"]


def test_spread_keeps_away_from_what_others_use():
    inventory = stocked(
        slice_of(device("a"), device("b"), name="s1", pool="pool"),
        slice_of(device("c"), device("d"), name="s2", pool="quiet"),
    )

    assert chosen(given(inventory, claim(wants()), policy=SPREAD, ledger=held("a"))) == ["c"]
    assert chosen(given(inventory, claim(wants(), name="x"), claim(wants(), name="y"), policy=SPREAD)) == [
        "a",
        "c",
    ]


def test_a_policy_is_one_function():
    """The largest first, for whoever wants that."""

    def largest_first(candidate: Candidate) -> Cost:
        capacity = candidate.device.kind.capacity.get("memory")
        return (-float(capacity.value.nano) if capacity else 0.0,)

    inventory = stocked(slice_of(device("small", gib=10), device("large", gib=80)))

    assert chosen(given(inventory, claim(wants()), policy=Policy("largest", largest_first))) == ["large"]


def test_a_plan_says_what_its_policy_thinks_of_it():
    inventory = stocked(slice_of(device("small", gib=10), device("large", gib=80)))
    cheap = given(inventory, claim(wants()), policy=LEAST_WASTE)
    dear = given(inventory, claim(wants("r", 1, larger_than(80))), policy=LEAST_WASTE)

    assert isinstance(cheap, Plan)
    assert isinstance(dear, Plan)
    assert cheap.cost < dear.cost


def test_policies_are_known_by_name():
    assert list(POLICIES) == ["first-fit", "least-waste", "spread"]
