"""Whether a job is due, which jobs go, and how the cron job stands. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Any

from allot.api import Object, age, cron

from ..workloads import reference
from .views import CronJob, cron_job_of, job_of

SCHEDULED = "batch.kubernetes.io/cronjob-scheduled-timestamp"
MISSED_MANY = 100
"""More than this look like a clock that jumped, or a pause of days: an event says so."""


@dataclass(frozen=True, slots=True)
class Note:
    """Something to tell in an event."""

    is_warning: bool
    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class CronJobPlan:
    due: datetime | None = None  # a job for this time is to be made, or was and is to be recorded
    replace: tuple[Object, ...] = ()  # before that, these go
    forget: tuple[Object, ...] = ()  # beyond the history that is kept
    notes: tuple[Note, ...] = ()
    again_s: float | None = None


def plan(cron_job: Object, jobs: Sequence[Object], now: datetime) -> CronJobPlan:
    view = cron_job_of(cron_job)
    if cron_job.metadata.deletion_timestamp is not None:
        return CronJobPlan()
    forget = (*_beyond(jobs, view.spec.successful_jobs_history_limit, succeeded=True),
              *_beyond(jobs, view.spec.failed_jobs_history_limit, succeeded=False))  # fmt: skip
    made = _unrecorded(cron_job, jobs)
    if made is not None:
        return CronJobPlan(made, forget=forget)  # the record of it brings the cron job here again
    if view.spec.suspend:
        return CronJobPlan(forget=forget)
    try:
        schedule = cron.parse(view.spec.schedule, zone_of(view))
    except (cron.BadSchedule, cron.UnknownZone) as wrong:
        return CronJobPlan(forget=forget, notes=(Note(True, "UnparseableSchedule", str(wrong)),))
    following = schedule.next_after(now)
    again_s = None if following is None else (following - now).total_seconds()
    begin = _counting_from(view, now)
    due = schedule.last_until(now, begin)
    if due is None:
        if isinstance(first := schedule.next_after(begin), datetime):
            again_s = (first - now).total_seconds()
        return CronJobPlan(forget=forget, again_s=again_s)
    notes = _missed(schedule, begin, now)
    deadline_s = view.spec.starting_deadline_seconds
    if deadline_s is not None and (now - due).total_seconds() > deadline_s:
        text = f"the job for {age.timestamp(due)} was not started in time"
        late = Note(True, "MissSchedule", text)
        return CronJobPlan(forget=forget, notes=(*notes, late), again_s=again_s)
    if any(one.name == name_for(cron_job, due) for one in jobs):
        return CronJobPlan(due, forget=forget, notes=notes, again_s=again_s)  # made, and not yet recorded
    active = [one for one in jobs if not job_of(one).is_finished]
    if active and view.spec.concurrency_policy == "Forbid":
        busy = Note(False, "JobAlreadyActive", f"not started while {active[0].name} runs")
        return CronJobPlan(forget=forget, notes=(*notes, busy), again_s=again_s)
    running = tuple(one for one in active if one.metadata.deletion_timestamp is None)
    replace = running if view.spec.concurrency_policy == "Replace" else ()
    return CronJobPlan(due, replace, forget, notes, again_s)


def _unrecorded(cron_job: Object, jobs: Iterable[Object]) -> datetime | None:
    """The last time that has a job and is not in the status yet.

    It goes there before anything else is done: once its job is gone, nothing else tells that it had one. The
    copy that made the job may have died since, and its clock may have been ahead of ours.
    """
    recorded = age.moment(cron_job_of(cron_job).status.last_schedule_time)
    last = max((time for job in jobs if (time := _time_of(cron_job, job)) is not None), default=None)
    return last if last is not None and (recorded is None or last > recorded) else None


def _time_of(cron_job: Object, job: Object) -> datetime | None:
    """The time that a job was made for; None if somebody made it by hand, or copied it."""
    time = age.moment((job.metadata.annotations or {}).get(SCHEDULED, ""))
    return time if time is not None and job.name == name_for(cron_job, time) else None


def zone_of(view: CronJob) -> tzinfo:
    return cron.time_zone(view.spec.time_zone) if view.spec.time_zone is not None else UTC


def _counting_from(view: CronJob, now: datetime) -> datetime:
    """Times up to here are over: they had their job, or are too old to get one."""
    begin = age.moment(view.status.last_schedule_time) or age.moment(view.metadata.creation_timestamp) or now
    deadline_s = view.spec.starting_deadline_seconds
    if deadline_s is None:
        return begin
    try:
        return max(begin, now - timedelta(seconds=deadline_s + 1))
    except OverflowError:  # a deadline of thousands of years
        return begin


def _missed(schedule: cron.Schedule, begin: datetime, now: datetime) -> tuple[Note, ...]:
    count, due = 0, schedule.next_after(begin)
    while due is not None and due <= now:
        count, due = count + 1, schedule.next_after(due)
        if count > MISSED_MANY:
            text = (
                f"more than {MISSED_MANY} start times were missed; only the last is made good. "
                "Set or lower .spec.startingDeadlineSeconds, or check the clocks"
            )
            return (Note(True, "TooManyMissedTimes", text),)
    return ()


def _beyond(jobs: Iterable[Object], limit: int | None, *, succeeded: bool) -> list[Object]:
    """The oldest of those that ended so."""
    if limit is None:
        return []
    staying = [one for one in jobs if one.metadata.deletion_timestamp is None]
    ended = [one for one in staying if (job_of(one).has_succeeded if succeeded else job_of(one).has_failed)]
    ended.sort(key=lambda one: (job_of(one).status.start_time, one.name))
    return ended[: max(0, len(ended) - limit)]


def name_for(cron_job: Object, due: datetime) -> str:
    """One name a time, so that no time gets two jobs."""
    return f"{cron_job.name}-{int(due.timestamp()) // 60}"


def job_for(cron_job: Object, due: datetime) -> dict[str, Any]:
    template: Mapping[str, Any] = cron_job.fields["spec"].get("jobTemplate") or {}
    given = template.get("metadata") or {}
    shown = due.astimezone(zone_of(cron_job_of(cron_job))).isoformat(timespec="seconds")
    metadata: dict[str, Any] = {
        "name": name_for(cron_job, due),
        "namespace": cron_job.namespace,
        "annotations": {**(given.get("annotations") or {}), SCHEDULED: shown.replace("+00:00", "Z")},
        "ownerReferences": [reference(cron_job)],
    }
    if given.get("labels"):
        metadata["labels"] = given["labels"]
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": metadata,
        "spec": template.get("spec") or {},
    }


def status(cron_job: Object, jobs: Sequence[Object], started: datetime | None) -> dict[str, Any] | None:
    """The status as it should be, or None when it already is. `started`: the time whose job was made."""
    view = cron_job_of(cron_job)
    active = sorted((one for one in jobs if not job_of(one).is_finished), key=lambda one: one.name)
    succeeded = [job_of(one).status.completion_time for one in jobs if job_of(one).has_succeeded]
    last = age.timestamp(started) if started is not None else view.status.last_schedule_time
    wanted = {
        "active": [_pointer(one) for one in active] or None,
        "lastScheduleTime": last or None,
        "lastSuccessfulTime": max((*succeeded, view.status.last_successful_time)) or None,
    }
    before = cron_job.fields.get("status") or {}
    named = [one.get("uid") or "" for one in before.get("active") or ()]
    same = sorted(named) == sorted(one.uid for one in active)
    same = same and all(
        before.get(name) == wanted[name] for name in ("lastScheduleTime", "lastSuccessfulTime")
    )
    return None if same else wanted


def _pointer(job: Object) -> dict[str, Any]:
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "name": job.name,
        "namespace": job.namespace,
        "uid": job.uid,
        "resourceVersion": job.resource_version,
    }
