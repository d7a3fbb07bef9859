"""The recent past of a resource, kept once for all who watch."""

from weakref import ref

import pytest
from hypothesis import given
from hypothesis import strategies as st

from allot.api import Object
from allot.apiserver.reading.history import Budget, Change, FellBehind, History
from allot.apiserver.storing.recent import Recent

MEGA = 1 << 20


def change(revision, size=10):
    body = b'{"metadata":{"name":"a"}%b}' % (b" " * size)
    return Change("MODIFIED", "/a", Object(body, revision), None, revision)


def revisions(changes):
    return [one.revision for one in changes]


def test_a_watcher_continues_where_it_stopped():
    history = History(complete_after=0)
    history.append([change(2), change(5)])
    position = history.position_after(2)
    assert revisions(history.since(position, 10)) == [5]
    assert revisions(history.since(history.end, 10)) == []


def test_who_falls_out_of_the_window_is_told_so():
    """S2: no gap is ever hidden."""
    history = History(complete_after=0, window=3)
    for revision in range(1, 20):
        history.append([change(revision)])
    with pytest.raises(FellBehind):
        history.since(0, 10)
    assert history.complete_after == history.since(history.start, 1)[0].revision - 1


def test_large_objects_leave_the_window_sooner():
    history = History(complete_after=0, window=1000, window_bytes=1000)
    history.append([change(revision, size=400) for revision in range(1, 11)])
    assert history.start > 0
    assert revisions(history.since(history.start, 10))[-1] == 10


def test_an_event_is_written_once_for_all_who_read_it_in_the_same_form():
    seen = []

    def render(object):
        seen.append(object)
        return object.raw

    one = change(3)
    assert one.line("v1", render) is one.line("v1", render)
    assert len(seen) == 1
    assert one.line("v1", render, "ADDED").startswith(b'{"type":"ADDED"')


def test_watchers_in_the_same_process_share_an_object_and_history_does_not_hold_on_to_it():
    one, recent = change(3), Recent()
    told = one.shared_object(recent)
    assert one.shared_object(recent) is told and (told.raw, told.revision) == (one.object.raw, 3)
    assert told is not one.object, "what watchers decode is not kept for as long as the history is"
    gone = ref(told)
    del told
    assert gone() is None and one.shared_object(recent).raw == one.object.raw


def test_watchers_are_told_of_the_object_that_its_writer_got_but_not_when_it_leaves_their_sight():
    recent = Recent()
    before = Object(b'{"metadata":{"name":"a"}}', 2)
    written = recent.written(
        "/a", b'{"metadata":{"name":"a"},"spec":1}', 3, {"metadata": {"name": "a"}, "spec": 1}
    )
    one = Change("MODIFIED", "/a", Object(written.stored, 3), before, 3)
    assert one.shared_object(recent) is written
    assert one.as_deletion().shared_object(recent).stored == before.stored, (
        "what it became is not theirs to see"
    )
    gone = Change("DELETED", "/a", Object(before.stored, 3), before, 3)
    assert gone.shared_object(recent).stored == before.stored


@given(st.lists(st.integers(1, 3), max_size=60), st.integers(1, 8), st.data())
def test_every_change_after_a_position_is_seen_once_or_the_watcher_is_told(steps, window, data):
    history, revision, all_revisions = History(complete_after=0, window=window), 0, []
    for step in steps:
        revision += step
        all_revisions.append(revision)
        history.append([change(revision)])
    after = data.draw(st.integers(0, revision))
    wanted = [one for one in all_revisions if one > after]
    if after < history.complete_after:
        return
    assert revisions(history.since(history.position_after(after), 1000)) == wanted


def test_large_changes_are_handed_out_a_few_at_a_time():
    history = History(complete_after=0)
    history.append([change(revision, size=400) for revision in range(1, 11)])
    assert revisions(history.since(0, 10, most_bytes=1000)) == [1, 2]
    assert revisions(history.since(2, 10, most_bytes=1)) == [3], "one at least, however large"


def test_histories_together_stay_within_their_budget_and_come_to_share_it():
    """An attacker may write to many resources; each window alone would be small enough."""
    budget = Budget(100 * MEGA)
    busy = [History(complete_after=0, budget=budget) for _ in range(20)]
    for revision in range(1, 60):
        for history in busy:
            history.append([change(revision, size=MEGA)])
        kept = [
            sum(len(one.object.stored) for one in history.since(history.start, 1000, 1 << 40))
            for history in busy
        ]
        assert sum(kept) <= 100 * MEGA + 20 * (MEGA + 100), "and one change each, however large"
        assert 100 * MEGA - sum(kept) == budget.left
    assert len(busy[-1].since(busy[-1].start, 1000, 1 << 40)) >= 1
    alone = History(complete_after=0, budget=Budget(20 * MEGA))
    alone.append([change(revision, size=MEGA) for revision in range(1, 10)])
    assert alone.start == 0


def test_a_history_that_is_replaced_gives_back_what_it_had():
    budget = Budget(1000)
    history = History(complete_after=0, budget=budget)
    history.append([change(1, size=100)])
    history.let_go()
    assert budget.left == 1000


def test_what_watchers_made_of_a_change_is_kept_while_it_is_news():
    """Lines and fields take many times the bytes of the object: thousands of old ones filled the memory."""
    history = History(complete_after=0, window_bytes=40_000)
    made = []

    def render(object):
        made.append(object.revision)
        return object.raw

    changes = [change(revision, size=1000) for revision in range(1, 31)]
    for one in changes:
        history.append([one])
        one.line("v1", render)
        assert one.object.fields
    for one in (changes[-1], changes[0], changes[0]):
        assert one.line("v1", render).endswith(b"}}" + b"\n")
    assert made[30:] == [1, 1], "made anew for whoever is behind, and not kept; the newest was at hand"
    assert changes[0].object._fields is None and changes[-1].object._fields is not None
