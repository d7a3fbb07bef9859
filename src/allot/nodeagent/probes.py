"""How a probe stands: a state machine, handed outcomes. Pure.

    startup    until it has succeeded the container has not started, and the others wait
    readiness  while it fails nothing is sent to the container
    liveness   when it fails the container is killed, and started again by the policy of its pod

A verdict changes after so many equal outcomes in a row. Before the first one a container counts as alive and
not as ready. What a failed startup or liveness probe says is final: the next attempt begins anew.
"""

from collections.abc import Iterator
from enum import Enum
from typing import NamedTuple

from .views import Container, Probe


class Purpose(Enum):
    STARTUP = "Startup"
    READINESS = "Readiness"
    LIVENESS = "Liveness"


class Verdict(Enum):
    UNKNOWN = "unknown"
    GOOD = "good"
    BAD = "bad"


class Outcome(NamedTuple):
    is_good: bool
    message: str = ""


class Standing(NamedTuple):
    verdict: Verdict
    streak: int = 0  # equal outcomes in a row
    last: bool | None = None

    @property
    def is_good(self) -> bool:
        return self.verdict is Verdict.GOOD


def probes_of(container: Container) -> Iterator[tuple[Purpose, Probe]]:
    for purpose, probe in (
        (Purpose.STARTUP, container.startup_probe),
        (Purpose.READINESS, container.readiness_probe),
        (Purpose.LIVENESS, container.liveness_probe),
    ):
        if probe is not None:
            yield purpose, probe


def at_first(purpose: Purpose) -> Standing:
    match purpose:
        case Purpose.STARTUP:
            return Standing(Verdict.UNKNOWN)
        case Purpose.READINESS:
            return Standing(Verdict.BAD)
        case Purpose.LIVENESS:
            return Standing(Verdict.GOOD)


def advanced(standing: Standing, probe: Probe, outcome: Outcome) -> Standing:
    streak = standing.streak + 1 if standing.last is outcome.is_good else 1
    threshold = probe.success_threshold if outcome.is_good else probe.failure_threshold
    verdict = standing.verdict
    if streak >= max(1, threshold):
        verdict = Verdict.GOOD if outcome.is_good else Verdict.BAD
    return Standing(verdict, streak, outcome.is_good)


def is_over(purpose: Purpose, standing: Standing) -> bool:
    """It is not asked again in this attempt."""
    if purpose is Purpose.STARTUP:
        return standing.verdict is not Verdict.UNKNOWN
    return purpose is Purpose.LIVENESS and standing.verdict is Verdict.BAD


def kills(purpose: Purpose, standing: Standing) -> bool:
    return purpose is not Purpose.READINESS and standing.verdict is Verdict.BAD


def grace_s(probe: Probe, of_pod_s: int) -> float:
    """What a container that its probe kills has to end in."""
    own_s = probe.termination_grace_period_seconds
    return float(of_pod_s if own_s is None else own_s)


def first_after_s(probe: Probe) -> float:
    return float(max(0, probe.initial_delay_seconds))


def every_s(probe: Probe) -> float:
    return float(max(1, probe.period_seconds))


def timeout_s(probe: Probe) -> float:
    return float(max(1, probe.timeout_seconds))
