"""The contract, held by every model of ours; and what each of them says."""

import json

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from allot.numeric import BadData, Found, Lacking, Undecided, Want, fit, offer_of
from allot.numeric.models import COUNTER, PARTITION, TOPOLOGY
from numeric import oracle
from numeric.objects import DRIVER, MODELS, NANO, capacities, counter, instance, parameters, shelves, want

COUNT = "counter.dra.config.k8s.io/count"


def chosen(answer):
    assert isinstance(answer, Found), answer
    return answer.choices


# Every model


@pytest.mark.parametrize("model", MODELS, ids=lambda one: one.name)
@given(data=st.data())
def test_what_fits_is_found_and_takes_what_is_free(model, data):
    """4381-MOD-15, 4381-BCT-08, 4381-BCT-18, FIT1, FIT2: one claim and several together, against every way
    there is."""
    written = data.draw(st.lists(capacities(model), max_size=2))
    offers = []
    for number, one in enumerate(written):
        made = instance(model, one, f"i{number}")
        used = {name: data.draw(st.integers(0, amount + 1)) * NANO for name, amount in made.amounts.items()}
        offers.append(offer_of(made, {name: amount for name, amount in used.items() if amount}))
    asked = data.draw(st.lists(parameters(model), min_size=1, max_size=3))
    wants = [Want(DRIVER, model, model.parameters(one), json.dumps(one, sort_keys=True)) for one in asked]
    answer = fit(wants, {DRIVER: offers})
    expected = oracle.fits(
        model.name, asked, [(one, offer.free) for one, offer in zip(written, offers, strict=True)]
    )
    assert not isinstance(answer, Undecided)
    assert isinstance(answer, Found) == expected
    if isinstance(answer, Found):
        left = {one.instance.id: dict(one.free) for one in offers}
        for choice in answer.choices:
            for name, amount in choice.takes.items():
                left[choice.instance.id][name] -= amount
        assert all(amount >= 0 for free in left.values() for amount in free.values())


@pytest.mark.parametrize("model", MODELS, ids=lambda one: one.name)
@given(data=st.data())
def test_one_claim_is_served_by_one_instance_or_is_told_why_not(model, data):
    """4381-CNT-05, 4381-BCT-08."""
    asked = data.draw(parameters(model))
    answer = fit([want(model, **asked)], {DRIVER: data.draw(shelves(model))})
    if isinstance(answer, Found):
        assert len(answer.choices) == 1
        told = model.allocation(answer.choices[0])
        assert told["instance"] == answer.choices[0].instance.id
        assert model.taken(told) == answer.choices[0].takes, "MODEL4"
        assert json.loads(json.dumps(told)) == told  # 4381-MOD-02
    else:
        assert isinstance(answer, Lacking)
        assert answer.reason
        assert answer.text


@pytest.mark.parametrize("model", MODELS, ids=lambda one: one.name)
@given(data=st.data())
def test_types_survive_json(model, data):
    """4381-MOD-01, 4381-MOD-02."""
    for read, written in (
        (model.capacity, data.draw(capacities(model))),
        (model.parameters, data.draw(parameters(model))),
    ):
        value = read({"metadata": {"labels": {"a": "b"}, "name": "n"}, **written})
        again = read(json.loads(msgspec.json.encode(value)))
        assert again == value
    assert model.types.of(model.types.capacity)
    assert {model.types.capacity, model.types.parameters, model.types.allocation} == {
        "Capacity", "Parameters", "Allocation",
    }  # fmt: skip


@pytest.mark.parametrize("model", MODELS, ids=lambda one: one.name)
@given(data=st.data())
def test_more_taken_than_there_is_blocks_the_instance_and_breaks_nothing(model, data):
    """4381-MOD-09, 4381-BCT-17."""
    one = instance(model, data.draw(capacities(model)))
    offer = offer_of(one, {name: (amount + 5) * NANO for name, amount in one.amounts.items()})
    assert all(free == 0 for free in offer.free.values())
    answer = fit([want(model, **data.draw(parameters(model)))], {DRIVER: [offer]})
    if isinstance(answer, Found):  # of nothing, there is always enough
        assert sum(answer.choices[0].takes.values()) == 0


