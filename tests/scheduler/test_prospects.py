"""Who is on the way out, whose room it will be, and what the snapshot makes of it."""

from datetime import UTC, datetime, timedelta

from allot.allocation import Features
from allot.informers import Key
from allot.scheduler.pod import PodInfo
from allot.scheduler.prospects import LEFT_MAX, Prospects
from allot.scheduler.snapshot import Snapshot

from .objects import node, pod

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)


def ending(when: datetime, *, preempted: bool = False) -> PodInfo:
    """A pod that is being deleted and must be gone by then."""
    condition = {"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler"}
    made = pod(status={"conditions": [condition] if preempted else []})
    moment = when.strftime("%Y-%m-%dT%H:%M:%SZ")
    return PodInfo.of(made.object.changed({"metadata": {"deletionTimestamp": moment}}))


def seconds(count: float) -> timedelta:
    return timedelta(seconds=count)


# -- who goes -----------------------------------------------------------------------------------------


def test_a_pod_that_ends_soon_is_leaving():
    prospects = Prospects()
    assert prospects.is_leaving(ending(NOW + seconds(30)), NOW)
    assert prospects.is_leaving(ending(NOW - seconds(30)), NOW)
    assert not prospects.is_leaving(pod(), NOW)


def test_a_pod_that_takes_long_to_end_is_leaving_only_if_that_is_to_make_room():
    prospects, late = Prospects(), NOW + seconds(600)
    assert not prospects.is_leaving(ending(late), NOW)
    assert prospects.is_leaving(ending(late, preempted=True), NOW)


def test_a_pod_that_does_not_end_when_it_should_is_not_counted_on():
    prospects = Prospects()
    assert not prospects.is_leaving(ending(NOW - seconds(61)), NOW)
    assert not prospects.is_leaving(ending(NOW - seconds(61), preempted=True), NOW)


def test_what_was_decided_counts_before_the_server_has_said_so_and_not_for_ever():
    prospects, victim = Prospects(), pod()
    prospects.evict([victim], NOW)
    assert prospects.is_leaving(victim, NOW + seconds(60))
    assert not prospects.is_leaving(victim, NOW + seconds(61))


def test_an_eviction_that_came_to_nothing_is_forgotten():
    prospects, victim = Prospects(), pod()
    prospects.evict([victim], NOW)
    prospects.spare([victim.uid])
    assert not prospects.is_leaving(victim, NOW)


def test_budgets_are_charged_for_a_moment_for_whoever_was_told_to_go():
    prospects, victim, spared = Prospects(), pod("victim"), pod("spared")
    prospects.evict([victim, spared], NOW)
    prospects.spare([spared.uid])
    assert prospects.charges(NOW + seconds(5)) == [victim]
    assert prospects.charges(NOW + seconds(6)) == []


def test_the_claims_of_a_pod_that_left_are_returning_until_they_have():
    prospects = Prospects()
    prospects.leave("u", [Key("default", "a"), Key("default", "b")])
    assert prospects.has_left("u")
    assert list(prospects.returning) == [Key("default", "a"), Key("default", "b")]
    prospects.returned(Key("default", "a"))
    assert list(prospects.returning) == [Key("default", "b")]


def test_of_those_who_left_only_the_last_are_remembered():
    prospects = Prospects()
    for index in range(LEFT_MAX + 1):
        prospects.leave(f"u{index}", [Key("default", f"c{index}")])
    assert not prospects.has_left("u0")
    assert prospects.has_left("u1")
    assert len(list(prospects.returning)) == LEFT_MAX


# -- who comes ----------------------------------------------------------------------------------------


def test_a_pod_is_nominated_to_one_node_at_a_time():
    prospects, urgent = Prospects(), pod("urgent")
    prospects.nominate(urgent, "a")
    prospects.nominate(urgent, "b")
    assert list(prospects.nominees("a")) == []
    assert list(prospects.nominees("b")) == [urgent]
    assert prospects.nomination(urgent.uid) == "b"
    assert prospects.unnominate(urgent.uid) == "b"
    assert prospects.unnominate(urgent.uid) is None


def test_the_nodes_of_a_nomination_are_looked_at_again():
    """SNAP2: pods of lower priority may not go there any more, or may again."""
    snapshot = Snapshot(Features())
    snapshot.put_node(node("a"))
    snapshot.put_node(node("b"))
    urgent = pod("urgent")
    mark = snapshot.mark()
    snapshot.nominate(urgent, "a")
    assert snapshot.moved_since(mark) == {"a"}
    mark = snapshot.mark()
    snapshot.nominate(urgent, "b")
    assert snapshot.moved_since(mark) == {"a", "b"}
    mark = snapshot.mark()
    assert snapshot.unnominate(urgent.uid)
    assert not snapshot.unnominate(urgent.uid)
    assert snapshot.moved_since(mark) == {"b"}


# -- who is there ---------------------------------------------------------------------------------------


def test_the_lowest_priority_is_that_of_the_pods_on_nodes():
    """Most clusters have but one, and then nobody needs to look for victims."""
    snapshot = Snapshot(Features())
    snapshot.put_node(node("a"))
    assert snapshot.lowest_priority is None
    snapshot.place(pod("high", priority=10), "a")
    snapshot.place(pod("low", priority=-3), "a")
    snapshot.place(pod("low", priority=-3), "elsewhere")
    assert snapshot.lowest_priority == -3
    fork = snapshot.fork()
    fork.remove("uid-of-low")
    assert fork.lowest_priority == 10
    assert snapshot.lowest_priority == -3
    snapshot.drop_node("a")
    assert snapshot.pod("uid-of-high") is not None
    snapshot.remove("uid-of-low")
    snapshot.remove("uid-of-high")
    assert snapshot.lowest_priority is None
