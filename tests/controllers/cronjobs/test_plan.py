"""When a job is due, decided over made-up clocks."""

from datetime import UTC, datetime
from typing import Any

import pytest

from allot.api import Object, encode
from allot.controllers.cronjobs.plan import job_for, name_for, plan, status

CREATED = "2026-05-01T10:00:30Z"


def at(clock: str) -> datetime:
    return datetime.fromisoformat(f"2026-05-01T{clock}+00:00")


def cron_job(last: str = "", **spec: Any) -> Object:
    metadata = {"name": "nightly", "namespace": "default", "uid": "cron", "creationTimestamp": CREATED}
    wanted = {"schedule": "*/10 * * * *", "jobTemplate": {"spec": {"template": {}}}, **spec}
    return Object(
        encode({"metadata": metadata, "spec": wanted, "status": {"lastScheduleTime": last} if last else {}})
    )


def job(name: str, end: str = "", start: str = "2026-05-01T09:00:00Z") -> Object:
    conditions = [{"type": end, "status": "True"}] if end else []
    told = {"startTime": start, "conditions": conditions}
    if end == "Complete":
        told["completionTime"] = start
    return Object(encode({"metadata": {"name": name, "namespace": "default", "uid": name}, "status": told}))


def test_a_new_cron_job_waits_for_its_first_time():
    steps = plan(cron_job(), [], at("10:05:00"))
    assert (steps.due, steps.again_s) == (None, 300)


def test_what_was_due_a_moment_ago_gets_its_job_once():
    steps = plan(cron_job(), [], at("10:10:00"))
    assert (steps.due, steps.again_s) == (at("10:10:00"), 600)
    assert plan(cron_job(last="2026-05-01T10:10:00Z"), [], at("10:10:01")).due is None


def test_jobs_that_a_status_names_without_a_uid_are_written_anew():
    wish = cron_job()
    odd = wish.changed({"status": {"active": [{"name": "a"}, {}, {"uid": "x"}]}})
    assert status(odd, [], None) == {"active": None, "lastScheduleTime": None, "lastSuccessfulTime": None}


def test_of_several_missed_times_only_the_last_gets_a_job():
    assert plan(cron_job(), [], at("10:59:00")).due == at("10:50:00")


def test_many_missed_times_are_told_and_the_last_is_made_good():
    steps = plan(cron_job(schedule="* * * * *"), [], at("13:30:00"))
    assert steps.due == at("13:30:00")
    assert [note.reason for note in steps.notes] == ["TooManyMissedTimes"]


def test_after_its_deadline_a_time_gets_no_job():
    late = cron_job(startingDeadlineSeconds=60)
    assert plan(late, [], at("10:11:00")).due == at("10:10:00")
    steps = plan(late, [], at("10:11:02"))
    assert (steps.due, steps.again_s) == (None, 538)


def test_a_deadline_of_nothing_is_one_too():
    strict = cron_job(startingDeadlineSeconds=0)
    assert plan(strict, [], at("10:10:00")).due == at("10:10:00")
    assert plan(strict, [], at("10:10:00.500")).due is None


def test_a_job_that_is_being_deleted_still_runs():
    """Forbid waits until it is gone; Replace has told it to go already."""
    ending = job("runs").changed({"metadata": {"deletionTimestamp": CREATED}})
    assert plan(cron_job(concurrencyPolicy="Forbid"), [ending], at("10:10:00")).due is None
    steps = plan(cron_job(concurrencyPolicy="Replace"), [ending], at("10:10:00"))
    assert (steps.due, steps.replace) == (at("10:10:00"), ())


def test_a_suspended_cron_job_starts_nothing_and_still_forgets():
    steps = plan(cron_job(suspend=True, successfulJobsHistoryLimit=0), [job("a", "Complete")], at("10:10:00"))
    assert (steps.due, [one.name for one in steps.forget], steps.again_s) == (None, ["a"], None)


@pytest.mark.parametrize(
    ("policy", "due", "replaced"),
    [("Allow", True, []), ("Forbid", False, []), ("Replace", True, ["runs"])],
)
def test_beside_a_job_that_runs(policy, due, replaced):
    jobs = [job("runs"), job("done", "Complete")]
    steps = plan(cron_job(concurrencyPolicy=policy), jobs, at("10:10:00"))
    assert (steps.due is not None, [one.name for one in steps.replace]) == (due, replaced)
    assert ("JobAlreadyActive" in [note.reason for note in steps.notes]) == (not due)


