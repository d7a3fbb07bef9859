"""How many refusals of one caller are recorded.

Who may do nothing can still be refused thousands of times a second. So that this neither pushes
other lines out of the files nor fills the queue, a caller gets REFUSALS_PER_S lines a second; how
many were left out is said in one line when the second is over.
"""

from datetime import datetime
from typing import NamedTuple

REFUSALS_PER_S = 50


class LeftOut(NamedTuple):
    user: str
    refusals: int
    since: datetime


class Flood:
    def __init__(self) -> None:
        self._since: datetime | None = None
        self._refusals: dict[str, int] = {}

    def admits(self, user: str) -> bool:
        """Count one more refusal of `user`, empty for those whom nobody knows."""
        count = self._refusals[user] = self._refusals.get(user, 0) + 1
        return count <= REFUSALS_PER_S

    def moved_on(self, now: datetime) -> list[LeftOut]:
        """Call before counting: when a second is over, what was left out in it."""
        since = self._since
        if since is not None and 0 <= (now - since).total_seconds() < 1:
            return []
        left_out = self.rest()
        self._since = now
        return left_out

    def rest(self) -> list[LeftOut]:
        """What was left out since the last second began, which ends here."""
        counts, self._refusals = self._refusals, {}
        if self._since is None:
            return []
        return [
            LeftOut(user, count - REFUSALS_PER_S, self._since)
            for user, count in counts.items()
            if count > REFUSALS_PER_S
        ]
