"""From a seed that breaks a promise to a short story that still does.

Steps and faults are left out for as long as the same promise is broken without them:

    1  the script is cut after as few steps as will do
    2  whole kinds of faults are left out
    3  whole lines of the script, then single steps
    4  single faults

Each trial is a whole world, so there are at most so many. What is left is told in order of
time: who did what, what went wrong, and what that broke.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from . import script
from .faults import RATES
from .journal import Entry
from .lots import Lots
from .machines import CALL_RATES, DEVICE_RATES
from .step import Scope, Step
from .trouble import KINDS, OF_MACHINES
from .world import Cut, Report

TRIALS_MAX = 150
_SINGLE = (*RATES, *CALL_RATES, *DEVICE_RATES)
_PROMISE = re.compile(r"[A-Z]{1,6}\d{1,2}")
T = TypeVar("T")
Simulate = Callable[[Cut], Report]


@dataclass(frozen=True, slots=True)
class Story:
    seed: int
    cut: Cut
    entries: tuple[Entry, ...]
    wrong: tuple[str, ...]
    trials: int

    def text(self) -> str:
        lines = [f"seed {self.seed}, the short story ({len(self.entries)} events):"]
        lines += [f"  {entry}" for entry in self.entries]
        lines += [f"  broken: {text}" for text in self.wrong]
        return "\n".join(lines)


def shrink(
    seed: int, scope: Scope, simulate: Simulate, report: Report, trials_max: int = TRIALS_MAX
) -> Story:
    """`simulate` plays a part of the seed; `report` is of the whole, and not good."""
    return _Shrinking(seed, scope, simulate, report, trials_max).story()


class _Shrinking:
    def __init__(self, seed: int, scope: Scope, simulate: Simulate, report: Report, trials_max: int) -> None:
        self._seed = seed
        self._script = script.write(Lots(seed), scope)
        self._simulate = simulate
        self._report = report
        self._promises = {promise_of(text) for text in report.wrong}
        self._cut = Cut()
        self._trials_left = trials_max
        self._trials_max = trials_max

    def story(self) -> Story:
        self._fewer_steps()
        self._without_faults([*_SINGLE, *KINDS, *OF_MACHINES])
        self._without_steps(_by_line(self._kept_steps(), self._script))
        self._without_steps([(place,) for place in self._kept_steps()])
        self._without_faults(_occurrences(self._report.journal))
        return Story(
            self._seed,
            self._cut,
            tuple(self._report.journal),
            tuple(self._report.wrong),
            self._trials_max - self._trials_left,
        )

    def _still_fails(self, cut: Cut) -> bool:
        """If the same promise is broken without more, that is the story from now on."""
        if not self._trials_left:
            return False
        self._trials_left -= 1
        report = self._simulate(cut)
        if not self._promises & {promise_of(text) for text in report.wrong}:
            return False
        self._cut, self._report = cut, report
        return True

    def _fewer_steps(self) -> None:
        """What is broken by the first steps need not be by more of them, so this may miss the least."""
        low, high = 0, len(self._script)
        while low < high:
            middle = (low + high) // 2
            if self._still_fails(replace(self._cut, steps=middle)):
                high = middle
            else:
                low = middle + 1

    def _kept_steps(self) -> list[int]:
        places = range(len(self._script[: self._cut.steps]))
        return [place for place in places if place not in self._cut.without_steps]

    def _without_steps(self, groups: Sequence[tuple[int, ...]]) -> None:
        def cut(some: Sequence[tuple[int, ...]]) -> Cut:
            more = [place for group in some for place in group]
            return replace(self._cut, without_steps=frozenset((*self._cut.without_steps, *more)))

        self._leave_out(groups, cut)

    def _without_faults(self, names: Sequence[str]) -> None:
        def cut(some: Sequence[str]) -> Cut:
            return replace(self._cut, without_faults=frozenset((*self._cut.without_faults, *some)))

        self._leave_out(names, cut)

    def _leave_out(self, things: Sequence[T], cut: Callable[[Sequence[T]], Cut]) -> None:
        """All of them if possible, else each half by itself, and so on."""
        if not things or not self._trials_left or self._still_fails(cut(things)) or len(things) == 1:
            return
        half = len(things) // 2
        self._leave_out(things[:half], cut)
        self._leave_out(things[half:], cut)


def promise_of(text: str) -> str:
    """The name of the promise in a checker's words; the words themselves if there is none."""
    words = text.split(": ")
    return next((word for word in words if _PROMISE.fullmatch(word)), words[0])


def _by_line(places: Sequence[int], steps: Sequence[Step]) -> list[tuple[int, ...]]:
    lines: dict[str, list[int]] = {}
    for place in places:
        lines.setdefault(steps[place].line, []).append(place)
    return [tuple(line) for line in lines.values()]


def _occurrences(entries: Sequence[Entry]) -> list[str]:
    return [f"{entry.fault} {entry.actor} {entry.text}" for entry in entries if entry.fault in _SINGLE]
