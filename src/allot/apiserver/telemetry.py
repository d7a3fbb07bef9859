"""What /metrics shows of the server. Names are upstream's where upstream has them."""

from allot.api import Kind
from allot.base import LoopWatch, Metrics

from .reading.watching import Laggards
from .requests.target import Target

_CODES = {code: str(code) for code in range(100, 600)}


class Telemetry:
    def __init__(self, metrics: Metrics, laggards: Laggards, loop: LoopWatch) -> None:
        self._requests = metrics.counter(
            "apiserver_request_total",
            "Requests answered, by verb, resource and code.",
            "verb",
            "group",
            "version",
            "resource",
            "subresource",
            "code",
        )
        self._seconds = metrics.histogram(
            "apiserver_request_duration_seconds",
            "Time from a request to its answer; watches are not counted.",
            "verb",
            "group",
            "resource",
        )
        metrics.reading("apiserver_longrunning_requests", "Watches being served.", lambda: len(laggards))
        metrics.reading(
            "apiserver_terminated_watchers_total", "Watchers cut off for not reading.", lambda: laggards.cut
        )
        metrics.reading(
            "allot_event_loop_longest_hold_seconds",
            "The longest that something held the event loop.",
            lambda: loop.longest_s,
        )
        metrics.reading(
            "allot_event_loop_late_beats_total",
            "Heartbeats of the event loop that came more than 20 ms late.",
            lambda: loop.late_beats,
        )

    def answered(self, target: Target | None, verb: str, code: int, seconds: float) -> None:
        if target is None:
            self._requests.add(1, verb, "", "", "", "", str(code))
            return
        group = version = resource = subresource = ""
        if target.served is not None:  # only what is served becomes a label: a scanner cannot grow the table
            group, version, resource = target.group, target.version, target.plural
            if target.subresource:
                subresource = _known(target.subresource, target.served.kind)
        verb, counts = target.verb, self._requests.values
        labels = (verb, group, version, resource, subresource, _CODES.get(code) or str(code))
        counts[labels] = counts.get(labels, 0) + 1  # as Counter.add, at two thirds of the time
        if verb != "watch":
            self._seconds.observe(seconds, verb, group, resource)


def _known(subresource: str, kind: Kind) -> str:
    is_known = subresource in ("status", "scale") or subresource in kind.other_subresources
    return subresource if is_known else ""
