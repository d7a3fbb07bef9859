"""The hold record: HOLD1 to HOLD4, with stories first and the whole as a property."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from allot.api import meta, resource
from allot.api.resource import holds
from allot.api.resource import stock as offers
from api.resource.objects import allocation, device, result, slice_

SHARES = [f"{i:08d}-0000-0000-0000-000000000000" for i in range(4)]


def results(*listed):
    (found,) = holds.held_by({"status": {"allocation": allocation(*listed)}}).values()
    return found


def stock(*slices):
    return offers.read(meta.view(offers.OfferedSlice, one) for one in slices)


EMPTY = holds.Record()


def why_not(record, claim, wanted, pool=offers.EMPTY):
    held = holds.hold(record, claim, wanted, pool)
    return held.text if isinstance(held, holds.Refusal) else None


def hold(record, claim, wanted, pool=offers.EMPTY):
    held = holds.hold(record, claim, wanted, pool)
    assert isinstance(held, holds.Record), held
    return held


def test_a_device_goes_to_one_claim():
    record = hold(EMPTY, "first", results(result("a")))
    assert "held by another claim" in why_not(record, "second", results(result("a")))
    assert why_not(record, "second", results(result("b"))) is None
    assert why_not(record, "first", results(result("a"))) is None


def test_a_claim_frees_what_it_held_and_nothing_else():
    record = hold(EMPTY, "first", results(result("a"), result("b")))
    record = hold(record, "second", results(result("c")))
    freed = holds.release(record, "first")
    assert set(freed.devices) == {"c"}
    assert holds.release(freed, "second") == EMPTY


def test_admin_access_holds_nothing():
    """HOLD4."""
    claim = {"status": {"allocation": allocation(result("a", adminAccess=True))}}
    assert holds.held_by(claim) == {}


def test_a_claim_without_an_allocation_holds_nothing():
    assert holds.held_by(None) == {}
    assert holds.held_by({"spec": {}}) == {}
    assert holds.held_by({"status": {"allocation": {}}}) == {}


def test_holds_are_kept_by_pool():
    claim = {"status": {"allocation": allocation(result("a"), result("a", pool="q"), result("b"))}}
    assert {pool: [one.device for one in held] for pool, held in holds.held_by(claim).items()} == {
        ("d.example.com", "p"): ["a", "b"],
        ("d.example.com", "q"): ["a"],
    }


SHARED = stock(slice_(device("a", allowMultipleAllocations=True)))


def share(number, **consumed):
    more = {"consumedCapacity": consumed} if consumed else {}
    return results(result("a", shareID=SHARES[number], **more))


def test_shares_live_beside_shares_but_not_beside_an_owner():
    """HOLD1."""
    shared = hold(EMPTY, "first", share(0), SHARED)
    assert why_not(shared, "second", share(1), SHARED) is None
    assert "share" in why_not(shared, "second", share(0), SHARED)
    assert why_not(shared, "second", results(result("a")), SHARED) is not None
    owned = hold(EMPTY, "first", results(result("a")), SHARED)
    assert "does not share it" in why_not(owned, "second", share(1), SHARED)


@pytest.mark.parametrize("pool", [stock(slice_(device("a"))), stock(slice_(device("b"))), offers.EMPTY])
def test_a_device_whose_slice_allows_one_allocation_has_one_share(pool):
    """HOLD1: a share id is easily made up. Without a slice nobody has said that it may be shared."""
    record = hold(EMPTY, "first", share(0), pool)
    assert "no slice allows several allocations" in why_not(record, "second", share(1), pool)
    assert "this claim already" in why_not(EMPTY, "first", [*share(0), *share(1)], pool)


def test_a_claim_holds_a_device_once():
    both = [*share(0), *share(1)]
    assert why_not(EMPTY, "first", both, SHARED) is None
    assert why_not(EMPTY, "first", [*share(0), *share(0)], SHARED) is not None
    assert why_not(EMPTY, "first", [*share(0), *results(result("a"))], SHARED) is not None
    assert why_not(EMPTY, "first", [*results(result("a")), *share(0)], SHARED) is not None
    assert why_not(EMPTY, "first", results(result("b"), result("b"))) is not None


def sized(amount, *, name="memory", **pool):
    one = device("a", capacity={name: {"value": amount}}, allowMultipleAllocations=True)
    return stock(slice_(one, pool={"name": "p", "generation": 1, "resourceSliceCount": 1, **pool}))


def test_shares_do_not_add_up_to_more_than_the_device_has():
    """HOLD2. Two schedulers may each find room for 6Gi; the second is told that there is none."""
    pool = sized("10Gi")
    record = hold(EMPTY, "first", share(0, memory="6Gi"), pool)
    assert "12Gi of memory" in why_not(record, "second", share(1, memory="6Gi"), pool)
    assert why_not(record, "second", share(1, memory="4Gi"), pool) is None
    assert "11Gi of memory" in why_not(EMPTY, "first", share(0, memory="11Gi"), pool)
    assert why_not(EMPTY, "first", [*share(0, memory="6Gi"), *share(1, memory="6Gi")], pool) is not None


@pytest.mark.parametrize("published", ["memory", "d.example.com/memory"])
@pytest.mark.parametrize("named", ["memory", "d.example.com/memory"])
def test_the_domain_of_the_driver_may_be_left_out(published, named):
    """HOLD2, whichever way either side writes it."""
    pool = sized("10Gi", name=published)
    record = hold(EMPTY, "first", share(0, memory="6Gi"), pool)
    assert "12Gi" in why_not(record, "second", share(1, **{named: "6Gi"}), pool)
    assert why_not(record, "second", share(1, **{named: "4Gi"}), pool) is None
    both = {"memory": "3Gi", "d.example.com/memory": "3Gi"}
    assert "12Gi" in why_not(record, "second", share(1, **both), pool)
    assert "no capacity" in why_not(record, "second", share(1, **{"other.com/memory": "1"}), pool)


def test_two_capacities_that_differ_in_the_domain_alone_are_two():
    """Capacity names are matched letter by letter where both are there."""
    capacity = {"memory": {"value": "10"}, "d.example.com/memory": {"value": "5"}}
    pool = stock(slice_(device("a", capacity=capacity, allowMultipleAllocations=True)))
    all_of_it = {"memory": "10", "d.example.com/memory": "5"}
    assert why_not(EMPTY, "first", share(0, **all_of_it), pool) is None
    assert why_not(EMPTY, "first", share(0, **{**all_of_it, "d.example.com/memory": "6"}), pool) is not None


def test_a_share_says_how_much_it_consumes():
    """Counted as nothing it would leave room that is taken; the allocator always says."""
    pool = sized("10Gi")
    assert "does not say how much it consumes of memory" in why_not(EMPTY, "first", share(0), pool)
    assert why_not(EMPTY, "first", share(0, memory="0"), pool) is None
    assert why_not(EMPTY, "first", results(result("a")), pool) is None  # all of it


def test_nobody_gives_back_by_consuming_less_than_nothing():
    """Validation refuses it today; older records may have it."""
    record = hold(EMPTY, "first", share(0, memory="-90Gi"), sized("10Gi"))
    assert why_not(record, "second", share(1, memory="11Gi"), sized("10Gi")) is not None


@pytest.mark.parametrize(
    "later, fits, too_much",
    [
        (sized("20Gi", generation=2), "14Gi", "15Gi"),
        (sized("8Gi", generation=2), "2Gi", "3Gi"),
        (sized("1Gi", generation=2), None, "1"),
        (stock(slice_(device("b"))), "4Gi", "5Gi"),
        (offers.EMPTY, "4Gi", "5Gi"),
    ],
    ids=["grown", "shrunk", "less than is in use", "device gone", "no slices"],
)
def test_what_a_device_has_is_what_its_slice_says_and_else_what_it_said(later, fits, too_much):
    """HOLD5."""
    record = hold(EMPTY, "first", share(0, memory="6Gi"), sized("10Gi"))
    record = holds.read(holds.write(record))
    assert why_not(record, "second", share(1, memory=too_much), later) is not None
    if fits:
        assert why_not(record, "second", share(1, memory=fits), later) is None


def drawing(name, amount):
    return device(name, consumesCounters=[{"counterSet": "gpu", "counters": {"memory": {"value": amount}}}])


COUNTED = stock(
    slice_(drawing("whole", "40Gi"), drawing("half-0", "20Gi"), drawing("half-1", "20Gi")),
    slice_(devices=None, sharedCounters=[{"name": "gpu", "counters": {"memory": {"value": "40Gi"}}}]),
)


def test_partitions_do_not_draw_more_than_their_counters_have():
    """HOLD2: the whole device and one half of it are different devices, and still overlap."""
    record = hold(EMPTY, "first", results(result("half-0")), COUNTED)
    assert why_not(record, "second", results(result("half-1")), COUNTED) is None
    assert "60Gi of counter gpu/memory" in why_not(record, "second", results(result("whole")), COUNTED)


def grouped(name, *groups):
    draws = {"counterSet": "gpu", "counters": {"memory": {"value": "1"}}}
    return device(
        name, consumesCounters=[{**draws, "compatibilityGroups": list(groups)} if groups else draws]
    )


def test_partitions_of_different_groups_do_not_meet():
    """HOLD2, KEP-5963: devices without a group go together, and with no other."""
    pool = stock(
        slice_(grouped("a", "mig"), grouped("b", "mig", "both"), grouped("c", "mps", "both"), grouped("d")),
        slice_(devices=None, sharedCounters=[{"name": "gpu", "counters": {"memory": {"value": "9"}}}]),
    )
    held = hold(EMPTY, "first", results(result("b")), pool)

    def meets(*names):
        return why_not(held, "second", results(*(result(name) for name in names)), pool) is None

    assert [meets("a"), meets("c"), meets("d"), meets("a", "c")] == [True, True, False, False]


def counted(*devices, total="40Gi", generation=1):
    pool = {"name": "p", "generation": generation, "resourceSliceCount": 2}
    sets = [{"name": "gpu", "counters": {"memory": {"value": total}}}] if total else None
    return stock(
        *([slice_(*devices, pool=pool)] if devices else []),
        *([slice_(devices=None, sharedCounters=sets, pool=pool)] if sets else []),
    )


HALVES = (drawing("half-0", "20Gi"), drawing("half-1", "20Gi"))


def test_groups_are_of_one_counter_set():
    """A device may draw from two sets and have a group in one of them alone."""
    one = {"counterSet": "gpu", "counters": {"memory": {"value": "1"}}, "compatibilityGroups": ["mig"]}
    two = {"counterSet": "links", "counters": {"memory": {"value": "1"}}}
    sets = [{"name": name, "counters": {"memory": {"value": "9"}}} for name in ("gpu", "links")]
    pool = stock(
        slice_(
            *(device(name, consumesCounters=[one, two]) for name in "ab"), device("c", consumesCounters=[two])
        ),
        slice_(devices=None, sharedCounters=sets),
    )
    assert why_not(EMPTY, "first", results(*map(result, "abc")), pool) is None


def test_one_claim_alone_takes_no_more_than_there_is():
    """HOLD2, D2: also what nobody else wants. What is held stays held."""
    shrunk = counted(drawing("whole", "40Gi"), total="1Gi")
    assert "40Gi of counter gpu/memory" in why_not(EMPTY, "first", results(result("whole")), shrunk)
    held = hold(EMPTY, "first", results(result("half-0")), COUNTED)
    assert why_not(held, "first", results(result("half-0"), result("whole")), COUNTED) is not None


@pytest.mark.parametrize(
    "later",
    [
        counted(drawing("whole", "40Gi"), *HALVES, total=None, generation=2),
        counted(device("half-0"), drawing("whole", "40Gi"), generation=2),
        counted(device("half-0"), drawing("whole", "40Gi"), total=None, generation=2),
        counted(drawing("half-0", "1Gi"), drawing("whole", "40Gi"), generation=2),
        counted(drawing("whole", "40Gi"), generation=2),
        counted(total="40Gi", generation=2),
        counted(device("other"), total=None, generation=2),
        offers.EMPTY,
    ],
    ids=[
        "without the counter set",
        "the held device draws nothing now",
        "neither",
        "the held device draws less now",
        "the held device is gone",
        "all devices are gone",
        "other devices",
        "no slices",
    ],
)
def test_what_a_held_device_draws_is_not_forgotten(later):
    """HOLD5: as long as half of the counters are drawn, the whole is not there, whatever the slices say."""
    record = hold(EMPTY, "first", results(result("half-0")), COUNTED)
    record = holds.read(holds.write(record))
    assert why_not(record, "second", results(result("whole")), later) is not None
    freed = holds.release(record, "first")
    assert freed == EMPTY


def test_a_held_device_draws_what_its_slice_says_now_if_that_is_more():
    record = hold(EMPTY, "first", results(result("half-0")), COUNTED)
    later = counted(drawing("half-0", "30Gi"), drawing("half-1", "20Gi"), drawing("rest", "10Gi"))
    assert "50Gi" in why_not(record, "second", results(result("half-1")), later)
    assert why_not(record, "second", results(result("rest")), later) is None


def test_counters_that_grow_are_used():
    record = hold(EMPTY, "first", results(result("half-0")), COUNTED)
    later = counted(drawing("whole", "40Gi"), *HALVES, total="60Gi", generation=2)
    assert why_not(record, "second", results(result("whole")), later) is None


def test_who_draws_nothing_more_is_not_stopped_by_counters_that_shrank():
    """A further share of a device that is in use draws nothing."""
    many = [{**one, "allowMultipleAllocations": True} for one in HALVES]
    record = hold(EMPTY, "first", results(result("half-0", shareID=SHARES[0])), counted(*many))
    shrunk = counted(*many, device("plain"), drawing("zero", "0"), total="10Gi", generation=2)
    for wanted in (result("half-0", shareID=SHARES[1]), result("plain"), result("zero")):
        assert why_not(record, "second", results(wanted), shrunk) is None
    assert why_not(record, "second", results(result("half-1", shareID=SHARES[1])), shrunk) is not None


def test_a_device_that_no_slice_has_and_devices_that_draw_are_not_held_together():
    """It might be the whole of which they are parts."""
    record = hold(EMPTY, "first", results(result("whole")))
    record = holds.read(holds.write(record))
    only_halves = counted(*HALVES)
    assert "whole draws is not known" in why_not(record, "second", results(result("half-0")), only_halves)
    assert why_not(record, "second", results(result("other"))) is None
    assert why_not(record, "second", results(result("half-0")), COUNTED) is not None  # now it is known
    for pool in (only_halves, counted(*HALVES, total=None), counted()):
        assert "no slice has device" in why_not(EMPTY, "first", results(result("whole")), pool)


def test_a_draw_from_counters_that_no_slice_has_is_refused():
    pool = counted(drawing("whole", "40Gi"), total=None)
    assert "which no slice of its pool has" in why_not(EMPTY, "first", results(result("whole")), pool)


def test_a_device_draws_once_however_many_share_it():
    pool = counted(*({**one, "allowMultipleAllocations": True} for one in HALVES))
    record = hold(EMPTY, "first", results(result("half-0", shareID=SHARES[0])), pool)
    record = hold(record, "second", results(result("half-0", shareID=SHARES[1])), pool)
    assert why_not(record, "third", results(result("half-1")), pool) is None


def test_of_each_device_and_counter_set_the_newest_slice_counts():
    """A new generation arrives in pieces, and slices of the old one are still there."""
    older = slice_(device("a", capacity={"m": {"value": "1"}}), device("c", capacity={"m": {"value": "3"}}))
    old_sets = slice_(
        devices=None, sharedCounters=[{"name": one, "counters": {"x": {"value": "1"}}} for one in ("s", "t")]
    )
    second = {"pool": {"name": "p", "generation": 2, "resourceSliceCount": 2}}
    newer = slice_(device("a", capacity={"m": {"value": "2"}}), device("b"), **second)
    new_sets = slice_(
        devices=None, sharedCounters=[{"name": "t", "counters": {"x": {"value": "9"}}}], **second
    )
    twin = slice_(device("a", capacity={"m": {"value": "7"}}), **second)
    for listed in ([older, old_sets, newer, new_sets, twin], [new_sets, newer, twin, old_sets, older]):
        found = stock(*listed)
        capacities = {name: offer.capacity for name, offer in found.devices.items()}
        assert capacities == {"a": {"m": "2"}, "b": {}, "c": {"m": "3"}}
        assert found.counters == {"s": {"x": "1"}, "t": {"x": "9"}}


def test_what_a_pool_has_is_read_from_slices_in_part():
    """The rest of a slice has no say: the whole of it comes to the same."""
    many = {"attributes": {"links": {"strings": ["a", "b"]}}, "capacity": {"m": {"value": "1"}, "n": {}}}
    listed = [
        slice_(device("a", **many), {**grouped("b", "mig"), "allowMultipleAllocations": True}),
        slice_(devices=None, sharedCounters=[{"name": "gpu", "counters": {"memory": {"value": "9"}}}]),
    ]
    found = stock(*listed)
    assert found == offers.read(meta.view(resource.ResourceSlice, one) for one in listed)
    assert found.devices == {
        "a": offers.Offer(capacity={"m": "1", "n": "0"}),
        "b": offers.Offer(shared=True, counters={"gpu": {"memory": "1"}}, groups={"gpu": ("mig",)}),
    }
    assert found.counters == {"gpu": {"memory": "9"}}


def test_a_record_of_an_earlier_version_is_read_and_learns_what_it_lacks():
    """It knew what held devices draw, and neither what the sets had nor which devices are shared."""
    stored = (
        b'{"devices":{"half-0":{"holders":[{"claim":"first"}],"counters":{"gpu":{"memory":"20Gi"}}},'
        b'"a":{"holders":[{"claim":"first","shareID":"x","capacity":{"memory":"6Gi"}}]}}}'
    )
    record = holds.read(stored)
    whole = results(result("whole"))
    assert why_not(record, "second", whole) is not None
    assert why_not(record, "second", whole, COUNTED) is not None
    devices = {**COUNTED.devices, **sized("10Gi").devices}
    pool = offers.Stock(devices=devices, counters=COUNTED.counters, counts=True)
    assert why_not(record, "second", share(1, memory="5Gi"), pool) is not None
    record = hold(record, "second", share(1, memory="4Gi"), pool)
    assert record.counters == {"gpu": {"memory": "40Gi"}}
    assert record.devices["a"].capacity == {"memory": "10Gi"}
    assert why_not(record, "third", whole, counted(drawing("whole", "40Gi"), total=None)) is not None
    assert holds.release(holds.release(record, "first"), "second") == EMPTY


def test_a_claim_that_shares_a_device_with_itself_frees_both_shares():
    both = results(result("a", shareID=SHARES[0]), result("a", shareID=SHARES[1]))
    assert holds.release(hold(EMPTY, "first", both, SHARED), "first") == EMPTY


def test_a_record_is_written_and_read():
    record = hold(EMPTY, "first", results(result("half-0")), COUNTED)
    record = hold(record, "second", results(result("half-1")), COUNTED)
    assert record.counters == {"gpu": {"memory": "40Gi"}}
    assert holds.read(holds.write(record)) == record
    assert holds.read(None) == EMPTY


choices = st.lists(
    st.tuples(st.sampled_from("abc"), st.sampled_from([None, *SHARES])),
    min_size=1,
    max_size=3,
    unique_by=lambda c: c,
)
steps = st.lists(st.tuples(st.sampled_from(["c1", "c2", "c3"]), st.one_of(st.none(), choices)), max_size=12)


@settings(max_examples=200)
@given(steps)
def test_no_device_is_ever_given_twice(history):
    """HOLD1, HOLD3 over any history in which a refused hold is not made."""
    record, model = EMPTY, {}
    pool = stock(slice_(*(device(name, allowMultipleAllocations=True) for name in "abc")))
    for claim, wanted in history:
        if wanted is None:
            record = holds.release(record, claim)
            model.pop(claim, None)
            continue
        listed = results(*(result(name, **({"shareID": share} if share else {})) for name, share in wanted))
        held = holds.hold(record, claim, listed, pool)
        if isinstance(held, holds.Record):
            record = held
            model[claim] = set(wanted)
        for name in "abc":
            holders = [(other, share) for other, held in model.items() for one, share in held if one == name]
            owners = {other for other, share in holders if share is None}
            assert len(owners) <= 1
            assert not owners or {other for other, _ in holders} == owners
            recorded = record.devices.get(name, holds.HeldDevice()).holders
            assert sorted((h.claim, h.share_id or "") for h in recorded) == sorted(
                (c, s or "") for c, s in holders
            )
