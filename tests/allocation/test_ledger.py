"""Who holds each device: stories first, random histories below."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from allot.allocation import DeviceId, Ledger, PoolId, Taken
from allot.api import Quantity

A = DeviceId("gpu.example.com", "pool", "a")
B = DeviceId("gpu.example.com", "pool", "b")
FAR = DeviceId("gpu.example.com", "other", "a")


def share(device: DeviceId, id: str, gib: int = 1) -> Taken:
    return Taken(device, share=id, consumed={"memory": Quantity.parse(f"{gib}Gi")})


def consumed_gib(ledger: Ledger, device: DeviceId) -> float:
    return ledger.usage(device.pool_id)[device.name].consumed["memory"] / (10**9 * 2**30)


def test_a_flight_holds_its_devices():
    ledger = Ledger()

    assert ledger.fly("claim", [Taken(A)]) == ()

    assert not ledger.is_free(A)
    assert ledger.is_free(B)


def test_a_plan_that_overlaps_is_refused_and_changes_nothing():
    """LEDGER1: two plans made from the same view; the second one to fly has to plan again."""
    ledger = Ledger()
    ledger.fly("first", [Taken(A)])
    before = ledger.revision

    overlaps = ledger.fly("second", [Taken(B), Taken(A)])

    assert [one.claims for one in overlaps] == [("first", "second")]
    assert ledger.is_free(B)
    assert ledger.revision == before


def test_what_the_server_accepted_is_believed_even_where_it_overlaps():
    """D1 is reported; the device stays taken until the last of the two claims is gone."""
    ledger = Ledger()
    ledger.settle("ours", [Taken(A)])
    ledger.settle("theirs", [Taken(A)])

    assert [str(one) for one in ledger.overlaps()] == [f"D1: {A} is held by ours, theirs"]
    ledger.release("ours")
    assert not ledger.is_free(A)
    assert list(ledger.overlaps()) == []
    ledger.release("theirs")
    assert ledger.is_free(A)


def test_a_late_flight_does_not_reopen_a_settled_claim():
    """A pod of the same group plans from an older view. LEDGER3."""
    ledger = Ledger()
    ledger.settle("claim", [Taken(A)])
    ledger.fly("claim", [Taken(A)])
    ledger.cancel("claim")

    assert not ledger.is_free(A)


def test_a_flight_that_settles_on_other_devices_gives_the_first_ones_back():
    """The server's word replaces ours as a whole."""
    ledger = Ledger()
    ledger.fly("claim", [Taken(A)])
    ledger.settle("claim", [Taken(B)])

    assert ledger.is_free(A)
    assert not ledger.is_free(B)


def test_shares_of_a_device_add_up_and_go_one_by_one():
    ledger = Ledger()
    ledger.settle("one", [share(A, "s1", gib=2)])
    ledger.settle("two", [share(A, "s2", gib=3)])

    assert consumed_gib(ledger, A) == 5
    ledger.release("one")
    assert consumed_gib(ledger, A) == 3
    ledger.release("two")
    assert ledger.is_free(A)


def test_a_share_of_a_device_that_somebody_owns_is_an_overlap():
    ledger = Ledger()
    ledger.settle("owner", [Taken(A)])

    assert ledger.fly("sharer", [share(A, "s")])
    ledger.settle("sharer", [share(A, "s")])
    assert [one.claims for one in ledger.overlaps()] == [("owner", "sharer")]


def test_admin_access_holds_nothing():
    ledger = Ledger()
    ledger.settle("admin", [Taken(A, admin=True)])

    assert ledger.is_free(A)
    assert ledger.fly("user", [Taken(A)]) == ()


def test_one_claim_cannot_have_one_device_twice():
    assert Ledger().fly("claim", [Taken(A), Taken(A)])


def test_the_revision_moves_with_every_change_and_only_then():
    """LEDGER2: setting what is set already is no change."""
    ledger = Ledger()
    ledger.settle("claim", [Taken(A)])
    after = ledger.revision
    ledger.settle("claim", [Taken(A)])
    ledger.release("nobody")

    assert ledger.revision == after
    assert ledger.moved_since(0) == {A.pool_id}
    assert ledger.moved_since(after) == frozenset()


def test_moves_older_than_memory_are_anybodys():
    ledger = Ledger()
    for turn in range(10_000):
        ledger.settle("claim", [Taken(A if turn % 2 else B)])

    assert ledger.moved_since(0) is None
    assert ledger.moved_since(ledger.revision - 10) == {A.pool_id}


def test_a_fork_sees_its_parent_and_hides_its_own_changes():
    """LEDGER5: what-if questions leave no trace."""
    ledger = Ledger()
    ledger.settle("held", [Taken(A)])
    fork = ledger.fork()

    fork.release("held")
    fork.settle("other", [Taken(B)])

    assert fork.is_free(A)
    assert not fork.is_free(B)
    assert not ledger.is_free(A)
    assert ledger.is_free(B)
    assert fork.moved_since(ledger.revision) == {PoolId("gpu.example.com", "pool")}


events = st.lists(
    st.tuples(
        st.sampled_from(["fly", "settle", "cancel", "release", "fork"]),
        st.sampled_from(["one", "two", "three"]),
        st.lists(
            st.sampled_from(
                [Taken(A), Taken(B), Taken(FAR), Taken(A, admin=True), share(B, "s"), share(FAR, "t", 2)]
            ),
            max_size=3,
            unique_by=lambda taken: (taken.device, taken.share, taken.admin),
        ),
    ),
    max_size=25,
)


@given(events)
@settings(max_examples=200)
def test_any_history_adds_up(history):
    """LEDGER4 and D1 hold after every event, on forks as well; flights alone never overlap."""
    ledger = Ledger()
    settled_anything = False
    for verb, name, devices in history:
        if verb == "fork":
            ledger = ledger.fork()
        elif verb in ("fly", "settle"):
            getattr(ledger, verb)(name, devices)
            settled_anything |= verb == "settle"
        else:
            getattr(ledger, verb)(name)
        ledger.check()
        if not settled_anything:
            assert list(ledger.overlaps()) == []


@given(events)
def test_a_ledger_rebuilt_from_its_holds_says_the_same(history):
    """LEDGER4: a restart reads the claims and knows what the old process knew."""
    ledger = Ledger()
    for verb, name, devices in history:
        if verb == "settle":
            ledger.settle(name, devices)
        elif verb == "release":
            ledger.release(name)

    rebuilt = Ledger()
    for name in ("one", "two", "three"):
        hold = ledger.hold(name)
        if hold is not None:
            rebuilt.settle(name, hold.devices)

    for pool in (A.pool_id, FAR.pool_id):
        assert {name: sorted(used.owners) for name, used in rebuilt.usage(pool).items()} == {
            name: sorted(used.owners) for name, used in ledger.usage(pool).items()
        }


@pytest.mark.parametrize("verb", ["cancel", "release"])
def test_giving_up_what_nobody_has_is_nothing(verb):
    ledger = Ledger()
    getattr(ledger, verb)("stranger")

    assert ledger.revision == 0