def test_a_job_that_was_made_and_not_recorded_is_recorded_also_where_no_other_may_begin():
    forbidding = cron_job(concurrencyPolicy="Forbid")
    made = job(name_for(forbidding, at("10:10:00")))
    steps = plan(forbidding, [made], at("10:10:05"))
    assert steps.due == at("10:10:00")
    told = status(forbidding, [made], steps.due)
    assert told is not None
    assert told["lastScheduleTime"] == "2026-05-01T10:10:00Z"
    assert [one["name"] for one in told["active"]] == [made.name]


def made_for(cron_job: Object, clock: str) -> Object:
    made = job_for(cron_job, at(clock))
    return Object(encode({**made, "metadata": {**made["metadata"], "uid": made["metadata"]["name"]}}))


@pytest.mark.parametrize("policy", ["Allow", "Forbid", "Replace"])
def test_a_job_of_a_leader_whose_clock_was_ahead_is_recorded_and_stays_the_only_one_of_its_time(policy):
    """The leader that follows is at 10:15, and finds the job of 10:20, which the status does not name. It
    replaced that job by one for 10:10, and at 10:20 the time had a second one (CRON1)."""
    asked = cron_job(concurrencyPolicy=policy)
    ahead = made_for(asked, "10:20:00")
    steps = plan(asked, [ahead], at("10:15:00"))
    assert (steps.due, steps.replace) == (at("10:20:00"), ())
    told = status(asked, [ahead], steps.due)
    assert told is not None
    assert told["lastScheduleTime"] == "2026-05-01T10:20:00Z"
    recorded = asked.changed({"status": told})
    for clock in ("10:15:00", "10:20:00", "10:29:59"):
        later = plan(recorded, [ahead], at(clock))
        assert (later.due, later.replace) == (None, ())
    assert plan(recorded, [], at("10:30:00")).due == at("10:30:00")


def test_a_job_that_ended_unrecorded_is_recorded_also_of_a_cron_job_that_is_suspended():
    """Else it goes with the history, and its time is due again."""
    asked = cron_job(suspend=True, successfulJobsHistoryLimit=0)
    done = made_for(asked, "10:10:00")
    assert plan(asked, [done], at("10:15:00")).due == at("10:10:00")


@pytest.mark.parametrize("time", [None, "2026-05-01T10:20:00Z", "soon", ""])
def test_a_job_that_somebody_made_by_hand_is_of_no_time(time):
    """kubectl create job --from: the cron job controls it, and its name follows from nothing."""
    annotations = {} if time is None else {"batch.kubernetes.io/cronjob-scheduled-timestamp": time}
    by_hand = job("nightly-by-hand", "Complete").changed({"metadata": {"annotations": annotations}})
    assert plan(cron_job(), [by_hand], at("10:10:00")).due == at("10:10:00")


def test_the_oldest_beyond_the_history_go_by_how_they_ended():
    days = [f"2026-04-{day:02}T00:00:00Z" for day in range(1, 6)]
    good = [job(f"good-{n}", "Complete", days[n]) for n in (2, 0, 1)]
    bad = [job(f"bad-{n}", "Failed", days[n]) for n in (1, 0)]
    asked = cron_job(successfulJobsHistoryLimit=1, failedJobsHistoryLimit=1)
    steps = plan(asked, [*good, *bad, job("runs")], at("10:05:00"))
    assert sorted(one.name for one in steps.forget) == ["bad-0", "good-0", "good-1"]


def test_the_job_says_for_which_time_it_is_in_the_zone_of_its_cron_job():
    berlin = cron_job(timeZone="Europe/Berlin", schedule="0 12 * * *")
    steps = plan(berlin, [], at("10:00:31"))
    assert steps.due is None
    due = datetime(2026, 5, 2, 10, tzinfo=UTC)
    made = job_for(berlin, due)
    annotation = "batch.kubernetes.io/cronjob-scheduled-timestamp"
    assert made["metadata"]["annotations"][annotation] == "2026-05-02T12:00:00+02:00"
    assert made["metadata"]["name"] == f"nightly-{int(due.timestamp()) // 60}"


def test_a_schedule_that_never_comes_waits_for_nothing():
    steps = plan(cron_job(schedule="0 0 31 2 *"), [], at("10:10:00"))
    assert (steps.due, steps.again_s) == (None, None)
