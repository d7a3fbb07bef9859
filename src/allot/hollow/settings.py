"""How long the stages of a pod last, and what a pod may wish for itself.

A person sets defaults with flags. A pod has its own way with annotations, each a duration
such as `250ms`, `30s` or `1h30m`, except the exit code:

    hollow.allot.dev/start-delay   from bound to running
    hollow.allot.dev/run-time      until its containers end
    hollow.allot.dev/stop-delay    from deleted to gone
    hollow.allot.dev/exit-code     what its containers end with
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache

from allot.api import core
from allot.base import duration_s

PREFIX = "hollow.allot.dev/"
START, RUN, STOP, EXIT = (
    f"{PREFIX}{name}" for name in ("start-delay", "run-time", "stop-delay", "exit-code")
)
EXIT_MAX = 255


@dataclass(frozen=True, slots=True)
class Stages:
    start_s: float = 0.2
    run_s: float = 10.0  # of pods that end: those of jobs, most of all
    stop_s: float = 0.2
    patience_s: float = 3.0  # how long a pod waits for its claims before it says so


@dataclass(frozen=True, slots=True)
class Wishes:
    start_s: float
    run_s: float | None  # None: as long as nobody ends it
    stop_s: float
    exit_code: int
    wrong: str = ""  # what could not be read, in words; the rest is as if nothing was wished


class BadWish(ValueError):
    """An annotation that cannot be read. The message names it."""


def wished(pod: core.Pod, stages: Stages) -> Wishes:
    """Of a pod: what it says itself, and else what is usual for pods of its kind."""
    ends = pod.spec.restart_policy in ("Never", "OnFailure")
    usual = _usual(stages, ends)
    annotations = pod.metadata.annotations
    if not any(key.startswith(PREFIX) for key in annotations):
        return usual
    try:
        found = wishes(annotations, stages)
    except BadWish as bad:
        return replace(usual, wrong=str(bad))
    return replace(found, run_s=stages.run_s) if found.run_s is None and ends else found


@cache
def _usual(stages: Stages, ends: bool) -> Wishes:
    return Wishes(stages.start_s, stages.run_s if ends else None, stages.stop_s, 0)


def wishes(annotations: Mapping[str, str], stages: Stages) -> Wishes:
    run = annotations.get(RUN)
    return Wishes(
        _delay(annotations, START, stages.start_s),
        None if run is None else _delay(annotations, RUN, 0.0),
        _delay(annotations, STOP, stages.stop_s),
        _exit_code(annotations.get(EXIT, "0")),
    )


def _delay(annotations: Mapping[str, str], name: str, otherwise_s: float) -> float:
    text = annotations.get(name)
    if text is None:
        return otherwise_s
    try:
        return duration_s(text)
    except ValueError as wrong:
        raise BadWish(f"annotation {name}: {wrong}") from None


def _exit_code(text: str) -> int:
    if not text.isascii() or not text.isdigit() or len(text) > 3 or int(text) > EXIT_MAX:
        raise BadWish(f"annotation {EXIT}: {text[:40]!r} is not a number between 0 and {EXIT_MAX}")
    return int(text)
