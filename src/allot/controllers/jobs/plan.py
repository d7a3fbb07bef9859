"""What a job needs next: pods, an end, or time. Pure."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from allot.api import Object, age

from ..workloads import deletion_order, is_active, is_ready
from . import indexes
from .counting import Tally, tally
from .views import Job, has_failed, has_succeeded, index_of, job_of, pod_of

BACKOFF_S, BACKOFF_S_MAX = 10.0, 600.0
_DOUBLINGS_MAX = 10  # more than enough for the longest wait, whatever the number of failures
BURST = 500


@dataclass(frozen=True, slots=True)
class JobPlan:
    status: dict[str, Any] | None = None
    create: tuple[int | None, ...] = ()  # an index each, where the job is indexed
    delete: tuple[Object, ...] = ()
    release: tuple[Object, ...] = ()
    again_s: float | None = None


@dataclass(frozen=True, slots=True)
class Verdict:
    """How a job ends, and why."""

    is_success: bool
    reason: str
    message: str


@dataclass(slots=True)
class _Draft:
    """The status while it is being worked out."""

    conditions: list[dict[str, Any]]
    now: str
    start_time: str
    completion_time: str = ""

    def set(self, type: str, is_so: bool, reason: str, message: str) -> None:
        status = "True" if is_so else "False"
        for one in self.conditions:
            if one.get("type") == type:
                if one.get("status") != status:
                    one.update(status=status, reason=reason, message=message)
                    one.update(lastTransitionTime=self.now, lastProbeTime=self.now)
                return
        said = {"type": type, "status": status, "reason": reason, "message": message}
        self.conditions.append({**said, "lastTransitionTime": self.now, "lastProbeTime": self.now})


KnownFor = Callable[[Object], float]
"""For how many seconds it has been known that a pod ended."""


def plan(
    object: Object, pods: Sequence[Object], now: datetime, known_for_s: KnownFor = lambda pod: 0.0
) -> JobPlan:
    job, found = job_of(object), tally(job_of(object), pods)
    active = [pod for pod in pods if is_active(pod)]
    if job.is_finished:
        status = _status(object, job, found, active, pods, _draft(object, job, now))
        return JobPlan(status, delete=tuple(active), release=found.release)
    if job.metadata.deletion_timestamp:
        status = _status(object, job, found, active, pods, _draft(object, job, now))
        return JobPlan(status, release=found.release)
    draft = _draft(object, job, now)
    verdict = judge(job, found, active, now)
    create: tuple[int | None, ...] = ()
    delete: tuple[Object, ...] = ()
    again_s = None
    if verdict is not None:
        delete = tuple(active)
        _end(draft, verdict, not (delete or _leaving(pods)) and found.is_settled)
    elif job.spec.suspend:
        delete = tuple(active)
        draft.set("Suspended", True, "JobSuspended", "the job is suspended")
        draft.start_time = ""
    else:
        if job.has("Suspended"):
            draft.set("Suspended", False, "JobResumed", "the job goes on")
        draft.start_time = draft.start_time or draft.now
        create, delete, again_s = _pods(job, found, active, pods, now, known_for_s)
        again_s = _soonest(again_s, _deadline_in_s(job, now))
    status = _status(object, job, found, active, pods, draft)
    return JobPlan(status, create, delete, found.release, again_s)


def judge(job: Job, found: Tally, active: Sequence[Object], now: datetime) -> Verdict | None:
    """Has it succeeded, or failed for good? What was decided once stays so."""
    for type, is_success in (("FailureTarget", False), ("SuccessCriteriaMet", True)):
        decided = job.has(type)
        if decided is not None:
            return Verdict(is_success, decided.reason, decided.message)
    if found.all_failed > job.spec.backoff_limit or _restarts_too_often(job, active):
        return Verdict(False, "BackoffLimitExceeded", "the job has failed as often as it may, and once more")
    left_s = _deadline_in_s(job, now)
    if left_s is not None and left_s <= 0 and not job.spec.suspend:
        return Verdict(False, "DeadlineExceeded", "the job was active for longer than it may be")
    if job.spec.completions is None:
        is_done = found.all_succeeded > 0 and not active
    else:
        done = len(found.all_completed) if job.is_indexed else found.all_succeeded
        is_done = done >= job.spec.completions
    return Verdict(True, "CompletionsReached", "as many pods as needed have succeeded") if is_done else None


def _restarts_too_often(job: Job, active: Sequence[Object]) -> bool:
    views = [pod_of(pod) for pod in active]
    if not any(view.spec.restart_policy == "OnFailure" for view in views):
        return False
    statuses = [one for view in views for one in view.status.container_statuses]
    statuses += [one for view in views for one in view.status.init_container_statuses]
    restarts = sum(one.restart_count for one in statuses)
    return restarts > 0 if not job.spec.backoff_limit else restarts >= job.spec.backoff_limit


def _pods(
    job: Job,
    found: Tally,
    active: Sequence[Object],
    pods: Sequence[Object],
    now: datetime,
    known_for_s: KnownFor,
) -> tuple[tuple[int | None, ...], tuple[Object, ...], float | None]:
    """Which pods to make and to delete, and when pods may be made again after failures."""
    wanted, doubles = _wanted(job, found, active), _doubles(job, found, active)
    usable = len(active) - len(doubles)
    if usable > wanted:
        spare = [pod for pod in active if pod not in doubles]
        return (), (*doubles, *deletion_order(spare, spare)[: usable - wanted]), None
    held = _leaving(pods) if job.spec.pod_replacement_policy == "Failed" else 0
    count = min(max(0, wanted - usable - held), BURST)
    wait_s = backoff_s(pods, job.spec.pod_replacement_policy == "Failed", now, known_for_s)
    if count and wait_s > 0:
        return (), tuple(doubles), wait_s
    return _places(job, found, active, count), tuple(doubles), None


def _wanted(job: Job, found: Tally, active: Sequence[Object]) -> int:
    if job.spec.completions is None:
        return len(active) if found.all_succeeded else job.spec.parallelism
    done = len(found.all_completed) if job.is_indexed else found.all_succeeded
    return min(job.spec.parallelism, job.spec.completions - done)


def _doubles(job: Job, found: Tally, active: Sequence[Object]) -> list[Object]:
    """Of an indexed job: pods of an index that is done, that does not exist, or that is taken."""
    if not job.is_indexed:
        return []
    taken, doubles = set(found.all_completed), []
    for pod in sorted(active, key=lambda one: (not is_ready(one), one.metadata.creation_timestamp or "")):
        index = index_of(pod)
        if index is None or index in taken or index >= (job.spec.completions or 0):
            doubles.append(pod)
        else:
            taken.add(index)
    return doubles


def _places(job: Job, found: Tally, active: Sequence[Object], count: int) -> tuple[int | None, ...]:
    if not job.is_indexed:
        return (None,) * count
    taken = found.all_completed | {index_of(pod) for pod in active}
    free = (index for index in range(job.spec.completions or 0) if index not in taken)
    return tuple(index for _, index in zip(range(count), free, strict=False))


def backoff_s(
    pods: Sequence[Object], only_failed: bool, now: datetime, known_for_s: KnownFor = lambda pod: 0.0
) -> float:
    """How long to wait: ten seconds after the first failure since the last success, then double.

    When a pod ended is told by the clock of its node. Where that is ahead of ours nobody waits for
    ours to catch up: the pod ended no later than it became known.
    """
    ended = [pod for pod in pods if has_succeeded(pod) or has_failed(pod, only_failed)]
    ended.sort(key=lambda pod: (_end_of(pod), has_succeeded(pod)))
    failures = 0
    for pod in reversed(ended):
        if has_succeeded(pod):
            break
        failures += 1
    last = age.moment(_end_of(ended[-1])) if failures else None
    if last is None:
        return 0.0
    wait_s = min(BACKOFF_S_MAX, BACKOFF_S * 2.0 ** min(failures - 1, _DOUBLINGS_MAX))
    return wait_s - max((now - last).total_seconds(), known_for_s(ended[-1]))


def _end_of(pod: Object) -> str:
    view = pod_of(pod)
    states = [one.state.terminated for one in view.status.container_statuses]
    ends = [state.finished_at for state in states if state is not None and state.finished_at]
    ready = [one.last_transition_time for one in view.status.conditions if one.type == "Ready"]
    return max(ends, default=max(ready, default=view.metadata.creation_timestamp))


def _leaving(pods: Sequence[Object]) -> int:
    return sum(pod.metadata.deletion_timestamp is not None and not pod_of(pod).is_finished for pod in pods)


def _deadline_in_s(job: Job, now: datetime) -> float | None:
    limit, start = job.spec.active_deadline_seconds, age.moment(job.status.start_time)
    if limit is None or start is None:
        return None
    return limit - (now - start).total_seconds()  # no date: the limit may lie beyond the last one


def _soonest(*waits: float | None) -> float | None:
    known = [max(0.01, one) for one in waits if one is not None]
    return min(known, default=None)


# -- the status ---------------------------------------------------------------------------------


def _draft(object: Object, job: Job, now: datetime) -> _Draft:
    conditions = [dict(one) for one in (object.fields.get("status") or {}).get("conditions") or ()]
    return _Draft(conditions, age.timestamp(now), job.status.start_time, job.status.completion_time)


def _end(draft: _Draft, verdict: Verdict, is_over: bool) -> None:
    """First the decision, and the end once no pod is left that could still do something."""
    first, last = ("SuccessCriteriaMet", "Complete") if verdict.is_success else ("FailureTarget", "Failed")
    draft.set(first, True, verdict.reason, verdict.message)
    if is_over:
        draft.set(last, True, verdict.reason, verdict.message)
        if verdict.is_success:
            draft.completion_time = draft.now


def _status(
    object: Object, job: Job, found: Tally, active: Sequence[Object], pods: Sequence[Object], draft: _Draft
) -> dict[str, Any] | None:
    """The status as it should be, or None when it already is."""
    uncounted = {"succeeded": [*found.waiting_succeeded], "failed": [*found.waiting_failed]}
    wanted: dict[str, Any] = {
        "active": len(active),
        "ready": sum(map(is_ready, active)),
        "terminating": _leaving(pods),
        "succeeded": found.succeeded,
        "failed": found.failed,
        "uncountedTerminatedPods": {name: uids or None for name, uids in uncounted.items()},
        "conditions": draft.conditions or None,
        "startTime": draft.start_time or None,
        "completionTime": draft.completion_time or None,
    }
    if job.is_indexed:
        wanted["completedIndexes"] = indexes.show(found.completed) or None
    before = object.fields.get("status") or {}
    same = all(_plain(before.get(name)) == _plain(value) for name, value in wanted.items())
    return None if same else wanted


def _plain(value: Any) -> Any:
    """Absent, null, empty and zero are the same."""
    if isinstance(value, dict):
        return {name: _plain(inner) for name, inner in value.items() if _plain(inner)} or None
    return value or None
