"""The hold record: H1 to H4, with stories first and the whole as a property."""

from hypothesis import given, settings
from hypothesis import strategies as st

from allot.api import meta, resource
from allot.api.resource import holds
from api.resource.objects import allocation, device, result, slice_

SHARES = [f"{i:08d}-0000-0000-0000-000000000000" for i in range(4)]


def results(*listed):
    (found,) = holds.held_by({"status": {"allocation": allocation(*listed)}}).values()
    return found


def stock(*slices):
    return holds.stock(meta.view(holds.OfferedSlice, one) for one in slices)


EMPTY = holds.Record()


def test_a_device_goes_to_one_claim():
    record = holds.hold(EMPTY, "first", results(result("a")))
    assert "held by another claim" in holds.overlap(record, "second", results(result("a")))
    assert holds.overlap(record, "second", results(result("b"))) is None
    assert holds.overlap(record, "first", results(result("a"))) is None


def test_a_claim_frees_what_it_held_and_nothing_else():
    record = holds.hold(EMPTY, "first", results(result("a"), result("b")))
    record = holds.hold(record, "second", results(result("c")))
    freed = holds.release(record, "first")
    assert set(freed.devices) == {"c"}
    assert holds.release(freed, "second") == EMPTY


def test_admin_access_holds_nothing():
    """H4."""
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


def test_shares_live_beside_shares_but_not_beside_an_owner():
    """H1."""
    shared = holds.hold(EMPTY, "first", results(result("a", shareID=SHARES[0])))
    assert holds.overlap(shared, "second", results(result("a", shareID=SHARES[1]))) is None
    assert holds.overlap(shared, "second", results(result("a", shareID=SHARES[0]))) is not None
    assert holds.overlap(shared, "second", results(result("a"))) is not None
    owned = holds.hold(EMPTY, "first", results(result("a")))
    assert "does not share it" in holds.overlap(owned, "second", results(result("a", shareID=SHARES[1])))


def test_shares_do_not_add_up_to_more_than_the_device_has():
    """H2. Two schedulers may each find room for 6Gi; the second is told that there is none."""
    pool = stock(slice_(device("a", capacity={"memory": {"value": "10Gi"}}, allowMultipleAllocations=True)))
    first = results(result("a", shareID=SHARES[0], consumedCapacity={"memory": "6Gi"}))
    second = results(result("a", shareID=SHARES[1], consumedCapacity={"memory": "6Gi"}))
    small = results(result("a", shareID=SHARES[1], consumedCapacity={"memory": "4Gi"}))
    record = holds.hold(EMPTY, "first", first, pool)
    assert "12Gi of memory" in holds.overlap(record, "second", second, pool)
    assert holds.overlap(record, "second", small, pool) is None
    assert holds.overlap(record, "second", second) is None  # nobody knows what the device has


def drawing(name, amount):
    return device(name, consumesCounters=[{"counterSet": "gpu", "counters": {"memory": {"value": amount}}}])


COUNTED = stock(
    slice_(drawing("whole", "40Gi"), drawing("half-0", "20Gi"), drawing("half-1", "20Gi")),
    slice_(devices=None, sharedCounters=[{"name": "gpu", "counters": {"memory": {"value": "40Gi"}}}]),
)


def test_partitions_do_not_draw_more_than_their_counters_have():
    """H2: the whole device and one half of it are different devices, and still overlap."""
    record = holds.hold(EMPTY, "first", results(result("half-0")), COUNTED)
    assert holds.overlap(record, "second", results(result("half-1")), COUNTED) is None
    assert "60Gi of counter gpu/memory" in holds.overlap(record, "second", results(result("whole")), COUNTED)


def grouped(name, *groups):
    draws = {"counterSet": "gpu", "counters": {"memory": {"value": "1"}}}
    return device(
        name, consumesCounters=[{**draws, "compatibilityGroups": list(groups)} if groups else draws]
    )


def test_partitions_of_different_groups_do_not_meet():
    """H2, KEP-5963: devices without a group go together, and with no other."""
    pool = stock(
        slice_(grouped("a", "mig"), grouped("b", "mig", "both"), grouped("c", "mps", "both"), grouped("d")),
        slice_(devices=None, sharedCounters=[{"name": "gpu", "counters": {"memory": {"value": "9"}}}]),
    )
    held = holds.hold(EMPTY, "first", results(result("b")), pool)

    def meets(*names):
        return holds.overlap(held, "second", results(*(result(name) for name in names)), pool) is None

    assert [meets("a"), meets("c"), meets("d"), meets("a", "c")] == [True, True, False, False]


def test_one_claim_alone_may_hold_what_is_no_longer_offered():
    shrunk = stock(
        slice_(drawing("whole", "40Gi")),
        slice_(devices=None, sharedCounters=[{"name": "gpu", "counters": {"memory": {"value": "1Gi"}}}]),
    )
    assert holds.overlap(EMPTY, "first", results(result("whole")), shrunk) is None


def test_a_device_draws_once_however_many_share_it():
    """Digest 12.10."""
    record = holds.hold(EMPTY, "first", results(result("half-0", shareID=SHARES[0])), COUNTED)
    record = holds.hold(record, "second", results(result("half-0", shareID=SHARES[1])), COUNTED)
    assert holds.overlap(record, "third", results(result("half-1")), COUNTED) is None


def test_only_the_newest_generation_of_a_pool_counts():
    old = slice_(device("a", capacity={"m": {"value": "1"}}))
    new = slice_(
        device("b", capacity={"m": {"value": "2"}}),
        pool={"name": "p", "generation": 2, "resourceSliceCount": 1},
    )
    assert stock(old, new).capacity == {"b": {"m": "2"}}


def test_what_a_pool_has_is_read_from_slices_in_part():
    """The rest of a slice has no say: the whole of it comes to the same."""
    many = {"attributes": {"links": {"strings": ["a", "b"]}}, "capacity": {"m": {"value": "1"}, "n": {}}}
    listed = [
        slice_(device("a", **many), {**grouped("b", "mig"), "allowMultipleAllocations": True}),
        slice_(devices=None, sharedCounters=[{"name": "gpu", "counters": {"memory": {"value": "9"}}}]),
    ]
    found = stock(*listed)
    assert found == holds.stock(meta.view(resource.ResourceSlice, one) for one in listed)
    assert found.capacity == {"a": {"m": "1", "n": "0"}}
    assert found.draws == {"b": {"gpu": {"memory": "1"}}}
    assert found.groups == {"b": {"gpu": ("mig",)}}
    assert found.counters == {"gpu": {"memory": "9"}}


def test_a_claim_that_shares_a_device_with_itself_frees_both_shares():
    both = results(result("a", shareID=SHARES[0]), result("a", shareID=SHARES[1]))
    assert holds.release(holds.hold(EMPTY, "first", both), "first") == EMPTY


def test_a_record_is_written_and_read():
    record = holds.hold(
        EMPTY, "first", results(result("half-0", shareID=SHARES[0], consumedCapacity={"m": "1"})), COUNTED
    )
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
    """H1, H3 over any history in which a refused hold is not made."""
    record, model = EMPTY, {}
    for claim, wanted in history:
        if wanted is None:
            record = holds.release(record, claim)
            model.pop(claim, None)
            continue
        listed = results(*(result(name, **({"shareID": share} if share else {})) for name, share in wanted))
        if holds.overlap(record, claim, listed) is None:
            record = holds.hold(record, claim, listed)
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
