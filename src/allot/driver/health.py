"""The health of devices, from the author's own look at them to every kubelet that listens.

The author reports again and again, each time everything: a report that is not renewed within its time
counts as unknown, and so does everything once the reports end. The kit never repeats a report by itself,
for then a look that hangs would go unnoticed.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Sequence
from typing import NamedTuple

from allot.base import Clock
from allot.wire import health

log = logging.getLogger(__name__)

AGAIN_S = 5.0
"""After the author's reports failed."""


class DeviceHealth(NamedTuple):
    pool: str
    device: str
    healthy: bool | None  # None: unknown
    message: str = ""
    timeout_s: int = health.TIMEOUT_S


Reports = Callable[[], AsyncIterator[Sequence[DeviceHealth]]]


class Healths:
    def __init__(self, reports: Reports, clock: Clock) -> None:
        self._reports, self._clock = reports, clock
        self._latest: health.NodeWatchResourcesResponse | None = None
        self._good_until_s = 0.0
        self._turn = asyncio.Event()  # set, and replaced, with every report

    async def run(self) -> None:
        """Follow the author's reports, and begin anew where they fail."""
        while True:
            try:
                async for report in self._reports():
                    self._tell(report)
                log.warning("the reports of device health have ended")
            except Exception:
                log.exception("the reports of device health failed; again in %.0f s", AGAIN_S)
            await asyncio.sleep(AGAIN_S)

    async def watch(
        self, request: health.NodeWatchResourcesRequest
    ) -> AsyncIterator[health.NodeWatchResourcesResponse]:
        """What was last said, if it still holds, and then everything that is said."""
        turn = self._turn
        if self._latest is not None and self._clock.monotonic_s() < self._good_until_s:
            yield self._latest
        while True:
            await turn.wait()
            turn = self._turn  # before the report is told: the next one may come meanwhile
            assert self._latest is not None
            yield self._latest

    def _tell(self, report: Sequence[DeviceHealth]) -> None:
        now = int(self._clock.now().timestamp())
        self._latest = health.NodeWatchResourcesResponse(tuple(_message(one, now) for one in report))
        holds_s = min((one.timeout_s or health.TIMEOUT_S for one in report), default=health.TIMEOUT_S)
        self._good_until_s = self._clock.monotonic_s() + holds_s
        self._turn.set()
        self._turn = asyncio.Event()


_VALUES = {True: health.Health.HEALTHY, False: health.Health.UNHEALTHY, None: health.Health.UNKNOWN}


def _message(one: DeviceHealth, now: int) -> health.DeviceHealth:
    return health.DeviceHealth(
        health.DeviceIdentifier(one.pool, one.device),
        _VALUES[one.healthy],
        now,
        one.timeout_s,
        health.bounded(one.message),
    )
