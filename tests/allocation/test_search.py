"""Finding devices for everything at once: stories first, properties below."""

import random

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from allot.allocation import (
    FIRST_FIT,
    POLICIES,
    DeviceId,
    Ledger,
    Node,
    NoFit,
    Plan,
    Refused,
    Taken,
    Undecided,
    allocate,
    problem_of,
    read_demand,
)
from allot.allocation import search as search_module
from allot.api import Quantity

from . import problems
from .builders import (
    DRIVER,
    EVERYTHING,
    HERE,
    attribute,
    cards,
    chosen,
    claim,
    demanded,
    device,
    device_class,
    larger_than,
    partition,
    prefers,
    slice_of,
    stocked,
    wants,
)
from .builders import (
    given as answered,
)

MISSING = f'device.attributes["{DRIVER}"].missing == 1'


def held(*names: str) -> Ledger:
    ledger = Ledger()
    ledger.settle("somebody", [Taken(DeviceId(DRIVER, "pool", name)) for name in names])
    return ledger


# What fits


def test_takes_devices_in_the_order_of_publication():
    answer = answered(stocked(slice_of(device("b"), device("a"), device("c"))), claim(wants(count=2)))

    assert chosen(answer) == ["b", "a"]


def test_gives_the_large_device_back_when_only_the_large_request_can_use_it():
    """Published large first, so a greedy choice would strand the second request. SEARCH1, SEARCH5."""
    inventory = stocked(slice_of(device("large", gib=80), device("small", gib=10)))
    answer = answered(inventory, claim(wants("any"), wants("big", 1, larger_than(80))))

    assert chosen(answer) == ["small", "large"]


def test_an_earlier_claim_gives_way_to_a_later_one():
    inventory = stocked(slice_of(device("large", gib=80), device("small", gib=10)))
    answer = answered(
        inventory, claim(wants(), name="one"), claim(wants("r", 1, larger_than(80)), name="two")
    )

    assert chosen(answer) == ["small", "large"]


def test_what_the_ledger_holds_is_not_given_again():
    """SEARCH2."""
    inventory = stocked(slice_of(device("a"), device("b")))

    assert chosen(answered(inventory, claim(wants()), ledger=held("a"))) == ["b"]
    assert isinstance(answered(inventory, claim(wants()), ledger=held("a", "b")), NoFit)


def test_no_claims_and_empty_claims_fit_everywhere():
    assert chosen(answered(stocked())) == []
    assert chosen(answered(stocked(), claim())) == []


def test_all_devices_means_all_of_them():
    inventory = stocked(slice_of(device("a"), device("b")))

    assert chosen(answered(inventory, claim(wants(count=0)))) == ["a", "b"]
    assert isinstance(answered(inventory, claim(wants(count=0)), ledger=held("b")), NoFit)
    assert isinstance(answered(stocked(), claim(wants(count=0))), NoFit)


def test_an_alternative_that_a_constraint_rules_out_is_passed_over():
    """The large card is preferred, and sits on another root than the only network card."""
    inventory = stocked(
        slice_of(
            device("large", attributes={"kind": "large", "root": "0"}),
            device("small", attributes={"kind": "small", "root": "1"}),
            device("nic", attributes={"kind": "nic", "root": "1"}),
        )
    )
    card = prefers(
        "card", wants("best", 1, attribute("kind", "large")), wants("next", 1, attribute("kind", "small"))
    )
    asks = (card, wants("net", 1, attribute("kind", "nic")))
    together = [{"matchAttribute": f"{DRIVER}/root", "requests": ["card", "net"]}]
    assert chosen(answered(inventory, claim(*asks))) == ["large", "nic"]
    assert chosen(answered(inventory, claim(*asks, constraints=together))) == ["small", "nic"]


def test_the_first_alternative_that_leaves_room_for_the_rest_is_taken():
    """Two cards: asking for both at first would leave nothing for the second request."""
    inventory = stocked(slice_of(device("a"), device("b")))
    answer = answered(inventory, claim(prefers("flexible", wants("two", 2), wants("one")), wants("fixed")))

    assert isinstance(answer, Plan)
    assert [pick.alternative.name for pick in answer.picks] == ["flexible/one", "fixed"]