@pytest.mark.parametrize("model", MODELS, ids=lambda one: one.name)
def test_what_is_not_known_is_tolerated_in_capacity_and_refused_in_parameters(model):
    """4381-MOD-12."""
    capacity = {"counter": {"count": 1}, "partition": {"slots": 1}, "topology": {"zones": {"a": 1}}}
    asked = {"counter": {}, "partition": {"profile": "p"}, "topology": {}}
    model.capacity({**capacity[model.name], "newer": {"than": "this"}})
    with pytest.raises(BadData, match="newer"):
        model.parameters({**asked[model.name], "newer": 1})


def test_an_instance_that_became_another_models_offers_nothing():
    """4381-BCT-20: what is taken of it has no name in the new model."""
    one = instance(TOPOLOGY, {"zones": {"a": 8}})
    assert offer_of(one, {COUNT: NANO}).free == {"topology.dra.config.k8s.io/a": 0}
    assert offer_of(one, {}, is_whole=True).free == {"topology.dra.config.k8s.io/a": 0}
    assert offer_of(one, {"topology.dra.config.k8s.io/gone": NANO}).free == {
        "topology.dra.config.k8s.io/a": 8
    }


def test_claims_of_one_pod_do_not_count_on_the_same_unit():
    """4381-BCT-18: the first claim leaves the place to the second, which can go nowhere else."""
    shelf = [counter(2, "plain"), counter(2, "gold", kind="gold")]
    picky = want(COUNTER, required=2, selector={"matchLabels": {"kind": "gold"}})
    easy = want(COUNTER, required=2)
    both = chosen(fit([easy, picky], {DRIVER: shelf}))
    assert [one.instance.id for one in both] == ["plain", "gold"]
    assert isinstance(fit([picky, picky], {DRIVER: shelf}), Lacking)
    together = fit([easy, easy, easy], {DRIVER: shelf})
    assert isinstance(together, Lacking)
    assert "together" in together.text


def test_models_of_several_drivers_serve_one_pod():
    """4381-BCT-19, 4381-GEN-10, 4381-GEN-06."""
    other = want(PARTITION, profile="half")._replace(driver="other.example.com")
    halves = instance(PARTITION, {"slots": 2, "profiles": {"half": {"slots": 1}}}, "p")
    offers = {DRIVER: [counter(1)], "other.example.com": [offer_of(halves, {})]}
    both = chosen(fit([want(COUNTER, required=1), other, other], offers))
    assert [one.instance.id for one in both] == ["i0", "p", "p"]
    assert isinstance(fit([want(COUNTER, required=1), other, other, other], offers), Lacking)
    nowhere = fit([want(COUNTER, required=1)], {"other.example.com": offers["other.example.com"]})
    assert isinstance(nowhere, Lacking)
    assert DRIVER in nowhere.text


def test_a_search_that_takes_too_long_says_so():
    shelf = [counter(2, f"i{number}") for number in range(40)]
    wants = [want(COUNTER, required=1 + number % 2) for number in range(30)]
    assert isinstance(fit(wants, {DRIVER: shelf}, budget=3), Undecided)


def test_equal_claims_that_do_not_fit_are_decided_quickly():
    shelf = [counter(3, f"i{number}") for number in range(6)]
    wants = [want(COUNTER, required=2)] * 7
    assert isinstance(fit(wants, {DRIVER: shelf}), Lacking)


# counter


@pytest.mark.parametrize("spelled", [{"required": 3}, {"Required": 3}])
def test_both_printed_spellings_are_read(spelled):
    """4381-TPL-05 (its spelling)."""
    assert COUNTER.parameters(spelled).required == 3
    assert COUNTER.capacity({"Count": 7}).count == COUNTER.capacity({"count": 7}).count == 7
    asked = COUNTER.parameters({"Selector": {"matchLabels": {"a": "b"}}})
    assert asked.selects({"a": "b"})
    assert not asked.selects({})
    with pytest.raises(BadData, match="twice"):
        COUNTER.parameters({"required": 1, "Required": 1})


