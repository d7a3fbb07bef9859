"""Many seeds, one after another or in several processes, and what came of them together."""

import gc
import logging
import multiprocessing
import signal
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from .faults import RATES
from .lots import Lots
from .machines import CALL_RATES, DEVICE_RATES
from .node_groups import FAULTS as PROVIDER_FAULTS
from .people import MISUSED
from .step import Scope
from .trouble import KINDS, OF_MACHINES
from .world import Cut, Report, simulate

FAULTS = (*RATES, *KINDS)
"""Everything that can go wrong in any world, each of which must strike in a run that counts."""
MACHINE_FAULTS = (*CALL_RATES, *DEVICE_RATES, *OF_MACHINES)
"""And what can go wrong where there are agents."""


def faults_of(scope: Scope, seed: int | None = None) -> tuple[str, ...]:
    """What must strike in a run of many worlds, or in that of one seed: a single machine makes few calls."""
    if seed is not None:
        return (*FAULTS, *OF_MACHINES) if scope.agent_nodes(Lots(seed)) else FAULTS
    of_machines = MACHINE_FAULTS if scope.real_scheduler and scope.agents > 0 else ()
    of_providers = PROVIDER_FAULTS if scope.real_scheduler and scope.autoscaler > 0 else ()
    return (*FAULTS, *of_machines, *of_providers)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What is worth keeping of a seed's report."""

    seed: int
    wrong: tuple[str, ...]
    struck: Counter[str]
    steps: int
    pods: int
    events: int
    cpu_s: float


@dataclass
class Total:
    """What many seeds came to."""

    expected: tuple[str, ...] = FAULTS  # to strike
    seeds: int = 0
    broken: dict[int, tuple[str, ...]] = field(default_factory=dict)
    struck: Counter[str] = field(default_factory=Counter)
    pods: int = 0
    events: int = 0
    cpu_s: float = 0.0

    def add(self, outcome: Outcome) -> None:
        self.seeds += 1
        self.struck += outcome.struck
        self.pods += outcome.pods
        self.events += outcome.events
        self.cpu_s += outcome.cpu_s
        if outcome.wrong:
            self.broken[outcome.seed] = outcome.wrong

    @property
    def never(self) -> list[str]:
        """Faults that did not strike once: what they would have shown is not known."""
        return [name for name in self.expected if not self.struck[name]]

    @property
    def good(self) -> bool:
        return not self.broken and not self.never

    def as_json(self) -> dict[str, Any]:
        return {
            "seeds": self.seeds,
            "broken": {str(seed): list(wrong) for seed, wrong in sorted(self.broken.items())},
            "faults": {name: self.struck[name] for name in self.expected},
            "misused": {
                name.removeprefix(MISUSED): count
                for name, count in sorted(self.struck.items())
                if name.startswith(MISUSED)
            },
            "pods": self.pods,
            "events": self.events,
            "cpu_s": round(self.cpu_s, 1),
            "cpu_s_per_seed": round(self.cpu_s / max(1, self.seeds), 3),
        }


def run_one(seed: int, scope: Scope, cut: Cut | None = None) -> Report:
    """One seed. What components log below an error is nobody's concern, unless somebody said so."""
    logger = logging.getLogger("allot")
    level = logger.level
    logger.setLevel(level or logging.ERROR)
    try:
        return simulate(seed, scope=scope, cut=cut)
    finally:
        logger.setLevel(level)


def run_many(
    seeds: Sequence[int],
    scope: Scope,
    jobs: int,
    progress: Callable[[Outcome], None] = lambda _: None,
    total: Total | None = None,
    *,
    until_broken: bool = False,
) -> Total:
    """All of them, or up to the first that breaks a promise; without jobs, in this process.

    They are added to `total`, if there is one: whoever interrupts this has there what was done.
    """
    total = total if total is not None else Total(faults_of(scope))
    for outcome in _outcomes(seeds, scope, jobs):
        total.add(outcome)
        progress(outcome)
        if until_broken and outcome.wrong:
            break
    return total


def _outcomes(seeds: Sequence[int], scope: Scope, jobs: int) -> Iterator[Outcome]:
    work: Iterable[tuple[int, Scope]] = [(seed, scope) for seed in seeds]
    if jobs < 1:
        yield from map(_outcome, work)
        return
    with multiprocessing.get_context("spawn").Pool(jobs, _settle) as pool:
        yield from pool.imap_unordered(_outcome, work)


def _settle() -> None:
    """Worlds come and go whole; collecting between them is enough, and cheaper."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # who asked for the worlds is interrupted, and ends this
    gc.collect()
    gc.freeze()
    gc.disable()
    logging.getLogger("allot").addHandler(logging.NullHandler())
    logging.getLogger("allot").propagate = False


def _outcome(work: tuple[int, Scope]) -> Outcome:
    seed, scope = work
    began_s = time.process_time()
    report = run_one(seed, scope)
    if not gc.isenabled():
        gc.collect()
    cpu_s = time.process_time() - began_s
    return Outcome(
        seed, tuple(report.wrong), report.struck, report.steps, report.pods, report.events, round(cpu_s, 3)
    )