def test_an_admin_looks_at_devices_that_others_use():
    inventory = stocked(slice_of(device("a")))
    answer = answered(inventory, claim(wants(adminAccess=True)), ledger=held("a"))

    assert chosen(answer) == ["a"]


def test_within_a_pod_what_an_admin_looks_at_is_not_given_out_afterwards():
    """The other way round it works: order matters."""
    inventory = stocked(slice_of(device("a")))
    admin, user = claim(wants(adminAccess=True), name="admin"), claim(wants(), name="user")

    assert isinstance(answered(inventory, admin, user), NoFit)
    assert chosen(answered(inventory, user, admin)) == ["a", "a"]


def test_devices_of_a_match_have_a_value_in_common():
    devices = [device(f"d{n}", attributes={"root": f"pci-{n % 2}"}) for n in range(4)]
    answer = answered(
        stocked(slice_of(*devices)),
        claim(wants("x"), wants("y"), constraints=[{"matchAttribute": f"{DRIVER}/root"}]),
    )

    assert chosen(answer) == ["d0", "d2"]


def test_lists_match_in_what_all_of_them_share():
    devices = [
        device("a", attributes={"numa": [0, 1]}),
        device("b", attributes={"numa": [0]}),
        device("c", attributes={"numa": [1]}),
    ]
    match = [{"matchAttribute": f"{DRIVER}/numa"}]

    assert chosen(answered(stocked(slice_of(*devices)), claim(wants(count=2), constraints=match))) == [
        "a",
        "b",
    ]
    assert isinstance(answered(stocked(slice_of(*devices)), claim(wants(count=3), constraints=match)), NoFit)


def test_distinct_devices_have_no_value_in_common_and_need_one():
    devices = [
        device("a", attributes={"rack": "r1"}),
        device("b", attributes={"rack": "r1"}),
        device("c"),
        device("d", attributes={"rack": "r2"}),
    ]
    answer = answered(
        stocked(slice_of(*devices)),
        claim(wants(count=2), constraints=[{"distinctAttribute": f"{DRIVER}/rack"}]),
    )

    assert chosen(answer) == ["a", "d"]


def test_partitions_leave_each_other_what_they_draw():
    inventory = stocked(
        cards(8),
        slice_of(
            partition("whole", "card-0", 8),
            partition("half", "card-0", 4),
            partition("rest", "card-0", 4),
            slices=2,
        ),
    )

    assert chosen(answered(inventory, claim(wants(count=2)))) == ["half", "rest"]
    assert chosen(answered(inventory, claim(wants()), ledger=held("half"))) == ["rest"]


def test_a_driver_may_shrink_what_is_in_use_and_then_nothing_more_is_given():
    """D2: 8 GiB are drawn where 4 are left; other counters of the pool wait as well."""
    parts = [partition("old", "card-0", 8), partition("new", "card-1", 1)]
    inventory = stocked(cards(4, 4), slice_of(*parts, slices=2))

    assert isinstance(answered(inventory, claim(wants()), ledger=held("old")), NoFit)


def test_a_device_that_draws_less_than_nothing_makes_room_for_another():
    """Nobody validates counters. Odd, but it fits: the giver first, then both halves of a card for one."""
    halves = [partition(name, "card-0", 4, attributes={"half": 1}) for name in ("left", "right")]
    giver = device(
        "giver", consumesCounters=[{"counterSet": "card-0", "counters": {"memory": {"value": "-4Gi"}}}]
    )
    inventory = stocked(cards(4), slice_of(*halves, giver, slices=2))
    halves_after = [
        wants("giver", 1, f'!device.attributes["{DRIVER}"].?half.hasValue()'),
        *(wants(f"h{n}", 1, f'device.attributes["{DRIVER}"].?half.hasValue()') for n in range(2)),
    ]

    for policy in POLICIES.values():
        assert chosen(answered(inventory, claim(*halves_after), policy=policy)) == ["giver", "left", "right"]
    assert isinstance(answered(inventory, claim(*halves_after[1:])), NoFit)


