"""Whose lease is to be renewed when. Pure: handed the time.

What it promises
    RENEW1  Every node that has joined comes up once in each period, counted from when it was
            due and not from when somebody got round to it.
    RENEW2  However many join at the same moment, they come up spread over the whole period.
    RENEW3  A renewal that failed comes up again soon.
"""

import heapq

_GOLDEN = 0.6180339887498949  # steps of this length, wrapped, leave no gap and no crowd
_AGAIN_S = 5.0


class Renewals:
    def __init__(self, every_s: float) -> None:
        self._every_s = every_s
        self._due_s: dict[str, float] = {}
        self._heap: list[tuple[float, str]] = []  # may hold what is no longer so
        self._joined = 0

    def __len__(self) -> int:
        return len(self._due_s)

    def join(self, node: str, now_s: float, *, at_once: bool) -> None:
        if node in self._due_s:
            return
        self._joined += 1
        offset_s = 0.0 if at_once else self._joined * _GOLDEN % 1.0 * self._every_s
        self._schedule(node, now_s + offset_s)

    def leave(self, node: str) -> None:
        self._due_s.pop(node, None)

    def due(self, now_s: float) -> list[str]:
        """Everybody whose time has come. Each comes up again in a period (RENEW1)."""
        found = []
        while self._heap and self._heap[0][0] <= now_s:
            due_s, node = heapq.heappop(self._heap)
            if self._due_s.get(node) == due_s:
                found.append(node)
                # After a long pause (a laptop that slept) once is enough.
                self._schedule(node, max(due_s + self._every_s, now_s + self._every_s / 2))
        return found

    def failed(self, node: str, now_s: float) -> None:
        if node in self._due_s:
            self._schedule(node, min(self._due_s[node], now_s + min(_AGAIN_S, self._every_s)))

    def next_s(self) -> float | None:
        while self._heap and self._due_s.get(self._heap[0][1]) != self._heap[0][0]:
            heapq.heappop(self._heap)
        return self._heap[0][0] if self._heap else None

    def _schedule(self, node: str, due_s: float) -> None:
        self._due_s[node] = due_s
        heapq.heappush(self._heap, (due_s, node))
