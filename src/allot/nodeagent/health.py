"""How the devices of a node are, as their drivers say. Pure: handed the time, which is the node's own.

What it promises
    HEALTH1  A device is what its driver last said of it, for as long as that word holds; then nobody knows.
    HEALTH2  When a driver says no more, nobody knows how its devices are.
    HEALTH3  What has changed is named: by a report, by silence, by the end of a driver.
    HEALTH4  One driver fills no more than so many entries, whatever it reports.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from allot.wire import health

DEVICES_MAX = 16384


class Which(NamedTuple):
    driver: str
    pool: str
    device: str


class Shown(NamedTuple):
    """In the words of a pod's status."""

    health: str
    message: str = ""


UNKNOWN = Shown("Unknown")
_WORDS = {
    health.Health.HEALTHY: "Healthy",
    health.Health.UNHEALTHY: "Unhealthy",
    health.Health.UNKNOWN: UNKNOWN.health,
}


class Healths:
    def __init__(self) -> None:
        self._known: dict[str, dict[Which, tuple[Shown, float]]] = {}  # by driver; until when it holds

    def heard(self, driver: str, report: Sequence[health.DeviceHealth], now_s: float) -> frozenset[Which]:
        """Returns what is different (HEALTH3). What the report leaves out holds until its time is over."""
        known = self._known.setdefault(driver, {})
        changed = set()
        for one in report:
            if one.device is None:
                continue
            which = Which(driver, one.device.pool_name, one.device.device_name)
            if which not in known and len(known) >= DEVICES_MAX:
                continue  # HEALTH4
            shown = Shown(_WORDS.get(one.health, UNKNOWN.health), health.bounded(one.message))
            if self.of(which, now_s) != shown:
                changed.add(which)
            known[which] = shown, now_s + (one.health_check_timeout_seconds or health.TIMEOUT_S)
        return frozenset(changed)

    def of(self, which: Which, now_s: float) -> Shown:
        """HEALTH1."""
        shown, until_s = self._known.get(which.driver, {}).get(which, (UNKNOWN, now_s))
        return shown if now_s < until_s else UNKNOWN

    def lost(self, driver: str) -> frozenset[Which]:
        """HEALTH2."""
        return _unsure(self._known.pop(driver, {}).items())

    def expired(self, now_s: float) -> frozenset[Which]:
        """What nobody has confirmed in time, named once."""
        changed: set[Which] = set()
        for known in self._known.values():
            over = {which: one for which, one in known.items() if one[1] <= now_s}
            changed |= _unsure(over.items())
            for which in over:
                del known[which]
        return frozenset(changed)


def _unsure(entries: Iterable[tuple[Which, tuple[Shown, float]]]) -> frozenset[Which]:
    return frozenset(which for which, (shown, _) in entries if shown != UNKNOWN)