def test_shares_of_a_device_are_given_until_it_is_full():
    shared = device("shared", gib=4, allowMultipleAllocations=True)
    ask = wants(capacity={"requests": {"memory": "2Gi"}})
    inventory = stocked(slice_of(shared))

    answer = answered(inventory, claim(ask, name="one"), claim(ask, name="two"))
    assert chosen(answer) == ["shared", "shared"]
    assert isinstance(answered(inventory, *(claim(ask, name=str(n)) for n in range(3))), NoFit)


def test_one_request_never_gets_two_shares_of_one_device():
    shared = device("shared", gib=4, allowMultipleAllocations=True)
    ask = wants(count=2, capacity={"requests": {"memory": "1Gi"}})

    for policy in POLICIES.values():
        assert isinstance(answered(stocked(slice_of(shared)), claim(ask), policy=policy), NoFit)


def test_shares_that_others_hold_count():
    ledger = Ledger()
    ledger.settle(
        "other", [Taken(DeviceId(DRIVER, "pool", "shared"), "s", {"memory": Quantity.parse("3Gi")})]
    )
    inventory = stocked(slice_of(device("shared", gib=4, allowMultipleAllocations=True)))

    assert isinstance(
        answered(inventory, claim(wants(capacity={"requests": {"memory": "2Gi"}})), ledger=ledger), NoFit
    )
    assert chosen(
        answered(inventory, claim(wants(capacity={"requests": {"memory": "1Gi"}})), ledger=ledger)
    ) == ["shared"]


def test_a_taint_keeps_away_who_does_not_tolerate_it():
    tainted = device("tainted", taints=[{"key": "broken", "value": "fan", "effect": "NoExecute"}])
    inventory = stocked(slice_of(tainted))

    assert isinstance(answered(inventory, claim(wants())), NoFit)
    assert isinstance(
        answered(inventory, claim(wants(tolerations=[{"key": "broken", "value": "gpu"}]))), NoFit
    )
    for toleration in ({"operator": "Exists"}, {"key": "broken", "value": "fan", "effect": "NoExecute"}):
        assert chosen(answered(inventory, claim(wants(tolerations=[toleration])))) == ["tainted"]


def test_a_node_must_be_able_to_skip_what_the_driver_skips():
    features = EVERYTHING.__class__.of(["OptionalNodeOperations"])
    inventory = stocked(slice_of(device("a"), skipNodeOperations=["*"]), features=features)
    able = Node("here", declared_features=frozenset({"DRAOptionalNodeOperations"}))

    assert isinstance(answered(inventory, claim(wants())), NoFit)
    assert chosen(answered(inventory, claim(wants()), node=able)) == ["a"]


# What is wrong rather than too much


@pytest.mark.parametrize("policy", POLICIES.values(), ids=POLICIES)
def test_an_error_that_publication_order_meets_first_is_fatal_under_every_policy(policy):
    """SEARCH6: the last device has no such attribute, but the first one will do."""
    fine = device("fine", gib=80, attributes={"missing": 1})
    inventory = stocked(slice_of(fine, device("bare", gib=1)))
    backwards = stocked(slice_of(device("bare", gib=1), fine))

    assert chosen(answered(inventory, claim(wants("r", 1, MISSING)), policy=policy)) == ["fine"]
    assert isinstance(answered(backwards, claim(wants("r", 1, MISSING)), policy=policy), Refused)


def test_backtracking_over_an_error_is_fatal_as_well():
    """`fine` is taken first and does not do; the next one tried is the one that fails."""
    fine = device("fine", attributes={"missing": 1})
    inventory = stocked(slice_of(fine, device("bare")))
    answer = answered(inventory, claim(wants("r", 1, MISSING), wants("impossible", 1, "false")))

    assert isinstance(answer, Refused)
    assert "no such key: missing" in answer.error


