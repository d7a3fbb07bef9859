"""Where the time goes: the stack of the event loop's thread, sampled by processor time.

Every few milliseconds of processor time the stack is looked at. A sample counts twice:

    for a package   the innermost of ours on the stack: whose code was running
    for an actor    the part of the cluster on whose behalf it ran; in one process a write of
                    the scheduler is on its stack from its cause to its commit

Sampling costs next to nothing and favours nobody, which cannot be said of a profiler that
is called at every call. What other threads use (the store's writer) is seen as waiting.
Collecting garbage is measured apart, because it strikes anybody.
"""

import gc
import signal
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import FrameType

INTERVAL_S = 0.002
"""What is asked for. Kernels have ticks of their own: what a sample stands for is counted afterwards."""

_MARK = "/allot/"
_WAITING = "event loop, other threads"
_TOP = 25

ACTORS = {
    "scheduler": "scheduler",
    "controllers": "controllers",
    "bench": "load and its watches",
    "apiserver": "server, for watchers",
    "store": "store",
}
"""Packages that act, and what they are called when they do. The first of them that is on the stack
is the one: a server answers somebody, and it is the bench that starts the others."""


@dataclass(frozen=True, slots=True)
class Sample:
    actor: str
    package: str
    module: str  # "package/module.py"
    function: str  # "package/module.py:12 name"


@dataclass(frozen=True, slots=True)
class Profile:
    samples: Mapping[Sample, int]
    interval_s: float  # of processor time, that a sample stands for
    gc_s: float

    def seconds_by(self, what: str) -> dict[str, float]:
        """Seconds by `actor`, `package`, `module` or `function`, the dearest first."""
        counts: Counter[str] = Counter()
        for sample, times in self.samples.items():
            counts[getattr(sample, what)] += times
        return {name: times * self.interval_s for name, times in counts.most_common()}

    def lines(self, pods: int) -> Iterator[str]:
        """For people: microseconds a pod."""
        for what in ("actor", "package", "module", "function"):
            yield f"us/pod  {what}"
            for name, seconds in list(self.seconds_by(what).items())[:_TOP]:
                yield f"{1e6 * seconds / pods:6.0f}  {name}"
        yield f"{1e6 * self.gc_s / pods:6.0f}  collecting garbage, contained in the above"


class Profiler:
    """Measures between `start` and `stop`; without samples only the collector is timed.

    To be used on the main thread: signals are heard there.
    """

    def __init__(self, sampling: bool) -> None:
        self._sampling = sampling
        self._samples: Counter[Sample] = Counter()
        self._began_s = 0.0
        self._collecting_since_s = 0.0
        self.gc_s = 0.0

    def start(self) -> None:
        gc.callbacks.append(self._collected)
        if self._sampling:
            self._began_s = time.process_time()
            signal.signal(signal.SIGPROF, self._look)
            signal.setitimer(signal.ITIMER_PROF, INTERVAL_S, INTERVAL_S)

    def stop(self) -> Profile | None:
        gc.callbacks.remove(self._collected)
        if not self._sampling:
            return None
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, signal.SIG_IGN)
        used_s = time.process_time() - self._began_s
        return Profile(self._samples, used_s / max(self._samples.total(), 1), self.gc_s)

    def _look(self, number: int, frame: FrameType | None) -> None:
        self._samples[sampled(_stack(frame))] += 1

    def _collected(self, phase: str, info: Mapping[str, int]) -> None:
        if phase == "start":
            self._collecting_since_s = time.perf_counter()
        else:
            self.gc_s += time.perf_counter() - self._collecting_since_s


def _stack(frame: FrameType | None) -> Iterator[tuple[str, int, str]]:
    """File, line and name of each frame, the innermost first."""
    while frame is not None:
        code = frame.f_code
        yield code.co_filename, code.co_firstlineno, code.co_name
        frame = frame.f_back


def sampled(stack: Iterator[tuple[str, int, str]]) -> Sample:
    """What a stack says about who is at work."""
    package = module = function = ""
    packages = set()
    for file, line, name in stack:
        _, mark, inside = file.rpartition(_MARK)
        found, slash, _ = inside.partition("/")
        if not mark or not slash or found == "cli" or "/site-packages/" in file:
            continue  # the command only starts the loop
        if not package:
            package, module, function = found, inside, f"{inside}:{line} {name}"
        packages.add(found)
    if not package:
        return Sample(_WAITING, _WAITING, _WAITING, _WAITING)
    actor = next((name for acting, name in ACTORS.items() if acting in packages), "caches")
    return Sample(actor, package, module, function)
