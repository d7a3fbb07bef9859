"""The states of a hollow pod's containers: every arrow of the picture, with the time handed over."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from allot.api import Object, core
from allot.hollow import views
from allot.hollow.life import CONFIG_ERROR, CRASH_LOOP, STOPPED, Life, advanced, backoff_s, recalled, stopped
from allot.hollow.settings import Stages, wished
from allot.node import NOTHING, Running, Terminated, Waiting
from node.objects import pod

STAGES = Stages(start_s=1.0, run_s=10.0, stop_s=2.0)
THEN, NOW = "2026-11-15T08:00:00Z", "2026-11-15T08:01:00Z"


def wishing(policy: str = "Always", **annotations: str) -> Object:
    own = {f"hollow.allot.dev/{key.replace('_', '-')}": value for key, value in annotations.items()}
    return pod(metadata={"annotations": own}, spec={"restartPolicy": policy})


def at(of: Object, now_s: float, life: Life | None = None) -> Life:
    """Of a pod that was first heard of at 100, unless it has come further."""
    view = of.view(core.Pod)
    return advanced(life or Life(100.0), view, wished(view, STAGES), now_s, lambda: NOW)


def running(of: Object) -> Life:
    """Since 100."""
    view = of.view(core.Pod)
    began = advanced(Life(0.0), view, wished(wishing().view(core.Pod), STAGES), 50.0, lambda: THEN)
    return Life(100.0, None, began.observed)


def stop(of: Object, life: Life, grace_s: float, now_s: float) -> Life:
    view = of.view(core.Pod)
    return stopped(life, wished(view, STAGES), grace_s, now_s, lambda: NOW)


def recall(of: Object) -> Life:
    return recalled(of.view(core.Pod), of.view(views.Pod).status, 100.0)


def state(life: Life) -> Any:
    (container,) = life.observed.containers
    return container.state


def test_a_pod_starts_after_its_delay_and_shows_nothing_before():
    early = at(pod(), 100.5)
    assert not early.observed.containers and early.observed.again_s == 101.0
    began = at(pod(), 101.0, early)
    assert state(began) == Running(NOW) and began.since_s == 101.0
    assert at(wishing(start_delay="30s"), 101.0).observed.again_s == 130.0


def test_a_wish_that_cannot_be_read_is_told_and_nothing_starts():
    wrong = wishing(run_time="soon")
    life = at(wrong, 200.0)
    assert isinstance(state(life), Waiting)
    assert state(life).reason == CONFIG_ERROR and "run-time" in state(life).message
    assert state(at(wishing(run_time="5s"), 200.0, life)) == Running(NOW), "it was corrected"


def test_a_wish_that_becomes_unreadable_ends_nobody():
    assert state(at(wishing(run_time="soon"), 1e9, running(pod()))) == Running(THEN)


def test_a_service_runs_for_ever_and_a_task_ends():
    assert at(wishing("Always"), 1e9, running(pod())).observed.again_s is None
    for policy in ("Never", "OnFailure"):
        assert at(wishing(policy), 105.0, running(pod())).observed.again_s == 110.0
        assert state(at(wishing(policy), 110.0, running(pod()))) == Terminated(0, THEN, NOW)


@pytest.mark.parametrize(
    ("policy", "code", "again"),
    [
        ("Always", "0", True),
        ("Always", "1", True),
        ("OnFailure", "0", False),
        ("OnFailure", "1", True),
        ("Never", "0", False),
        ("Never", "1", False),
    ],
)
def test_the_restart_policy_decides_what_an_exit_means(policy, code, again):
    end = at(wishing(policy, run_time="3s", exit_code=code), 103.0, running(pod()))
    ended = Terminated(int(code), THEN, NOW)
    (container,) = end.observed.containers
    if again:
        assert container.last == ended
        assert isinstance(container.state, Waiting) and container.state.reason == CRASH_LOOP
    else:
        assert container.state == ended


def test_a_deadline_ends_a_pod_whatever_its_policy():
    late = wishing("OnFailure", run_time="1h").changed({"spec": {"activeDeadlineSeconds": 7}})
    assert at(late, 106.0, running(pod())).observed.again_s == 107.0
    end = at(late, 107.0, running(pod()))
    assert end.observed.reason == "DeadlineExceeded" and state(end) == Terminated(1, THEN, NOW)


def test_a_container_that_ended_comes_back_after_longer_and_longer_waits():
    short = wishing(run_time="1s")
    life, now_s = running(pod()), 101.0
    waits = []
    for _ in range(3):
        life = at(short, now_s, life)
        assert isinstance(state(life), Waiting)
        waits.append(life.observed.again_s - now_s)
        now_s = life.observed.again_s
        life = at(short, now_s, life)
        assert state(life) == Running(NOW)
        now_s = life.observed.again_s
    assert waits == [0, 10, 20]
    (container,) = life.observed.containers
    assert container.restarts == 3 and container.last == Terminated(0, NOW, NOW)
    assert [backoff_s(n) for n in range(8)] == [0, 10, 20, 40, 80, 160, 300, 300]


def test_a_pod_that_is_told_to_go_ends_after_its_delay_and_within_its_grace():
    told = stop(pod(), running(pod()), 30, 200.0)
    assert told.observed.runs and told.observed.again_s == 202.0
    assert stop(pod(), told, 30, 201.0).observed.again_s == 202.0, "told once more is not told anew"
    assert state(stop(pod(), told, 30, 202.0)) == Terminated(STOPPED, THEN, NOW)
    assert state(stop(pod(), told, 1, 201.0)) == Terminated(STOPPED, THEN, NOW)
    assert state(stop(pod(), running(pod()), 0, 200.0)) == Terminated(STOPPED, THEN, NOW)


def test_there_is_nothing_to_stop_in_a_pod_that_never_ran():
    assert stop(pod(), at(pod(), 100.5), 30, 100.6).observed.containers == ()


def test_init_containers_are_done_and_sidecars_end_with_the_others():
    first = [{"name": "init", "image": "a"}, {"name": "side", "image": "b", "restartPolicy": "Always"}]
    both = pod(spec={"initContainers": first, "restartPolicy": "Never"})
    life = at(both, 101.0)
    init, side = life.observed.init_containers
    assert init.state == Terminated(0, NOW, NOW) and side.state == Running(NOW)
    end = at(both, 200.0, life)
    assert end.observed.has_ended and not end.observed.runs


def test_a_life_is_recalled_from_what_the_pod_shows():
    """N5: whatever was reported is found again, restarts and last ends too."""
    ended = {"exitCode": 3, "startedAt": THEN, "finishedAt": NOW}
    shown = {
        "name": "main",
        "restartCount": 2,
        "state": {"running": {"startedAt": NOW}},
        "lastState": {"terminated": ended},
    }
    status = {"phase": "Running", "startTime": THEN, "podIP": "10.0.0.7", "containerStatuses": [shown]}
    life = recall(pod(status=status))
    (container,) = life.observed.containers
    assert (container.restarts, container.last) == (2, Terminated(3, THEN, NOW))
    assert container.state == Running(NOW) and life.observed.addresses == ("10.0.0.7",)
    assert at(wishing("Never"), 110.0, life).observed.has_ended

    bare = recall(pod(status={"phase": "Running", "startTime": THEN}))
    assert state(bare) == Running(THEN), "somebody else said that it runs"


@given(
    policy=st.sampled_from(["", "Always", "OnFailure", "Never"]),
    run=st.sampled_from(["0s", "7s", None]),
    code=st.sampled_from(["0", "1"]),
    waits=st.lists(st.floats(0, 400), max_size=12),
)
def test_the_moment_that_is_named_is_the_moment_of_the_next_step(policy, run, code, waits):
    """Looked at before it, nothing changes; looked at then, something does. Nobody is forgotten."""
    own = {"exit_code": code} if run is None else {"exit_code": code, "run_time": run}
    one, life, now_s = wishing(policy, **own), Life(100.0), 100.0
    for wait_s in waits:
        life = at(one, now_s, life)
        due_s = life.observed.again_s
        if due_s is None:
            assert life.observed.has_ended or at(one, now_s + 1e6, life).observed == life.observed
            return
        assert due_s >= now_s
        early_s = min(now_s + wait_s, due_s - 0.001)
        if early_s > now_s:
            assert at(one, early_s, life).observed == life.observed
        life_then = at(one, due_s, life)
        assert life_then.observed.seen != life.observed.seen
        life, now_s = life_then, due_s


def test_nothing_is_the_first_thing_to_be_seen():
    assert Life(1.0).observed is NOTHING and not Life(1.0).has_begun