def test_a_constraint_that_keeps_all_devices_apart_is_an_error():
    devices = [device("a", attributes={"root": "x"}), device("b", attributes={"root": "y"})]
    answer = answered(
        stocked(slice_of(*devices)),
        claim(wants(count=0), constraints=[{"matchAttribute": f"{DRIVER}/root"}]),
    )

    assert isinstance(answer, Refused)


def test_asking_for_all_devices_needs_to_know_them_all():
    incomplete = slice_of(device("b"), name="s2", pool="p2", slices=2, driver="other.example.com")
    answer = answered(stocked(slice_of(device("a")), incomplete), claim(wants(count=0)))

    assert isinstance(answer, Refused)
    assert "currently being updated" in answer.error


def test_an_invalid_pool_is_an_error_only_where_nothing_else_fits():
    invalid = slice_of(device("twin"), device("twin"), name="s2", pool="p2")

    assert chosen(answered(stocked(slice_of(device("a")), invalid), claim(wants()))) == ["a"]
    answer = answered(stocked(slice_of(device("a")), invalid), claim(wants(count=2)))
    assert isinstance(answer, Refused)
    assert answer.node_only


@pytest.mark.parametrize(
    ("request_", "words"),
    [
        (wants(count=33), "exceeds the claim limit of 32"),
        (wants(deviceClassName="none"), "could not retrieve device class none"),
        (wants(allocationMode="Some"), "unsupported count mode Some"),
        (wants(selectors=[{}]), "selector #0: CEL expression empty"),
        (wants(capacity={"requests": {"memory": "lots"}}), "capacity memory: not a quantity"),
    ],
)
def test_a_claim_that_can_be_satisfied_nowhere_is_refused(request_, words):
    demand = read_demand([claim(request_)], {"any": device_class()}, EVERYTHING)
    answer = allocate(HERE, stocked(), Ledger(), demand)

    assert isinstance(answer, Refused)
    assert words in answer.error


@pytest.mark.parametrize(
    ("request_", "words"),
    [
        (wants(adminAccess=True), "admin access is requested"),
        (prefers("r", wants("a")), "DRAPrioritizedList feature is disabled"),
        (wants(capacity={"requests": {}}), "DRAConsumableCapacity feature is disabled"),
        (
            wants(derivedAttributes=[{"name": "a/b", "expression": "1"}]),
            "DRADerivedAttributes feature is disabled",
        ),
    ],
)
def test_what_needs_a_gate_is_refused_without_it(request_, words):
    features = type(EVERYTHING)()
    demand = read_demand([claim(request_)], {"any": device_class()}, features)

    assert isinstance(demand, Refused)
    assert words in demand.error


# What would take for ever


def test_one_more_than_there_are_is_known_at_once():
    inventory = stocked(slice_of(*(device(f"d{n}") for n in range(20))))
    answer = answered(inventory, claim(wants(count=21)))

    assert isinstance(answer, NoFit)
    assert answer.steps < 300


def test_more_than_there_are_is_more_for_an_admin_too():
    """Twenty of twelve that are all different took for ever: nobody counted what an admin looks at."""
    devices = [device(f"d{n}", attributes={"number": n}, gib=n) for n in range(12)]
    answer = answered(
        stocked(slice_of(*devices)),
        claim(wants("one", adminAccess=True), wants("many", 20, adminAccess=True)),
    )

    assert isinstance(answer, NoFit)
    assert answer.steps < 100


def test_an_admins_requests_are_matched_like_anybodys():
    devices = [device(f"d{n}", attributes={"number": n}) for n in range(16)]
    each = [
        wants(f"r{n}", 1, f'device.attributes["{DRIVER}"].number != {n}', adminAccess=True) for n in range(17)
    ]
    answer = answered(stocked(slice_of(*devices)), claim(*each))

    assert isinstance(answer, NoFit)
    assert answer.steps < 1000


