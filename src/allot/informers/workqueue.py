"""What is to be looked at next: keys, each at most once, and when.

Where it sits
    Handlers add keys, `reconciler` takes them. A pure state machine: every call
    is handed the time, nothing waits.

What it promises
    WORKQ1  A key is with at most one worker at a time.
    WORKQ2  A key that is added while it waits is not added twice. One that is added while a
            worker has it is taken again afterwards: no addition is lost.
    WORKQ3  Keys that are due are taken in the order in which they became due.
    WORKQ4  A delayed key becomes due at the earliest of the moments asked for.
    WORKQ5  Each failure of a key in a row doubles its wait, up to a bound; `forget` ends
            the row. Conflicts are not failures of the key: somebody else was faster, so
            they are tried again soon.
"""

import heapq
from collections import deque
from collections.abc import Hashable
from dataclasses import dataclass
from typing import Generic, TypeVar

import msgspec

from allot.base import require

K = TypeVar("K", bound=Hashable)


@dataclass(frozen=True, slots=True)
class Limits:
    """How long a key waits after failures (WORKQ5)."""

    first_s: float = 0.005
    longest_s: float = 60.0
    conflict_longest_s: float = 0.5

    def failure_s(self, failures: int) -> float:
        return self._doubled_s(failures, self.longest_s)

    def conflict_s(self, conflicts: int) -> float:
        return self._doubled_s(conflicts, self.conflict_longest_s)

    def _doubled_s(self, times: int, longest_s: float) -> float:
        return min(longest_s, self.first_s * 2.0 ** min(times, 40))


class Taken(msgspec.Struct, Generic[K], frozen=True):
    key: K
    waited_s: float


class WorkQueue(Generic[K]):
    def __init__(self, limits: Limits | None = None) -> None:
        self._limits = limits or Limits()
        self._due: deque[K] = deque()
        self._wanted: dict[K, float] = {}  # since when: waiting, or to be taken again once a worker is done
        self._with_worker: dict[K, float] = {}  # since when
        self._moments: dict[K, float] = {}  # delayed keys
        self._heap: list[tuple[float, int, K]] = []
        self._order = 0
        self._failures: dict[K, int] = {}
        self._conflicts: dict[K, int] = {}
        self.adds = 0
        self.retries = 0

    # -- adding ---------------------------------------------------------------------------------

    def add(self, key: K, now_s: float) -> None:
        if key in self._wanted:
            return
        self.adds += 1
        self._wanted[key] = now_s
        if key not in self._with_worker:
            self._due.append(key)

    def add_at(self, key: K, at_s: float) -> None:
        if at_s < self._moments.get(key, float("inf")):
            self._moments[key] = at_s
            self._order += 1
            heapq.heappush(self._heap, (at_s, self._order, key))

    def retry(self, key: K, now_s: float) -> float:
        """It failed: add it again after a wait, which is returned."""
        failures = self._failures.get(key, 0)
        self._failures[key] = failures + 1
        return self._again(key, now_s, self._limits.failure_s(failures))

    def retry_conflict(self, key: K, now_s: float) -> float:
        """Somebody was faster: add it again soon."""
        conflicts = self._conflicts.get(key, 0)
        self._conflicts[key] = conflicts + 1
        return self._again(key, now_s, self._limits.conflict_s(conflicts))

    def forget(self, key: K) -> None:
        """It succeeded: the next failure is the first again."""
        self._failures.pop(key, None)
        self._conflicts.pop(key, None)

    def _again(self, key: K, now_s: float, wait_s: float) -> float:
        self.retries += 1
        self.add_at(key, now_s + wait_s)
        return wait_s

    # -- taking ---------------------------------------------------------------------------------

    def take(self, now_s: float) -> Taken[K] | None:
        """The next key that is due. Whoever takes it says `done` when it is."""
        self._ripen(now_s)
        if not self._due:
            return None
        key = self._due.popleft()
        require(key not in self._with_worker, f"WORKQ1: {key} is with a worker already")
        self._with_worker[key] = now_s
        return Taken(key, now_s - self._wanted.pop(key))

    def done(self, key: K) -> None:
        require(key in self._with_worker, f"WORKQ1: {key} was not taken")
        del self._with_worker[key]
        if key in self._wanted:
            self._due.append(key)

    def next_moment_s(self) -> float | None:
        """When to look again, if nothing is added before."""
        while self._heap and self._moments.get(self._heap[0][2]) != self._heap[0][0]:
            heapq.heappop(self._heap)
        return self._heap[0][0] if self._heap else None

    def _ripen(self, now_s: float) -> None:
        while (moment_s := self.next_moment_s()) is not None and moment_s <= now_s:
            _, _, key = heapq.heappop(self._heap)
            del self._moments[key]
            self.add(key, now_s)

    # -- looking --------------------------------------------------------------------------------

    def __len__(self) -> int:
        """Keys that are due and that no worker has."""
        return len(self._due)

    @property
    def idle(self) -> bool:
        """Nothing is due, with a worker or delayed."""
        return not (self._due or self._with_worker or self._moments)

    def failures(self, key: K) -> int:
        return self._failures.get(key, 0)

    def unfinished_s(self, now_s: float) -> float:
        """How long the keys that workers have are with them, together."""
        return sum(now_s - since_s for since_s in self._with_worker.values())

    def longest_running_s(self, now_s: float) -> float:
        return max((now_s - since_s for since_s in self._with_worker.values()), default=0.0)

    def check(self) -> None:
        """For tests and the simulator."""
        require(len(set(self._due)) == len(self._due), "WORKQ2: a key waits twice")
        for key in self._due:
            waits = key in self._wanted and key not in self._with_worker
            require(waits, f"WORKQ1: {key} waits and is worked on")
        for key in self._wanted:
            require(key in self._with_worker or key in self._due, f"WORKQ2: the addition of {key} is lost")
