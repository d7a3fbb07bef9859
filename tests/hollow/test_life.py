"""What happens to a pod next: every arrow of the picture, with the time handed over."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from allot.api import Object, Quantity, core
from allot.hollow.life import (
    CRASH_LOOP,
    Exit,
    Explain,
    Leave,
    Life,
    Refuse,
    Rest,
    Revive,
    Start,
    Step,
    Wait,
    backoff_s,
    plan,
)
from allot.hollow.settings import Stages
from allot.node.admission import Refusal
from node.objects import pod

STAGES = Stages(start_s=1.0, run_s=10.0, stop_s=2.0, patience_s=5.0)


def step(of: Object, now_s: float, *, lacking: str = "", leaving_s: float | None = None) -> Step:
    """Of a pod that was first seen, and last began something, at 100."""
    return plan(of.view(core.Pod), Life(100.0, 100.0, leaving_s), lacking, STAGES, now_s)


def running(policy: str = "Always", **annotations: str) -> Object:
    own = {f"hollow.allot.dev/{key.replace('_', '-')}": value for key, value in annotations.items()}
    return pod(metadata={"annotations": own}, spec={"restartPolicy": policy}, status={"phase": "Running"})


def deleted(of: Object, grace_s: int = 30) -> Object:
    return of.changed(
        {"metadata": {"deletionTimestamp": "2026-11-15T08:00:00Z", "deletionGracePeriodSeconds": grace_s}}
    )


def test_a_bound_pod_starts_after_its_delay():
    assert step(pod(), 100.5) == Wait(101.0)
    assert step(pod(), 101.0) == Start()


def test_a_pod_without_room_ends_at_once_and_waits_for_nothing():
    """Not for its delay, its claims or a wish that can be read; one that is deleted just goes."""
    full = Refusal("cpu", *map(Quantity.of, (1, 8, 8)))
    slow = pod(metadata={"annotations": {"hollow.allot.dev/start-delay": "1h"}})
    wrong = pod(metadata={"annotations": {"hollow.allot.dev/start-delay": "soon"}})
    life = Life(100.0, 100.0)
    for one, lacking in ((slow, ""), (wrong, ""), (pod(), "claim c is not allocated")):
        assert plan(one.view(core.Pod), life, lacking, STAGES, 100.0, full) == Refuse()
    assert plan(deleted(slow).view(core.Pod), life, "", STAGES, 100.0, full) == Leave()


def test_a_pod_has_its_own_delay():
    own = pod(metadata={"annotations": {"hollow.allot.dev/start-delay": "30s"}})
    assert step(own, 101.0) == Wait(130.0)


def test_a_pod_without_its_claims_never_starts_and_says_so_after_a_while():
    """N1."""
    assert step(pod(), 102.0, lacking="claim c is not allocated") == Wait(105.0)
    said = step(pod(), 105.0, lacking="claim c is not allocated")
    assert said == Explain("ClaimsNotReady", "claim c is not allocated")


def test_a_wish_that_cannot_be_read_is_told_and_nothing_starts():
    wrong = pod(metadata={"annotations": {"hollow.allot.dev/run-time": "soon"}})
    said = step(wrong, 200.0)
    assert isinstance(said, Explain)
    assert said.reason == "CreateContainerConfigError"
    assert "run-time" in said.message


def test_a_service_runs_for_ever_and_a_task_ends():
    assert step(running("Always"), 1e9) == Rest()
    assert step(running("Never"), 105.0) == Wait(110.0)
    assert step(running("Never"), 110.0) == Exit(0, False)
    assert step(running("OnFailure"), 110.0) == Exit(0, False)


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
    end = step(running(policy, run_time="3s", exit_code=code), 103.0)
    assert end == Exit(int(code), again)


def test_a_deadline_ends_a_pod_whatever_its_policy():
    late = running("OnFailure", run_time="1h").changed({"spec": {"activeDeadlineSeconds": 7}})
    assert step(late, 106.0) == Wait(107.0)
    assert step(late, 107.0) == Exit(1, False, "DeadlineExceeded")


def crashed(restarts: int) -> Object:
    waiting = {"waiting": {"reason": CRASH_LOOP}}
    status = {"name": "main", "state": waiting, "restartCount": restarts}
    return running().changed({"status": {"containerStatuses": [status]}})


def test_a_container_that_ended_comes_back_after_longer_and_longer_waits():
    assert step(crashed(0), 100.0) == Revive()
    assert step(crashed(1), 105.0) == Wait(110.0)
    assert step(crashed(1), 110.0) == Revive()
    assert [backoff_s(n) for n in range(8)] == [0, 10, 20, 40, 80, 160, 300, 300]


def test_a_deleted_pod_leaves_after_its_delay_and_within_its_grace():
    assert step(deleted(running()), 201.0, leaving_s=200.0) == Wait(202.0)
    assert step(deleted(running()), 202.0, leaving_s=200.0) == Leave()
    assert step(deleted(running(), grace_s=1), 201.0, leaving_s=200.0) == Leave()


def test_a_pod_that_never_ran_leaves_at_once():
    assert step(deleted(pod()), 100.0, leaving_s=100.0, lacking="claim c is not allocated") == Leave()


def test_a_finished_pod_rests_until_it_is_deleted():
    done = pod(status={"phase": "Succeeded"})
    assert step(done, 1e9) == Rest()
    assert step(deleted(done), 200.0, leaving_s=200.0) == Leave()


def test_a_pod_that_only_finalizers_hold_is_left_alone():
    held = deleted(pod(status={"phase": "Failed"}), grace_s=0)
    assert step(held, 200.0, leaving_s=200.0) == Rest()


@given(
    phase=st.sampled_from(["", "Pending", "Running", "Succeeded", "Failed"]),
    policy=st.sampled_from(["", "Always", "OnFailure", "Never"]),
    gone=st.booleans(),
    lacking=st.sampled_from(["", "claim c does not exist"]),
    now_s=st.floats(100, 1000),
    run=st.sampled_from([None, "0s", "7s"]),
)
def test_a_wait_is_for_a_later_moment_and_ends_in_a_step(phase, policy, gone, lacking, now_s, run):
    """Otherwise a pod would be looked at for ever at the same moment, or forgotten."""
    annotations: dict[str, Any] = {} if run is None else {"hollow.allot.dev/run-time": run}
    one = pod(metadata={"annotations": annotations}, spec={"restartPolicy": policy}, status={"phase": phase})
    one = deleted(one) if gone else one
    leaving_s = 100.0 if gone else None
    first = step(one, now_s, lacking=lacking, leaving_s=leaving_s)
    if isinstance(first, Wait):
        assert first.until_s > now_s
        assert not isinstance(step(one, first.until_s, lacking=lacking, leaving_s=leaving_s), Wait)
    if isinstance(first, Start):
        assert not lacking and not gone
