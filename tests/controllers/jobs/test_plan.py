"""Indexes, backoff and counting as values."""

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from allot.api import Object, age, encode, meta
from allot.controllers.jobs import indexes
from allot.controllers.jobs.counting import tally
from allot.controllers.jobs.plan import backoff_s, plan
from allot.controllers.jobs.views import TRACKING, Job

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def pod(uid: str, phase: str, tracked: bool = True, ended_s: float = 0) -> Object:
    metadata = {"name": uid, "uid": uid, "finalizers": [TRACKING] if tracked else []}
    at = age.timestamp(NOW - timedelta(seconds=ended_s))
    status = {"phase": phase, "containerStatuses": [{"state": {"terminated": {"finishedAt": at}}}]}
    return Object(encode({"metadata": metadata, "status": status}))


@given(st.sets(st.integers(0, 60)))
def test_indexes_read_as_they_were_written(found):
    assert indexes.parse(indexes.show(found)) == found


def test_indexes_that_are_none_count_for_nothing():
    """A status says what whoever may write it put there."""
    assert indexes.parse("0,a,-,3-,-1,2-1,5-x,,1e9,7-8, 9", 100) == {0, 7, 8}
    assert indexes.parse("0-99999999999999999999,2147483647") == set()
    assert indexes.parse("3-2147483647", 6) == {3, 4, 5}
    assert len(indexes.parse("0-2147483647,5-2147483646", 2**31 - 1)) == indexes.UNFOLDED_MAX


def test_indexes_look_as_people_know_them():
    assert indexes.show([0, 2, 3, 5, 6, 7]) == "0,2,3,5-7"


def test_failures_in_a_row_double_the_wait():
    failed = [pod(f"f{n}", "Failed", ended_s=5 + n) for n in range(3)]
    assert backoff_s(failed[:1], False, NOW) == 5
    assert backoff_s(failed, False, NOW) == 35
    assert backoff_s([*failed, pod("ok", "Succeeded", ended_s=1)], False, NOW) == 0
    assert backoff_s([pod(f"f{n}", "Failed") for n in range(2000)], False, NOW) == 600


def test_nobody_waits_for_a_clock_that_is_behind():
    """The pod ended ten minutes from now, as its node tells; it has been known for four seconds."""
    ahead = pod("f", "Failed", ended_s=-600)
    assert backoff_s([ahead], False, NOW) == 10
    assert backoff_s([ahead], False, NOW, lambda pod: 4.0) == 6
    assert backoff_s([pod("f", "Failed", ended_s=7)], False, NOW, lambda pod: 4.0) == 3


def test_a_deadline_beyond_the_last_date_is_no_deadline():
    """Any number that the API accepts."""
    started = {"startTime": age.timestamp(NOW - timedelta(seconds=5))}
    spec = {"completions": 1, "activeDeadlineSeconds": 2**63 - 1}
    job = Object(encode({"metadata": {"name": "j", "uid": "u"}, "spec": spec, "status": started}))
    steps = plan(job, [], NOW)
    assert steps.create == (None,)
    assert steps.again_s is not None and steps.again_s > 10**18


def test_a_condition_without_a_type_is_kept_and_stumbles_nobody():
    status = {"conditions": [{"status": "True"}]}
    spec = {"completions": 1, "suspend": True}
    job = Object(encode({"metadata": {"name": "j", "uid": "u"}, "spec": spec, "status": status}))
    told = plan(job, [], NOW).status
    assert told is not None and [one.get("type") for one in told["conditions"]] == [None, "Suspended"]


class Server:
    """Applies what a tally wants in the order of the three steps, and may stop anywhere."""

    def __init__(self, phases: list[str]) -> None:
        self.pods = {f"p{n}": pod(f"p{n}", phase) for n, phase in enumerate(phases)}
        self.status: dict = {}

    def step(self, removes: bool, forgets: bool) -> None:
        job = meta.view(Job, {"status": self.status})
        found = tally(job, list(self.pods.values()))
        self.status = {
            "succeeded": found.succeeded,
            "failed": found.failed,
            "uncountedTerminatedPods": {
                "succeeded": list(found.waiting_succeeded),
                "failed": list(found.waiting_failed),
            },
        }
        if removes:
            for one in found.release:
                if forgets:
                    del self.pods[one.uid]
                else:
                    phase = one.fields["status"]["phase"]
                    self.pods[one.uid] = pod(one.uid, phase, tracked=False)


@given(
    st.lists(st.sampled_from(["Succeeded", "Failed"]), max_size=6),
    st.lists(st.tuples(st.booleans(), st.booleans()), max_size=8),
)
def test_each_pod_is_counted_once_wherever_the_work_stops(phases, steps):
    """JOB1: passes that end before the finalizers go, pods that vanish at once."""
    server = Server(phases)
    for removes, forgets in [*steps, (True, False), (True, False), (True, False)]:
        server.step(removes, forgets)
    assert (server.status["succeeded"], server.status["failed"]) == (
        phases.count("Succeeded"),
        phases.count("Failed"),
    )
    assert server.status["uncountedTerminatedPods"] == {"succeeded": [], "failed": []}
