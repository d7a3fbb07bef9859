"""What an agent counts of its drivers, under the names that a kubelet's metrics have.

Several agents of a process may count together: then the figures are those of all of them.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Final

from allot.base import Clock, Metrics
from allot.wire import CallFailed, Code

from .told import PREPARE, UNPREPARE, Entry

ANY: Final = "<any>"
_LEAST_S, _MOST_S, _BOUNDS = 0.1, 40.0, 15
BOUNDS_S: Final = tuple(
    round(_LEAST_S * (_MOST_S / _LEAST_S) ** (at / (_BOUNDS - 1)), 6) for at in range(_BOUNDS)
)
_CODES: Final = {Code.OK: "OK", Code.CANCELLED: "Canceled"}  # others as they are spelled in Go


class Counts:
    def __init__(self, metrics: Metrics, clock: Clock) -> None:
        self._clock = clock
        self._operations = metrics.histogram(
            "dra_operations_duration_seconds",
            "How long it took to prepare or to unprepare all claims of a pod.",
            "operation_name",
            "is_error",
            bounds=BOUNDS_S,
        )
        self._calls = metrics.histogram(
            "dra_grpc_operations_duration_seconds",
            "How long drivers took to answer.",
            "driver_name",
            "method_name",
            "grpc_status_code",
            bounds=BOUNDS_S,
        )
        self._in_use = metrics.gauge(
            "dra_resource_claims_in_use",
            f"Claims that drivers were told of, by driver; those of all are {ANY}.",
            "driver_name",
        )
        self._skips = {
            operation: metrics.counter(
                f"dra_node_{what}_skips_total", f"Calls to {what} that a driver does without.", "driver_name"
            )
            for operation, what in ((PREPARE, "prepare"), (UNPREPARE, "unprepare"))
        }
        self._held: Counter[str] = Counter()

    @contextmanager
    def operation(self, name: str) -> Iterator[None]:
        began_s, is_error = self._clock.monotonic_s(), "true"
        try:
            yield
            is_error = "false"
        finally:
            self._operations.observe(self._clock.monotonic_s() - began_s, name, is_error)

    @contextmanager
    def call(self, driver: str, method: str) -> Iterator[None]:
        began_s, code = self._clock.monotonic_s(), Code.CANCELLED
        try:
            yield
            code = Code.OK
        except CallFailed as failed:
            code = failed.code
            raise
        finally:
            self._calls.observe(self._clock.monotonic_s() - began_s, driver, method, spelled(code))

    def skipped(self, entries: Iterable[Entry], operation: str) -> None:
        """Of what was to be told just now."""
        for entry in entries:
            for driver, part in entry.parts.items():
                if not part.hears(operation):
                    self._skips[operation].add(1, driver)

    def holds(self, entries: Iterable[Entry]) -> None:
        """What drivers were told of by now. Only what is different is counted: others count here too."""
        held = Counter(driver for entry in entries for driver in (*entry.parts, ANY))
        for driver in held.keys() | self._held.keys():
            self._in_use.add(held[driver] - self._held[driver], driver)
        self._held = held


def spelled(code: Code) -> str:
    return _CODES.get(code) or code.name.title().replace("_", "")
