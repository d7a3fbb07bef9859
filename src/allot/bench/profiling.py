"""Where the time goes: a profile of the event loop's thread, summed by package.

Time spent in the interpreter's own functions and in libraries counts for the package
that called them. Collecting garbage is measured apart, because it strikes anybody.
"""

import cProfile
import gc
import pstats
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

_MARK = "/allot/"
_OTHERS = "python and event loop"
_TOP = 25

Function = tuple[str, int, str]  # file, line, name


@dataclass(frozen=True, slots=True)
class Profile:
    seconds_by_package: Mapping[str, float]
    dearest: tuple[tuple[float, int, str], ...]  # own seconds, calls, function

    def lines(self, pods: int) -> list[str]:
        """For people: microseconds a pod."""
        shown = ["us/pod  package"]
        for package, seconds in self.seconds_by_package.items():
            shown.append(f"{1e6 * seconds / pods:6.0f}  {package}")
        shown.append("us/pod  calls/pod  function (own time)")
        for seconds, calls, name in self.dearest:
            shown.append(f"{1e6 * seconds / pods:6.0f}  {calls / pods:9.1f}  {name}")
        return shown


class Profiler:
    """Measures between `start` and `stop`; without a profile only the collector is timed."""

    def __init__(self, profile: bool) -> None:
        self._profile = cProfile.Profile() if profile else None
        self._collecting_since_s = 0.0
        self.gc_s = 0.0

    def start(self) -> None:
        gc.callbacks.append(self._collected)
        if self._profile is not None:
            self._profile.enable()

    def stop(self) -> Profile | None:
        gc.callbacks.remove(self._collected)
        if self._profile is None:
            return None
        self._profile.disable()
        return summed(pstats.Stats(self._profile).stats)  # type: ignore[attr-defined]

    def _collected(self, phase: str, info: Mapping[str, int]) -> None:
        if phase == "start":
            self._collecting_since_s = time.perf_counter()
        else:
            self.gc_s += time.perf_counter() - self._collecting_since_s


def summed(stats: Mapping[Function, tuple[int, int, float, float, Mapping[Function, Any]]]) -> Profile:
    """The profile by package; `stats` is what pstats reads."""
    shares: dict[Function, Mapping[str, float]] = {}
    seconds: dict[str, float] = {}
    for function, (_, _, own_s, _, _) in stats.items():
        for package, share in _shares(function, stats, shares, ()).items():
            seconds[package] = seconds.get(package, 0.0) + own_s * share
    ordered = dict(sorted(seconds.items(), key=lambda item: -item[1]))
    dearest = sorted(((row[2], row[1], _shown(function)) for function, row in stats.items()), reverse=True)
    return Profile(ordered, tuple(dearest[:_TOP]))


def _shares(
    function: Function,
    stats: Mapping[Function, tuple[int, int, float, float, Mapping[Function, Any]]],
    known: dict[Function, Mapping[str, float]],
    above: tuple[Function, ...],
) -> Mapping[str, float]:
    """Which packages a function worked for, by the time that it took for each of its callers."""
    package = package_of(function[0])
    if package:
        return {package: 1.0}
    if function in known:
        return known[function]
    callers = stats[function][4] if function in stats else {}
    weights = {caller: row[2] + 1e-9 for caller, row in callers.items() if caller not in above}
    total = sum(weights.values())
    if not total or len(above) > 8:
        return {_OTHERS: 1.0}
    found: dict[str, float] = {}
    for caller, weight in weights.items():
        for name, share in _shares(caller, stats, known, (*above, function)).items():
            found[name] = found.get(name, 0.0) + share * weight / total
    known[function] = found
    return found


def package_of(file: str) -> str:
    """The package of ours that a file belongs to; "" for everybody else's."""
    _, mark, inside = file.rpartition(_MARK)
    return inside.partition("/")[0] if mark and "/" in inside and "/site-packages/" not in file else ""


def _shown(function: Function) -> str:
    file, line, name = function
    _, mark, inside = file.rpartition(_MARK)
    return f"{inside}:{line} {name}" if mark else f"{file.rpartition('/')[2]} {name}".strip("~ ")
