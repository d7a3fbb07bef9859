"""What the demo says while it runs, and which of its promises were seen."""

import itertools
import textwrap
import time
from collections.abc import Sequence

WIDTH = 110
SEEN, NOT_SEEN, NOT_REACHED = "seen", "NOT SEEN", "not reached"


class Story:
    """Says what happens while it happens, and which of the promises were seen."""

    def __init__(self, promises: Sequence[str]) -> None:
        self._verdicts = dict.fromkeys(promises, NOT_REACHED)
        self._began_s = time.monotonic()
        self._wrap = textwrap.TextWrapper(WIDTH, break_on_hyphens=False, break_long_words=False)

    def begin(self, promise: str) -> None:
        self._began_s = time.monotonic()
        number = list(self._verdicts).index(promise) + 1
        print(f"\n{number}. {promise}", flush=True)

    def say(self, mark: str, text: str) -> None:
        marks = itertools.chain([mark], itertools.repeat(""))
        for line, shown in zip(text.splitlines(), marks, strict=False):
            inner = len(line) - len(line.lstrip())
            self._wrap.initial_indent = f"   {shown:<7} {line[:inner]}"
            self._wrap.subsequent_indent = " " * (13 + inner)
            print(self._wrap.fill(line[inner:]), flush=True)

    def end(self, promise: str, wrong: str = "") -> None:
        self._verdicts[promise] = NOT_SEEN if wrong else SEEN
        self.say("NOT", wrong) if wrong else self.say("ok", f"{time.monotonic() - self._began_s:.1f} s")

    def summary(self) -> bool:
        """A line for each promise. Whether all of them were seen."""
        print("\nWhat was promised")
        for promise, verdict in self._verdicts.items():
            print(f"   {verdict:<11} {promise}", flush=True)
        return all(verdict == SEEN for verdict in self._verdicts.values())
