"""Ends containers: one step at a time, as often as somebody looks (`ending` says which).

What was begun is not kept: after a restart of the agent a container that is to end is told so once more.
"""

import signal
from typing import assert_never

from allot.base import Clock

from .ending import Ending, Hook, Kill, Signal, Wait, shortened, signal_number, step
from .hooks import Hooks, Moment
from .probing import Which, which_of
from .runtimes import Attempt, Runtime
from .views import Container


class Stopping:
    def __init__(self, runtime: Runtime, hooks: Hooks, clock: Clock) -> None:
        self._runtime, self._hooks, self._clock = runtime, hooks, clock
        self._endings: dict[Which, Ending] = {}

    async def end(
        self, attempt: Attempt, container: Container, since_s: float, grace_s: float
    ) -> float | None:
        """When to look again; None: when it has ended."""
        which = which_of(attempt)
        ending = self._endings.get(which)
        if ending is None:
            ending = Ending(since_s, grace_s, has_hook=container.lifecycle.pre_stop is not None)
        ending = shortened(ending, grace_s)
        while True:
            now_s = self._clock.monotonic_s()
            if ending.is_hooked and not self._hooks.goes_on(attempt, Moment.PRE_STOP):
                ending = ending._replace(is_unhooked=True)
            self._endings[which] = ending
            match next := step(ending, now_s):
                case Hook():
                    left_s = max(0.0, ending.since_s + ending.grace_s - now_s)
                    self._hooks.begin(attempt, container, Moment.PRE_STOP, left_s)
                    ending = ending._replace(is_hooked=True)
                case Signal():
                    await self._runtime.signal(attempt, signal_number(container.lifecycle.stop_signal))
                    ending = ending._replace(signalled_s=now_s)
                case Kill():
                    await self._runtime.signal(attempt, signal.SIGKILL)
                    return None
                case Wait(until_s):
                    return until_s
                case _:
                    assert_never(next)

    def is_ending(self, attempt: Attempt) -> bool:
        return which_of(attempt) in self._endings

    def forget_pod(self, uid: str) -> None:
        for which in [one for one in self._endings if one[0] == uid]:
            del self._endings[which]
