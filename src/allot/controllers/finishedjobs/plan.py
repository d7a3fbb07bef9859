"""When the time of a job is up. Pure."""

from datetime import datetime, timedelta

from allot.api import Object, age, meta

_ENDS = ("Complete", "Failed")


class JobSpec(meta.View, frozen=True):
    ttl_seconds_after_finished: int | None = None


class JobStatus(meta.View, frozen=True):
    conditions: tuple[meta.Condition, ...] = ()


class Job(meta.View, frozen=True):
    spec: JobSpec = JobSpec()
    status: JobStatus = JobStatus()


def expires_at(object: Object) -> datetime | None:
    """None: it has not ended, or may stay, or is going already."""
    job = object.view(Job)
    kept_s = job.spec.ttl_seconds_after_finished
    if kept_s is None or object.metadata.deletion_timestamp is not None:
        return None
    ends = [c for c in job.status.conditions if c.type in _ENDS and c.status == "True"]
    ended = age.moment(ends[0].last_transition_time) if ends else None
    return None if ended is None else ended + timedelta(seconds=kept_s)
