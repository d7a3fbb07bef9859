"""Rolling updates as arithmetic: ROLL1, ROLL2 and ROLL3 of `rollout`, whatever becomes ready when."""

from dataclasses import replace

from hypothesis import assume, given
from hypothesis import strategies as st

from allot.api import meta
from allot.controllers.deployments.rollout import Set, first_size, is_resized, resize, roll
from allot.controllers.deployments.views import Deployment


def wish(replicas: int, surge="25%", unavailable="25%", **status) -> Deployment:
    rolling = {"maxSurge": surge, "maxUnavailable": unavailable}
    spec = {"replicas": replicas, "strategy": {"type": "RollingUpdate", "rollingUpdate": rolling}}
    return meta.view(Deployment, {"spec": spec, "status": status})


AMOUNT = st.one_of(st.integers(0, 4), st.integers(0, 100).map(lambda n: f"{n}%"))


@given(st.integers(0, 12), AMOUNT, AMOUNT, st.data())
def test_a_rolling_update_keeps_its_bounds_and_ends(replicas, surge, unavailable, data):
    """Pods become available in any order; between steps nothing may happen at all."""
    wanted = wish(replicas, surge, unavailable)
    assume(surge not in (0, "0%") or unavailable not in (0, "0%"))
    old = [Set("a", "1", replicas, replicas)]
    if replicas > 1 and data.draw(st.booleans()):  # an earlier rollout was not finished
        part = data.draw(st.integers(1, replicas - 1))
        old = [Set("a", "1", replicas - part, replicas - part), Set("b", "2", part, 0)]
    least = min(replicas - wanted.unavailable, sum(one.available for one in old))
    sets = {"new": Set("new", "3", first_size(wanted, old)), **{one.name: one for one in old}}
    for _ in range(200):
        total = sum(one.replicas for one in sets.values())
        assert total <= replicas + wanted.surge, "ROLL1"
        assert sum(one.available for one in sets.values()) >= least, "ROLL2"
        new, rest = sets["new"], [one for one in sets.values() if one.name != "new"]
        sizes = roll(wanted, new, rest)
        for name, size in sizes.items():
            sets[name] = replace(sets[name], replicas=size, available=min(sets[name].available, size))
        if not sizes:
            if new.replicas == new.available == replicas and not any(one.replicas for one in rest):
                return
            waiting = new.replicas - new.available
            assert waiting, f"ROLL3: nothing moves: {sets}"
            sets["new"] = replace(new, available=new.available + data.draw(st.integers(1, waiting)))
    raise AssertionError(f"ROLL3: no end: {sets}")


@given(st.integers(0, 20), st.integers(0, 20), AMOUNT, st.data())
def test_resizing_in_the_middle_of_a_rollout_gives_every_set_its_share(before, after, surge, data):
    """Together they are as many as are allowed, and no set moves the wrong way."""
    was, now = wish(before, surge), wish(after, surge)
    total = data.draw(st.integers(min(2, before), max(before, 2)))
    part = data.draw(st.integers(1, max(1, total - 1)))
    most = before + was.surge
    sets = [Set("new", "2", part, 0, before, most), Set("old", "1", total - part, 0, before, most)]
    assume(all(one.replicas for one in sets) and before != after)
    assert is_resized(now, sets)
    sizes = resize(now, sets[0], sets[1:])
    allowed = after + now.surge if after else 0
    assert sum(sizes.values()) == allowed
    for one in sets:
        moved = sizes[one.name] - one.replicas
        assert moved * (allowed - total) >= 0


def test_a_set_alone_takes_the_new_size_at_once():
    assert resize(wish(7), Set("new", "2", 3, 3, 3, 4), [Set("old", "1", 0)]) == {"new": 7}
    assert resize(wish(7), None, [Set("old", "1", 3)]) == {"old": 7}
    assert resize(wish(7), None, []) == {}


def test_sick_pods_of_old_sets_go_first():
    """They hold the rollout up and serve nobody."""
    old = [Set("healthy", "1", 3, 3), Set("sick", "2", 3, 0)]
    assert roll(wish(3, 0, 1), Set("new", "3", 0), old) == {"sick": 0, "healthy": 2}


def test_shares_of_few_replicas_leave_room_to_move():
    assert (wish(1, "25%", "25%").surge, wish(1, "25%", "25%").unavailable) == (1, 0)
    assert (wish(1, "0%", "25%").surge, wish(1, "0%", "25%").unavailable) == (0, 1)
