"""The election as a state machine: events in, effects out, no clock and no server."""

import random
from datetime import UTC, datetime, timedelta

from hypothesis import given, settings
from hypothesis import strategies as st

from allot.client.election import (
    Due,
    Failed,
    Look,
    Moment,
    Record,
    Renew,
    Saw,
    Settings,
    StartLeading,
    State,
    StopLeading,
    Write,
    Wrote,
    step,
)  # fmt: skip

ME = Settings("lock", "default", "me", duration_s=15, renew_deadline_s=10, retry_period_s=2)


def at(seconds: float) -> Moment:
    return Moment(seconds, datetime(2026, 1, 1, tzinfo=UTC) + timedelta(seconds=seconds))


def held(by: str = "other", renewed: str = "r1", duration_s: int = 15, transitions: int = 3) -> Record:
    return Record(by, duration_s, "a1", renewed, transitions)


def run(state: State, *events):
    effects = ()
    for event in events:
        state, effects = step(state, event)
    return state, effects


def elected(now: float = 0.0) -> State:
    state, (write,) = step(State(ME), Saw(at(now), None))
    state, effects = step(state, Wrote(at(now + 0.1), write.record, "7"))
    assert effects == (StartLeading(), Renew(2))
    return state


def test_a_lease_that_does_not_exist_is_created():
    _, (write,) = step(State(ME), Saw(at(0), None))
    assert write == Write(
        Record("me", 15, "2026-01-01T00:00:00.000000Z", "2026-01-01T00:00:00.000000Z", 0), ""
    )


def test_a_free_lease_is_taken_and_the_transition_counted():
    _, (write,) = step(State(ME), Saw(at(0), held(by=""), "5"))
    assert (write.record.holder, write.record.transitions, write.version) == ("me", 4, "5")


def test_anothers_lease_is_respected_for_its_duration_since_it_was_seen_to_change():
    """Not since the time written in it: that is another machine's clock."""
    state, effects = run(State(ME), Saw(at(0), held(renewed="1999"), "5"))
    assert effects == (Look(2),)
    state, effects = run(state, Saw(at(14.9), held(renewed="1999"), "5"))
    assert effects == (Look(2),)
    _, (write,) = run(state, Saw(at(15), held(renewed="1999"), "5"))
    assert write.record.holder == "me"


def test_every_renewal_of_another_starts_the_wait_anew():
    state, _ = run(State(ME), Saw(at(0), held(renewed="r1"), "5"), Saw(at(14), held(renewed="r2"), "6"))
    _, effects = run(state, Saw(at(28.9), held(renewed="r2"), "6"))
    assert effects == (Look(2),)


def test_a_leader_renews_without_looking_and_keeps_the_time_it_began():
    state = elected()
    _, (write,) = step(state, Due(at(2.1)))
    assert write.version == "7"
    assert write.record.acquired == state.seen.acquired
    assert write.record.renewed != state.seen.renewed
    assert write.record.transitions == 0


def test_a_lost_race_is_looked_into():
    state, effects = run(State(ME), Saw(at(0), None), Failed(at(0.1), "already exists"))
    assert not state.leading
    assert effects == (Look(2),)


def test_a_leader_that_cannot_renew_stops_before_anyone_else_may_begin():
    """LEASE2."""
    state, effects = run(elected(), Due(at(2)), Failed(at(3), "no answer"))
    assert state.leading
    assert effects == (Look(2),)
    state, effects = run(state, Failed(at(9), "no answer"))
    assert effects == (Look(1),)  # what is left, not the whole period
    state, effects = run(state, Failed(at(10), "no answer"))
    assert not state.leading
    assert effects == (StopLeading("the lease was not renewed: no answer"),)


def test_a_leader_whose_renewal_is_refused_says_so_when_its_time_is_up():
    """It may read the lease: what it found last is not what kept it from renewing."""
    state = elected()
    for second in (2, 5, 8):
        state, (look,) = run(state, Due(at(second)), Failed(at(second), "you may not"))
        assert isinstance(look, Look)
    _, effects = step(state, Saw(at(10), state.seen, "7"))
    assert effects == (StopLeading("the lease was not renewed in time: you may not"),)


def test_a_leader_that_slept_through_its_deadline_stops_even_if_nobody_took_over():
    state = elected()
    state, effects = step(state, Saw(at(11), state.seen, "7"))
    assert not state.leading
    assert isinstance(effects[0], StopLeading)


def test_a_leader_that_finds_another_holder_stops():
    state, effects = step(elected(), Saw(at(3), held(), "9"))
    assert not state.leading
    assert effects == (StopLeading("another holder has the lease"),)


def test_our_own_lease_from_an_earlier_life_is_taken_up_again():
    """A process that restarts under the same identity need not wait for itself."""
    _, (write,) = step(State(ME), Saw(at(0), held(by="me"), "5"))
    assert (write.record.transitions, write.record.acquired) == (3, "a1")


@settings(max_examples=300, deadline=None)
@given(st.integers(0, 2**32))
def test_two_candidates_never_lead_at_once(seed):
    """Two machines with one lease, outages, and clocks that disagree.

    The lease itself is a value that only a write with the right version changes, as
    the server guarantees. A seed and not single draws, so that runs are long: only
    long outages of the one make the other dangerous.
    """
    chance = random.Random(seed)
    lease: tuple[Record | None, int] = (None, 0)
    states = {n: State(Settings("lock", "default", n, 15, 10, 2)) for n in ("a", "b")}
    skew = {n: chance.uniform(-1000, 1000) for n in states}
    todo, ready_at = dict.fromkeys(states, Look()), dict.fromkeys(states, 0.0)
    now, cut_off = 0.0, None
    for _ in range(150):
        now += chance.uniform(0.1, 2)
        cut_off = chance.choice((None, "a", "b")) if chance.random() < 0.1 else cut_off
        for n, state in states.items():  # a leader's own timer fires whatever else happens
            if state.leading and now + skew[n] >= state.deadline_s():
                states[n], _ = step(state, Failed(at(now + skew[n]), "late"))
                todo[n], ready_at[n] = Look(), now
        n = chance.choice(("a", "b"))
        if ready_at[n] > now:
            continue
        local, action = at(now + skew[n]), todo[n]
        if isinstance(action, Renew):
            event = Due(local)
        elif n == cut_off:
            event = Failed(local, "cut off")
        elif isinstance(action, Look):
            event = Saw(local, lease[0], str(lease[1]) if lease[0] else "")
        elif (action.version or "0") == str(lease[1]):
            lease = (action.record, lease[1] + 1)
            event = Wrote(local, action.record, str(lease[1]))
        else:
            event = Failed(local, "conflict")
        states[n], effects = step(states[n], event)
        todo[n] = Look()
        for effect in effects:
            if isinstance(effect, Look | Renew | Write):
                todo[n], ready_at[n] = effect, now + getattr(effect, "after_s", 0.0)
        assert sum(state.leading for state in states.values()) <= 1
