"""Whose slices have to go, because nobody is there to serve their devices. Pure: handed the time.

What it promises
    WIPE1  A driver that has had no connected instance for a while is named, once; one that came back in time
           is not.
    WIPE2  A wipe that failed comes up again, each time after a longer wait, unless the driver is back.
"""

PATIENCE_S = 30.0
_FIRST_WAIT_S, _LONGEST_WAIT_S = 1.0, 300.0


class Wiping:
    def __init__(self, patience_s: float = PATIENCE_S) -> None:
        self._patience_s = patience_s
        self._due_s: dict[str, float] = {}
        self._wait_s: dict[str, float] = {}

    def note(self, driver: str, is_there: bool, now_s: float) -> None:
        if is_there:
            self._due_s.pop(driver, None)
            self._wait_s.pop(driver, None)
        else:
            self._due_s.setdefault(driver, now_s + self._patience_s)

    def due(self, now_s: float) -> list[str]:
        return sorted(driver for driver, due_s in self._due_s.items() if due_s <= now_s)

    def done(self, driver: str) -> None:
        """Until it comes and goes again there is nothing to wipe."""
        self._due_s.pop(driver, None)
        self._wait_s.pop(driver, None)

    def failed(self, driver: str, now_s: float) -> None:
        if driver in self._due_s:
            wait_s = self._wait_s.get(driver, _FIRST_WAIT_S)
            self._due_s[driver] = now_s + wait_s
            self._wait_s[driver] = min(2 * wait_s, _LONGEST_WAIT_S)

    def next_s(self) -> float | None:
        return min(self._due_s.values(), default=None)
