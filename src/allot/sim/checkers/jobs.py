"""Jobs are counted exactly.

J1  What a job says has succeeded is what has succeeded, each pod counted once. A pod that was told to end
    and succeeded all the same may have been counted as failed by then.
J2  A job ends once: complete or failed, never both; afterwards it makes no pods. One that was asked for
    before may come late, and does not run on.
"""

from collections.abc import Iterator

from ..recording import Seen
from .reading import Fields, controller, is_active, is_leaving, name_of
from .standing import Standing

LATE_S = 60.0
INDEX = "batch.kubernetes.io/job-completion-index"


class Jobs:
    follows = ("jobs", "pods")

    def __init__(self) -> None:
        self._now = Standing(*self.follows)
        self._succeeded: dict[str, dict[str, str]] = {}  # job uid -> pod uid -> its index, or itself
        self._told: set[str] = set()  # uids of pods that were told to end before
        self._ended: dict[str, str] = {}  # job uid -> how
        self._ended_at_s: dict[str, float] = {}

    def see(self, seen: Seen) -> Iterator[str]:
        self._now.see(seen)
        if seen.resource == "jobs":
            yield from self._job(seen)
            return
        job = controller(seen.fields)
        if seen.type == "ADDED" and seen.at_s > self._ended_at_s.get(job, seen.at_s) + LATE_S:
            yield f"J2: pod {seen.object.name} was made for a job that had ended"
        if (seen.fields.get("status") or {}).get("phase") == "Succeeded":
            index = (seen.fields["metadata"].get("annotations") or {}).get(INDEX)
            self._succeeded.setdefault(job, {}).setdefault(seen.object.uid, index or seen.object.uid)
        elif is_leaving(seen.fields):
            self._told.add(seen.object.uid)

    def _job(self, seen: Seen) -> Iterator[str]:
        ends = [how for how in ("Complete", "Failed") if has(seen.fields, how)]
        if len(ends) > 1:
            yield f"J2: job {seen.object.name} is complete and has failed"
        known = self._ended.get(seen.object.uid)
        if known is not None and known not in ends:
            yield f"J2: job {seen.object.name} had ended as {known}"
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
                yield f"J1: of job {name} {len(sure)} have succeeded, and it says {said}"
            active = sum(map(is_active, self._now.of("pods", uid)))
            if uid not in self._ended and not job["spec"].get("suspend") and not active:
                yield f"J2: job {name} has not ended, and nothing runs"
            if uid in self._ended and active:
                yield f"J2: job {name} has ended, and {active} of its pods go on"


def has(job: Fields, condition: str) -> bool:
    conditions = (job.get("status") or {}).get("conditions") or ()
    return any(one["type"] == condition and one["status"] == "True" for one in conditions)
