"""Counters, gauges and histograms, shown in the text form that Prometheus reads.

One registry a process part; a metric is made once and then only moved. Asking for
one that exists returns it, so that a part may be started again. Moving one costs a
dictionary look-up and an addition.
"""

from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

from .invariants import require

LATENCY_S = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)

Labels = tuple[str, ...]


class Counter:
    kind = "counter"

    def __init__(self, name: str, help: str, labels: Sequence[str] = ()) -> None:
        self.name, self.help, self.labels = name, help, tuple(labels)
        self.values: dict[Labels, float] = {}

    def add(self, amount: float = 1, *labels: str) -> None:
        self.values[labels] = self.values.get(labels, 0) + amount

    def lines(self) -> list[str]:
        return [
            f"{self.name}{_braced(self.labels, key)} {_number(value)}" for key, value in self.values.items()
        ]


class Gauge(Counter):
    kind = "gauge"

    def set(self, value: float, *labels: str) -> None:
        self.values[labels] = value


class Reading:
    """A number that is read when somebody looks. One whose name ends in _total only grows."""

    def __init__(self, name: str, help: str, read: Callable[[], float]) -> None:
        self.name, self.help, self._read = name, help, read
        self.kind = "counter" if name.endswith("_total") else "gauge"

    def lines(self) -> list[str]:
        return [f"{self.name} {_number(self._read())}"]


class Readings:
    """Gauges of one name, one for each set of labels, that are read when somebody looks."""

    kind = "gauge"

    def __init__(
        self, name: str, help: str, labels: Sequence[str], read: Callable[[], Mapping[Labels, float]]
    ) -> None:
        self.name, self.help, self.labels, self._read = name, help, tuple(labels), read

    def lines(self) -> list[str]:
        return [
            f"{self.name}{_braced(self.labels, key)} {_number(value)}" for key, value in self._read().items()
        ]


class Histogram:
    kind = "histogram"

    def __init__(
        self, name: str, help: str, labels: Sequence[str] = (), bounds: Sequence[float] = LATENCY_S
    ) -> None:
        self.name, self.help, self.labels = name, help, tuple(labels)
        self._bounds = tuple(bounds)
        self._counts: dict[Labels, list[int]] = {}
        self._sums: dict[Labels, float] = {}

    def observe(self, value: float, *labels: str) -> None:
        counts = self._counts.get(labels)
        if counts is None:
            counts = self._counts[labels] = [0] * (len(self._bounds) + 1)
            self._sums[labels] = 0.0
        counts[bisect_left(self._bounds, value)] += 1
        self._sums[labels] += value

    def lines(self) -> list[str]:
        shown = []
        for key, counts in self._counts.items():
            total = 0
            for bound, count in zip((*map(_number, self._bounds), "+Inf"), counts, strict=True):
                total += count
                shown.append(f"{self.name}_bucket{_braced((*self.labels, 'le'), (*key, bound))} {total}")
            shown.append(f"{self.name}_sum{_braced(self.labels, key)} {_number(self._sums[key])}")
            shown.append(f"{self.name}_count{_braced(self.labels, key)} {total}")
        return shown


Metric = Counter | Reading | Readings | Histogram


M = TypeVar("M", Counter, Gauge, Histogram)


class Metrics:
    def __init__(self) -> None:
        self._metrics: dict[str, Metric] = {}

    def counter(self, name: str, help: str, *labels: str) -> Counter:
        return self._made(Counter(name, help, labels))

    def gauge(self, name: str, help: str, *labels: str) -> Gauge:
        return self._made(Gauge(name, help, labels))

    def histogram(self, name: str, help: str, *labels: str, bounds: Sequence[float] = LATENCY_S) -> Histogram:
        return self._made(Histogram(name, help, labels, bounds))

    def reading(self, name: str, help: str, read: Callable[[], float]) -> None:
        """The last one to ask is read: the part that it stands for was started again."""
        self._metrics[name] = Reading(name, help, read)

    def readings(
        self, name: str, help: str, *labels: str, read: Callable[[], Mapping[Labels, float]]
    ) -> None:
        self._metrics[name] = Readings(name, help, labels, read)

    def _made(self, metric: M) -> M:
        found = self._metrics.setdefault(metric.name, metric)
        same = type(found) is type(metric) and found.labels == metric.labels
        require(same, f"the metric {metric.name} means two things")
        return found  # type: ignore[return-value]

    def text(self) -> str:
        shown = []
        for metric in self._metrics.values():
            shown += [f"# HELP {metric.name} {metric.help}", f"# TYPE {metric.name} {metric.kind}"]
            shown += metric.lines()
        return "\n".join(shown) + "\n"


def _braced(names: Labels, values: Labels) -> str:
    if not names:
        return ""
    pairs = (f'{name}="{_escaped(value)}"' for name, value in zip(names, values, strict=True))
    return "{" + ",".join(pairs) + "}"


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')


def _number(value: float) -> str:
    return str(int(value)) if value == int(value) else repr(value)
