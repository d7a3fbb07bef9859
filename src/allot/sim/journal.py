"""What was done and what went wrong, in the order in which it happened: the story of a run.

The history (`recording`) is what the API says. This is the other half, which no API shows:
who acted, which component died, which request was lost.
"""

from collections.abc import Callable
from typing import NamedTuple


class Entry(NamedTuple):
    at_s: float
    actor: str
    text: str
    fault: str = ""  # its kind, if this is something that went wrong

    def __str__(self) -> str:
        minutes, seconds = divmod(self.at_s, 60)
        shown = f"{self.fault}: {self.text}" if self.fault else self.text
        return f"{int(minutes):3d}:{seconds:04.1f}  {self.actor:<14} {shown}"


class Journal:
    def __init__(self, now_s: Callable[[], float]) -> None:
        self._now_s = now_s
        self.entries: list[Entry] = []

    def note(self, actor: str, text: str, fault: str = "") -> None:
        self.entries.append(Entry(self._now_s(), actor, text, fault))
