"""Counting finished pods exactly once, across crashes. Pure.

A pod that has finished keeps a finalizer until it is counted. Three steps, each of which
may be repeated and each written before the next is taken:

    1  its uid is noted in status.uncountedTerminatedPods
    2  the finalizer is taken off
    3  the uid is dropped, and in the same write the counter goes up

So whoever takes over in the middle finds either the uid or the finalizer, and never
counts a pod twice or not at all (JOB1). That needs pods that are no older than the job: a pod
that was noted by somebody else and is not known here yet looks as if its finalizer were gone,
and one that was counted since looks as if it were still to be noted.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from allot.api import Object

from . import indexes
from .views import Job, has_failed, has_succeeded, index_of, is_tracked


@dataclass(frozen=True, slots=True)
class Tally:
    succeeded: int  # counted, with this pass
    failed: int
    completed: frozenset[int]  # indexes, likewise
    waiting_succeeded: tuple[str, ...]  # uids noted and not yet counted
    waiting_failed: tuple[str, ...]
    waiting_indexes: frozenset[int]
    release: tuple[Object, ...]  # noted by an earlier write: the finalizer may go

    @property
    def all_succeeded(self) -> int:
        return self.succeeded + len(self.waiting_succeeded)

    @property
    def all_failed(self) -> int:
        return self.failed + len(self.waiting_failed)

    @property
    def all_completed(self) -> frozenset[int]:
        return self.completed | self.waiting_indexes

    @property
    def is_settled(self) -> bool:
        return not (self.waiting_succeeded or self.waiting_failed)


def hangs_on_pods(job: Job, pods: Sequence[Object]) -> bool:
    """Whether something would be noted or counted by what these pods are like."""
    found = tally(job, pods)
    noted = job.status.uncounted_terminated_pods
    return (found.waiting_succeeded, found.waiting_failed) != (noted.succeeded, noted.failed)


def tally(job: Job, pods: Sequence[Object]) -> Tally:
    by_uid = {pod.uid: pod for pod in pods}
    noted = job.status.uncounted_terminated_pods

    def holds(uid: str) -> bool:
        return uid in by_uid and is_tracked(by_uid[uid])

    done = [uid for uid in noted.succeeded if not holds(uid)]
    lost = [uid for uid in noted.failed if not holds(uid)]
    known = {*noted.succeeded, *noted.failed}
    only_failed = job.spec.pod_replacement_policy == "Failed"
    fresh = [pod for pod in pods if is_tracked(pod) and pod.uid not in known]
    succeeded = [pod.uid for pod in fresh if has_succeeded(pod)]
    failed = [pod.uid for pod in fresh if has_failed(pod, only_failed)]
    waiting = (*(uid for uid in noted.succeeded if holds(uid)), *succeeded)
    completed = _completed(job, by_uid, noted.succeeded)
    mine = frozenset(i for uid in waiting if (i := index_of(by_uid[uid])) is not None)
    return Tally(
        len(completed) if job.is_indexed else job.status.succeeded + len(done),
        job.status.failed + len(lost),
        completed,
        waiting,
        (*(uid for uid in noted.failed if holds(uid)), *failed),
        mine - completed if job.is_indexed else frozenset(),
        tuple(by_uid[uid] for uid in (*noted.succeeded, *noted.failed) if holds(uid)),
    )


def _completed(job: Job, by_uid: dict[str, Object], noted: Sequence[str]) -> frozenset[int]:
    """Indexes are noted as completed together with the uid: a set cannot count twice."""
    if not job.is_indexed:
        return frozenset()
    within = range(job.spec.completions or 0)
    found = indexes.parse(job.status.completed_indexes, len(within))
    found.update(i for uid in noted if uid in by_uid and (i := index_of(by_uid[uid])) is not None)
    return frozenset(one for one in found if one in within)
