"""Jobs are counted exactly.

JOB1: What a job says has succeeded is what has succeeded, each pod counted once. A pod that was told to end
      and succeeded all the same may have been counted as failed by then.
JOB2: A job ends once: complete or failed, never both; afterwards it makes no pods. One that was asked for
      before may come late, and does not run on. Until then something runs, or a failure was so lately that
      the next attempt is still to come.
"""

import math
from collections.abc import Iterator

from ..recording import Seen
from .live import LiveObjects
from .reading import Fields, controller, is_active, is_leaving, name_of

LATE_S = 60.0
BACKOFF_S, BACKOFF_S_MAX = 10.0, 600.0
INDEX = "batch.kubernetes.io/job-completion-index"


class Jobs:
    follows = ("jobs", "pods")

    def __init__(self, until_s: float = math.inf) -> None:
        """`until_s` is when the history ended."""
        self._until_s = until_s
        self._now = LiveObjects(*self.follows)
        self._succeeded: dict[str, dict[str, str]] = {}  # job uid -> pod uid -> its index, or itself
        self._told: set[str] = set()  # uids of pods that were told to end before
        self._failed_at_s: dict[str, dict[str, float]] = {}  # job uid -> pod uid -> when that was heard
        self._ended: dict[str, str] = {}  # job uid -> how
        self._ended_at_s: dict[str, float] = {}

    def see(self, seen: Seen) -> Iterator[str]:
        self._now.see(seen)
        if seen.resource == "jobs":
            yield from self._job(seen)
            return
        job = controller(seen.fields)
        if seen.type == "ADDED" and seen.at_s > self._ended_at_s.get(job, seen.at_s) + LATE_S:
            yield f"JOB2: pod {seen.object.name} was made for a job that had ended"
        phase = (seen.fields.get("status") or {}).get("phase")
        if phase == "Failed":
            self._failed_at_s.setdefault(job, {}).setdefault(seen.object.uid, seen.at_s)
        if phase == "Succeeded":
            index = (seen.fields["metadata"].get("annotations") or {}).get(INDEX)
            self._succeeded.setdefault(job, {}).setdefault(seen.object.uid, index or seen.object.uid)
        elif is_leaving(seen.fields):
            self._told.add(seen.object.uid)

    def _job(self, seen: Seen) -> Iterator[str]:
        ends = [how for how in ("Complete", "Failed") if has(seen.fields, how)]
        if len(ends) > 1:
            yield f"JOB2: job {seen.object.name} is complete and has failed"
        known = self._ended.get(seen.object.uid)
        if known is not None and known not in ends:
            yield f"JOB2: job {seen.object.name} had ended as {known}"
        if ends:
            self._ended[seen.object.uid] = ends[0]
            self._ended_at_s.setdefault(seen.object.uid, seen.at_s)

    def rest(self) -> Iterator[str]:
        for job in self._now.all("jobs"):
            if is_leaving(job):
                continue
            uid, name = job["metadata"]["uid"], name_of(job)
            found = self._succeeded.get(uid, {})
            sure = {done for pod, done in found.items() if pod not in self._told}
            said = (job.get("status") or {}).get("succeeded", 0)
            if not len(sure) <= said <= len(set(found.values())):
                yield f"JOB1: of job {name} {len(sure)} have succeeded, and it says {said}"
            active = sum(map(is_active, self._now.of("pods", uid)))
            may_rest = active or job["spec"].get("suspend") or self._backs_off(uid)
            if uid not in self._ended and not may_rest:
                yield f"JOB2: job {name} has not ended, and nothing runs"
            if uid in self._ended and active:
                yield f"JOB2: job {name} has ended, and {active} of its pods go on"

    def _backs_off(self, job: str) -> bool:
        failed_at_s = self._failed_at_s.get(job, {}).values()
        wait_s = min(BACKOFF_S_MAX, BACKOFF_S * 2.0 ** (len(failed_at_s) - 1))
        return self._until_s < max(failed_at_s, default=-math.inf) + wait_s


def has(job: Fields, condition: str) -> bool:
    conditions = (job.get("status") or {}).get("conditions") or ()
    return any(one["type"] == condition and one["status"] == "True" for one in conditions)