@pytest.mark.parametrize(
    ("data", "field"),
    [
        ({"count": -1}, "count"),
        ({"count": "8"}, "count"),
        ({"count": 2**63}, "count"),
        ({"count": True}, "count"),
        ({"count": 1, "metadata": {"labels": {"a": 1}}}, "labels"),
        ({"count": 1, "metadata": []}, "metadata"),
    ],
)
def test_a_counter_that_makes_no_sense_is_unreadable(data, field):
    """4381-CNT-07."""
    with pytest.raises(BadData, match=field):
        COUNTER.capacity(data)


@pytest.mark.parametrize(
    ("data", "field"),
    [
        ({"required": -1}, "required"),
        ({"required": 1.5}, "required"),
        ({"requierd": 1}, "requierd"),
        ({"selector": {"matchExpressions": [{"key": "a", "operator": "Gt", "values": ["1"]}]}}, "Gt"),
        ({"selector": {"matchExpressions": [{"key": "a", "operator": "In"}]}}, "values"),
        ({"selector": {"matchExpressions": [{"key": "a", "operator": "Exists", "values": ["1"]}]}}, "values"),
    ],
)
def test_parameters_that_make_no_sense_are_refused(data, field):
    """4381-CNT-06, 4381-ERR-08."""
    with pytest.raises(BadData, match=field):
        COUNTER.parameters(data)


@pytest.mark.parametrize(
    "selector",
    [
        {"matchLabel": {"a": "x"}},
        {"matchExpressions": [{"key": "a", "operator": "In", "values": ["x"], "value": "y"}]},
    ],
)
def test_a_typing_mistake_in_a_selector_does_not_select_everything(selector):
    """What is not known in parameters is an error, however deep it lies."""
    for model, asked in ((COUNTER, {"required": 1}), (PARTITION, {"profile": "one"}), (TOPOLOGY, {})):
        with pytest.raises(BadData, match="is none of"):
            model.parameters({**asked, "selector": selector})


def test_a_claim_fits_where_enough_is_free():
    """4381-CNT-01, 4381-CNT-04, 4381-CNT-08."""
    assert chosen(fit([want(COUNTER, required=3)], {DRIVER: [counter(8, used=5)]}))[0].takes == {COUNT: 3}
    assert isinstance(fit([want(COUNTER, required=4)], {DRIVER: [counter(8, used=5)]}), Lacking)
    assert isinstance(fit([want(COUNTER, required=1)], {DRIVER: [counter(4, used=5)]}), Lacking)


def test_the_selector_looks_at_the_labels_of_the_instance():
    """4381-CNT-02, 4381-CNT-03, 4381-MOD-05."""
    shelf = [counter(8, "plain"), counter(8, "gold", kind="gold")]
    for selector, ids in (
        ({"matchLabels": {"kind": "gold"}}, {"gold"}),
        ({"matchExpressions": [{"key": "kind", "operator": "In", "values": ["gold", "x"]}]}, {"gold"}),
        ({"matchExpressions": [{"key": "kind", "operator": "NotIn", "values": ["gold"]}]}, {"plain"}),
        ({"matchExpressions": [{"key": "kind", "operator": "Exists"}]}, {"gold"}),
        ({"matchExpressions": [{"key": "kind", "operator": "DoesNotExist"}]}, {"plain"}),
        ({}, {"plain", "gold"}),
    ):
        found = COUNTER.choices(COUNTER.parameters({"required": 1, "selector": selector}), shelf)
        assert {one.instance.id for one in found} == ids
    none = fit([want(COUNTER, required=1, selector={"matchLabels": {"kind": "silver"}})], {DRIVER: shelf})
    assert isinstance(none, Lacking)
    assert "kind=silver" in none.text
    assert none.by == float("inf")


