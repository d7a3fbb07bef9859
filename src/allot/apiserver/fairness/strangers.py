"""Connections that have not shown credentials yet.

Anybody can open a connection, begin a handshake, or send half a request, and whoever does that a
thousand times keeps no honest client out: beyond STRANGERS_MAX the one that has been a stranger for
longest gives way. An honest client is one for a few milliseconds.
"""

from collections.abc import Callable

STRANGERS_MAX = 512


class Strangers:
    def __init__(self) -> None:
        self._ends: dict[object, Callable[[], object]] = {}  # oldest first
        self.turned_away = 0

    def __len__(self) -> int:
        return len(self._ends)

    def enter(self, who: object, end: Callable[[], object]) -> None:
        """`end` makes an end of the connection. Entered again, a stranger keeps its age."""
        self._ends[who] = end
        if len(self._ends) > STRANGERS_MAX:
            oldest = next(iter(self._ends))
            self.turned_away += 1
            self._ends.pop(oldest)()

    def leave(self, who: object) -> None:
        """It showed credentials, or it is gone."""
        self._ends.pop(who, None)
