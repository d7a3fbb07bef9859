"""How long plugins take, at each of their extension points; measured in one cycle of ten.

The cycle asks plugins through a stopwatch, which passes the question on and, in a cycle that is
measured, notes how long the answer took. Pauses of a cycle do not count: they are other people's turns.
"""

from collections.abc import Callable, Generator, Sequence
from typing import TypeVar

from .framework import Check, Rejection
from .node import NodeInfo

EVERY = 10

T = TypeVar("T")
Observe = Callable[[str, str, str, float], None]
"""A plugin, its extension point, how it ended, and the seconds that it took."""


class Stopwatch:
    def __init__(self, now_s: Callable[[], float], observe: Observe) -> None:
        self._now_s = now_s
        self._observe = observe
        self._cycles = 0
        self.is_running = False

    def begin_cycle(self) -> None:
        """The first is measured, and then every tenth."""
        self.is_running = self._cycles % EVERY == 0
        self._cycles += 1

    def ask(self, plugin: str, point: str, question: Callable[..., T], *about: object) -> T:
        if not self.is_running:
            return question(*about)
        began_s = self._now_s()
        answer = question(*about)
        self._observe(plugin, point, _status(answer), self._now_s() - began_s)
        return answer

    def ask_in_turns(
        self, plugin: str, point: str, asking: Generator[None, None, T]
    ) -> Generator[None, None, T]:
        if not self.is_running:
            return (yield from asking)
        spent_s = 0.0
        while True:
            began_s = self._now_s()
            try:
                next(asking)
            except StopIteration as done:
                answer: T = done.value
                self._observe(plugin, point, _status(answer), spent_s + self._now_s() - began_s)
                return answer
            spent_s += self._now_s() - began_s
            yield

    def first_rejection(
        self, plugins: Sequence[str], checks: Sequence[Check], node: NodeInfo
    ) -> Rejection | None:
        """As that of the board."""
        for plugin, check in zip(plugins, checks, strict=True):
            rejection = self.ask(plugin, "Filter", check, node)
            if rejection is not None:
                return rejection
        return None


def _status(answer: object) -> str:
    return "Unschedulable" if isinstance(answer, Rejection) else "Success"


def _nobody(plugin: str, point: str, status: str, seconds: float) -> None:
    """Where nobody reads it."""


class Stopped(Stopwatch):
    """One that never runs: for cycles of which nothing is shown."""

    def __init__(self) -> None:
        super().__init__(lambda: 0.0, _nobody)

    def begin_cycle(self) -> None:
        pass
