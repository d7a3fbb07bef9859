"""Cron jobs.

CRON1: A time that is due gets one job at most, whoever leads. Once the cron job is gone, and its jobs with
       it, a write that was on its way finds the name free again: that job has no owner, and goes (OWNED1).
CRON2: No job comes for a cron job that was suspended or deleted well before.
"""

from collections.abc import Iterator

from ..recording import Seen
from .live import LiveObjects
from .reading import controller, is_leaving

SCHEDULED = "batch.kubernetes.io/cronjob-scheduled-timestamp"
LATE_S = 120.0
"""A copy that slept may still do what it had decided."""


class Timely:
    follows = ("cronjobs", "jobs")

    def __init__(self) -> None:
        self._now = LiveObjects(*self.follows)
        self._made: dict[tuple[str, str], str] = {}  # uid of the cron job, time -> uid of the job
        self._stopped_at_s: dict[str, float] = {}  # uid of the cron job
        self._gone: set[str] = set()

    def see(self, seen: Seen) -> Iterator[str]:
        self._now.see(seen)
        if seen.resource == "cronjobs":
            if seen.type == "DELETED":
                self._gone.add(seen.object.uid)
            is_over = seen.type == "DELETED" or is_leaving(seen.fields) or seen.fields["spec"].get("suspend")
            if is_over:
                self._stopped_at_s.setdefault(seen.object.uid, seen.at_s)
            else:
                self._stopped_at_s.pop(seen.object.uid, None)
            return
        due = (seen.fields["metadata"].get("annotations") or {}).get(SCHEDULED)
        if due is None or seen.type != "ADDED":
            return
        owner = controller(seen.fields)
        first = self._made.setdefault((owner, due), seen.object.uid)
        if first != seen.object.uid and owner not in self._gone:
            yield f"CRON1: job {seen.object.name} is the second for {due}"
        if seen.at_s > self._stopped_at_s.get(owner, seen.at_s) + LATE_S:
            yield f"CRON2: job {seen.object.name} was made for a cron job that had stopped"

    def rest(self) -> Iterator[str]:
        yield from ()