def test_counts_of_several_instances_are_not_added_up():
    """4381-CNT-05."""
    answer = fit([want(COUNTER, required=3)], {DRIVER: [counter(2, "a"), counter(2, "b")]})
    assert isinstance(answer, Lacking)
    assert answer.text == "needs 3 free of a counter; a has 2"
    assert answer.by == 1


def test_nothing_required_needs_an_instance_and_takes_nothing():
    """4381-CNT-06."""
    assert chosen(fit([want(COUNTER)], {DRIVER: [counter(0)]}))[0].takes == {COUNT: 0}
    assert isinstance(fit([want(COUNTER)], {DRIVER: []}), Lacking)


def test_large_numbers_are_exact():
    """4381-CNT-11."""
    most = 2**63 - 1
    assert chosen(fit([want(COUNTER, required=most)], {DRIVER: [counter(most)]}))[0].takes == {COUNT: most}
    assert isinstance(fit([want(COUNTER, required=most)], {DRIVER: [counter(most, used=1)]}), Lacking)
    one_less = want(COUNTER, required=most - 1)
    assert chosen(fit([one_less], {DRIVER: [counter(most, used=1)]}))[0].takes == {COUNT: most - 1}


def test_the_allocation_names_the_instance_and_the_number():
    """4381-CNT-12, 4381-MOD-13."""
    (choice,) = chosen(fit([want(COUNTER, required=3)], {DRIVER: [counter(8, "c0")]}))
    assert COUNTER.allocation(choice) == {"instance": "c0", "count": 3}


def test_the_tightest_counter_is_taken():
    shelf = [counter(8, "large"), counter(3, "small")]
    assert chosen(fit([want(COUNTER, required=2)], {DRIVER: shelf}))[0].instance.id == "small"


# partition, topology


def test_partitions_are_laid_where_least_is_lost():
    data = {"slots": 8, "profiles": {"half": {"slots": 4, "starts": [0, 4]}, "one": {"slots": 1}}}
    one = instance(PARTITION, data)
    (first,) = chosen(fit([want(PARTITION, profile="one")], {DRIVER: [offer_of(one, {})]}))
    taken = dict.fromkeys(first.takes, NANO)
    (second,) = chosen(fit([want(PARTITION, profile="one")], {DRIVER: [offer_of(one, taken)]}))
    both = {**taken, **dict.fromkeys(second.takes, NANO)}
    answer = fit([want(PARTITION, profile="half")], {DRIVER: [offer_of(one, both)]})
    assert PARTITION.allocation(chosen(answer)[0])["slots"] == 4
    nowhere = fit([want(PARTITION, profile="third")], {DRIVER: [offer_of(one, {})]})
    assert isinstance(nowhere, Lacking)


@pytest.mark.parametrize(
    "data",
    [
        {"slots": 0},
        {"slots": 65},
        {"slots": 4, "profiles": {"p": {"slots": 5}}},
        {"slots": 4, "profiles": {"p": {"slots": 2, "starts": [3]}}},
    ],
)
def test_a_partition_that_makes_no_sense_is_unreadable(data):
    with pytest.raises(BadData):
        PARTITION.capacity(data)


def test_a_claim_stays_in_one_zone_if_it_must():
    one = offer_of(instance(TOPOLOGY, {"zones": {"numa0": 4, "numa1": 3}}), {})
    single = chosen(fit([want(TOPOLOGY, required=3, alignment="SingleZone")], {DRIVER: [one]}))[0]
    assert TOPOLOGY.allocation(single) == {"instance": "i0", "zones": {"numa1": 3}}
    assert isinstance(fit([want(TOPOLOGY, required=5, alignment="SingleZone")], {DRIVER: [one]}), Lacking)
    spread = chosen(fit([want(TOPOLOGY, required=5)], {DRIVER: [one]}))[0]
    assert TOPOLOGY.allocation(spread)["zones"] == {"numa0": 4, "numa1": 1}
    with pytest.raises(BadData):
        TOPOLOGY.capacity({"zones": {}})
    with pytest.raises(BadData):
        TOPOLOGY.capacity({"zones": {"a/b": 1}})