def test_requests_that_all_differ_are_counted_too():
    """33 selectors, no two the same, over 32 devices: nothing is alike but the number."""
    devices = [device(f"d{n}", attributes={"number": n}) for n in range(32)]
    each = [wants(f"r{n}", 1, f'device.attributes["{DRIVER}"].number != {n}') for n in range(17)]
    answer = answered(stocked(slice_of(*devices)), claim(*each, name="one"), claim(*each[:16], name="two"))

    assert isinstance(answer, NoFit)
    assert answer.steps < 1000


def test_the_only_solution_is_found_where_every_first_choice_is_wrong():
    """Request n can use devices 0 to 31-n: the last one decides, backwards to the first."""
    devices = [device(f"d{n}", attributes={"number": n}) for n in range(32)]
    each = [wants(f"r{n}", 1, f'device.attributes["{DRIVER}"].number <= {31 - n}') for n in range(32)]

    for policy in POLICIES.values():
        answer = answered(stocked(slice_of(*devices)), claim(*each), policy=policy)
        assert chosen(answer) == [f"d{31 - n}" for n in range(32)]


def test_cards_that_have_been_broken_in_different_ways_are_all_the_same_to_who_needs_whole_ones():
    """Nine small partitions break two of eight cards, however they are placed."""
    parts = [
        partition(f"c{card}-p{place}", f"card-{card}", 1, attributes={"place": place})
        for card in range(8)
        for place in range(8)
    ]
    whole = [partition(f"c{card}-whole", f"card-{card}", 8) for card in range(8)]
    inventory = stocked(cards(*[8] * 8), slice_of(*parts, *whole, slices=2))
    small = [
        wants(f"s{n}", 1, 'device.capacity["gpu.example.com"].memory.compareTo(quantity("1Gi")) == 0')
        for n in range(9)
    ]

    answer = answered(inventory, claim(*small, wants("whole", 7, larger_than(8))))
    assert isinstance(answer, NoFit)
    answer = answered(inventory, claim(*small, wants("whole", 6, larger_than(8))))
    assert isinstance(answer, Plan)


def test_a_spent_budget_is_no_answer():
    """D5."""
    inventory = stocked(slice_of(device("a"), device("b", gib=80)))
    demand = demanded(
        claim(wants("any"), wants("big", 1, 'device.capacity["gpu.example.com"].?memory.hasValue()'))
    )
    answer = allocate(HERE, inventory, Ledger(), demand, FIRST_FIT, budget=1)

    assert isinstance(answer, Undecided)


# Properties


def verdict(problem, policy, easy_failures):
    search_module.EASY_FAILURES = easy_failures
    read = problem_of(problem)
    demand = read_demand(read.claims, read.classes, read.features)
    answer = allocate(read.node, read.inventory(), read.ledger(), demand, policy)
    picks = [(p.alternative.name, p.device.id) for p in answer.picks] if isinstance(answer, Plan) else None
    return type(answer).__name__, picks


@given(st.integers(0, 10**9))
@settings(max_examples=150, deadline=None)
def test_counting_changes_nothing_but_the_time(seed):
    """The same answer, and the same plan, with counting from the first failure on and without it."""
    problem = problems.problem(random.Random(seed))
    before = search_module.EASY_FAILURES
    try:
        counted, uncounted = (verdict(problem, FIRST_FIT, easy) for easy in (0, 10**9))
    finally:
        search_module.EASY_FAILURES = before
    assume(uncounted[0] != "Undecided")

    assert counted == uncounted


def test_attribute_words_are_compared_with_their_type():
    """`"1"` is not `1`, and a version is not a string."""
    devices = [device("int", attributes={"x": 1}), device("text", attributes={"x": "1"})]
    match = claim(wants(count=2), constraints=[{"matchAttribute": f"{DRIVER}/x"}])

    assert isinstance(answered(stocked(slice_of(*devices)), match), NoFit)
    assert chosen(answered(stocked(slice_of(*devices)), claim(wants("r", 1, attribute("x", "1"))))) == [
        "text"
    ]
