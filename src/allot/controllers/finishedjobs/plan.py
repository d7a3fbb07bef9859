"""How long a job may still stay. Pure."""

from datetime import datetime

from allot.api import Object, age, meta

_ENDS = ("Complete", "Failed")


class JobSpec(meta.View, frozen=True):
    ttl_seconds_after_finished: int | None = None


class JobStatus(meta.View, frozen=True):
    conditions: tuple[meta.Condition, ...] = ()


class Job(meta.View, frozen=True):
    spec: JobSpec = JobSpec()
    status: JobStatus = JobStatus()


def stays_s(object: Object, now: datetime) -> float | None:
    """0 or less when its time is up. None: it has not ended, or may stay, or is going already."""
    job = object.view(Job)
    kept_s = job.spec.ttl_seconds_after_finished
    if kept_s is None or object.metadata.deletion_timestamp is not None:
        return None
    ends = [c for c in job.status.conditions if c.type in _ENDS and c.status == "True"]
    ended = age.moment(ends[0].last_transition_time) if ends else None
    return None if ended is None else kept_s - (now - ended).total_seconds()
