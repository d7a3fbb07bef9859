"""Saying what happened: Events on objects, counted and bounded.

    events.record(pod, WARNING, "FailedResourceClaimCreation", "...")

The same thing said again raises a count instead of adding an object. What one
component says about one object is bounded: 25 writes at once, then one every five
minutes (upstream's numbers), so that a loop that fails every second does not fill
the store. Recording never waits and never fails; the writing is done by a
reconciler like any other, and what cannot be said is logged and counted.
"""

import logging
from collections import OrderedDict
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, NamedTuple

from allot.api import Object, age, errors
from allot.base import Clock, Ids, Metrics
from allot.client import Client

from .reconciler import Again, Reconciler, Telemetry

log = logging.getLogger(__name__)

NORMAL, WARNING = "Normal", "Warning"
BURST = 25
REFILL_S = 300.0
REMEMBERED = 4096
MESSAGE_MAX = 1024
_WORKERS = 4


class Saying(NamedTuple):
    """What makes two events the same."""

    uid: str
    type: str
    reason: str
    message: str
    field_path: str = ""  # which part of the object it is about


@dataclass(frozen=True, slots=True)
class Record:
    about: Object
    name: str
    first: datetime
    last: datetime
    count: int = 1
    written: int = 0  # the count that the server has


class Budget:
    """How often something may still be said about an object: a bucket that refills."""

    def __init__(self, burst: int = BURST, refill_s: float = REFILL_S) -> None:
        self._burst = float(burst)
        self._refill_s = refill_s
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()  # tokens, as of when

    def spend(self, uid: str, now_s: float) -> bool:
        tokens, since_s = self._buckets.pop(uid, (self._burst, now_s))
        tokens = min(self._burst, tokens + (now_s - since_s) / self._refill_s)
        allowed = tokens >= 1.0
        self._buckets[uid] = (tokens - 1.0 if allowed else tokens, now_s)
        while len(self._buckets) > REMEMBERED:
            self._buckets.popitem(last=False)
        return allowed


class Events:
    """One of these a component. `run` does the writing."""

    def __init__(
        self,
        client: Client,
        component: str,
        clock: Clock,
        ids: Ids,
        telemetry: Telemetry,
        metrics: Metrics,
        *,
        host: str = "",
    ) -> None:
        self._events = client.resource("", "v1", "events")
        self._component = component
        self._source = {"component": component, **({"host": host} if host else {})}
        self._clock = clock
        self._ids = ids
        self._records: OrderedDict[Saying, Record] = OrderedDict()
        self._budget = Budget()
        self._dropped = metrics.counter(
            "allot_events_dropped_total", "Events not written.", "component", "why"
        )
        self._writing = Reconciler(f"{component}_events", self._write, clock, telemetry, workers=_WORKERS)

    def record(self, about: Object, type: str, reason: str, message: str, field_path: str = "") -> None:
        saying = Saying(about.uid, type, reason, message[:MESSAGE_MAX], field_path)
        if not self._budget.spend(about.uid, self._clock.monotonic_s()):
            self._dropped.add(1, self._component, "rate")
            return
        now = self._clock.now()
        known = self._records.pop(saying, None)
        if known is None:
            known = Record(about, f"{about.name[:200]}.{self._ids.suffix(16)}", now, now)
        else:
            known = replace(known, about=about, last=now, count=known.count + 1)
        self._records[saying] = known
        while len(self._records) > REMEMBERED:
            self._records.popitem(last=False)
        self._writing.add(saying)

    async def run(self) -> None:
        await self._writing.run()

    @property
    def idle(self) -> bool:
        return self._writing.queue.idle

    async def _write(self, saying: Saying) -> Again | None:
        record = self._records.get(saying)
        if record is None or record.written == record.count:
            return None
        namespace = record.about.namespace or "default"
        try:
            if record.written and not await self._counted(record, namespace):
                record = replace(record, count=1, first=record.last)  # it ran out: told anew
                self._records[saying] = record
            if not record.written or record.count == 1:
                await self._tell(saying, record, namespace)
        except (errors.Forbidden, errors.NotFound, errors.Invalid, errors.BadRequest) as refused:
            # The namespace is going away, most often. Nobody will read this; do not insist.
            self._dropped.add(1, self._component, type(refused).__name__)
            log.info("an event was refused: %s %s: %s", saying.reason, record.about, refused)
            self._records.pop(saying, None)
            return None
        if saying in self._records:
            self._records[saying] = replace(self._records[saying], written=record.count)
        return None

    async def _tell(self, saying: Saying, record: Record, namespace: str) -> None:
        try:
            await self._events.create(self._event(saying, record, namespace))
        except errors.AlreadyExists:
            # Nobody else has such a name: it was told, and the answer was lost.
            await self._counted(record, namespace)

    async def _counted(self, record: Record, namespace: str) -> bool:
        """Raise the count of an event that is there. False if it is not, any more."""
        patch = {"count": record.count, "lastTimestamp": age.timestamp(record.last)}
        try:
            await self._events.patch(record.name, patch, namespace)
        except errors.NotFound:
            return False
        return True

    def _event(self, saying: Saying, record: Record, namespace: str) -> dict[str, Any]:
        about = record.about
        involved = {
            "apiVersion": about.api_version,
            "kind": about.kind,
            "name": about.name,
            "namespace": about.namespace,
            "uid": about.uid,
            "resourceVersion": about.resource_version,
            "fieldPath": saying.field_path,
        }
        return {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": record.name, "namespace": namespace},
            "involvedObject": {name: value for name, value in involved.items() if value},
            "type": saying.type,
            "reason": saying.reason,
            "message": saying.message,
            "source": self._source,
            "reportingComponent": self._component,
            "firstTimestamp": age.timestamp(record.first),
            "lastTimestamp": age.timestamp(record.last),
            "count": record.count,
        }
