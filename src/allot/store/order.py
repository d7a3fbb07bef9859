"""Keys in order.

A sorted list of a million keys is cheap to search and dear to insert into, for
every insertion moves half of it. So the keys lie in many short sorted runs: an
insertion moves part of one run, and a run that grew too long is cut in two.
"""

from bisect import bisect_left, insort
from collections.abc import Iterable, Iterator

RUN_MAX = 1024

SURROGATES = range(0xD800, 0xE000)  # code points that text cannot hold
CODE_POINT_MAX = 0x10FFFF


def prefix_end(prefix: str) -> str | None:
    """The smallest key greater than every key that starts with `prefix`; None if there is none."""
    stem = prefix.rstrip(chr(CODE_POINT_MAX))
    if not stem:
        return None
    following = ord(stem[-1]) + 1
    if following in SURROGATES:
        following = SURROGATES.stop
    return stem[:-1] + chr(following)


def just_after(key: str) -> str:
    """The smallest key greater than `key`."""
    return key + "\0"


class SortedKeys:
    def __init__(self, keys: Iterable[str] = ()) -> None:
        ordered = sorted(keys)
        half = RUN_MAX // 2
        self._runs = [ordered[i : i + half] for i in range(0, len(ordered), half)]
        self._lasts = [run[-1] for run in self._runs]  # the greatest key of each run

    def add(self, key: str) -> None:
        """Add a key that is not there."""
        if not self._runs:
            self._runs.append([key])
            self._lasts.append(key)
            return
        at = min(bisect_left(self._lasts, key), len(self._runs) - 1)
        run = self._runs[at]
        insort(run, key)
        if len(run) > RUN_MAX:
            half = len(run) // 2
            self._runs[at : at + 1] = [run[:half], run[half:]]
            self._lasts[at : at + 1] = [run[half - 1], run[-1]]
        else:
            self._lasts[at] = run[-1]

    def remove(self, key: str) -> None:
        """Remove a key that is there."""
        at = bisect_left(self._lasts, key)
        run = self._runs[at]
        del run[bisect_left(run, key)]
        if run:
            self._lasts[at] = run[-1]
        else:
            del self._runs[at], self._lasts[at]

    def between(self, start: str, end: str | None) -> Iterator[str]:
        """Keys from `start` on and before `end`. Adding or removing meanwhile spoils the walk."""
        at = bisect_left(self._lasts, start)
        first = bisect_left(self._runs[at], start) if at < len(self._runs) else 0
        while at < len(self._runs):
            run = self._runs[at]
            if end is not None and run[-1] >= end:
                yield from run[first : bisect_left(run, end)]
                return
            yield from run[first:] if first else run
            at, first = at + 1, 0

    def count(self, start: str, end: str | None) -> int:
        """How many keys `between` walks over."""
        return max(0, self._rank(end) - self._rank(start))

    def _rank(self, key: str | None) -> int:
        """How many keys are smaller than `key`; None is greater than all."""
        at = len(self._runs) if key is None else bisect_left(self._lasts, key)
        rank = sum(map(len, self._runs[:at]))
        if key is not None and at < len(self._runs):
            rank += bisect_left(self._runs[at], key)
        return rank
