"""How one container is ended: its hook, then its signal, then by force. Pure: handed the time.

    told ──► preStop, if it has one ──► the signal ──► SIGKILL
      └───────────────── grace ─────────────────────────┘

The hook uses up the grace of the container. However long it takes, the container has two seconds between the
signal and the end.
"""

import signal
from typing import NamedTuple

LAST_S = 2.0


class Ending(NamedTuple):
    since_s: float
    grace_s: float
    has_hook: bool = False
    is_hooked: bool = False  # the hook has begun
    is_unhooked: bool = False  # and is done, or failed
    signalled_s: float | None = None

    @property
    def kill_s(self) -> float:
        """When it is ended by force, once it was told."""
        end_s = self.since_s + self.grace_s
        if self.signalled_s is None or not self.has_hook or self.grace_s <= 0:
            return end_s
        return max(end_s, self.signalled_s + LAST_S)


class Hook(NamedTuple):
    """Begin its preStop hook."""


class Signal(NamedTuple):
    """The one that it is to hear."""


class Kill(NamedTuple):
    pass


class Wait(NamedTuple):
    until_s: float


Step = Hook | Signal | Kill | Wait


def step(ending: Ending, now_s: float) -> Step:
    end_s = ending.since_s + ending.grace_s
    if ending.grace_s <= 0:
        return Kill()
    if ending.signalled_s is not None:
        return Kill() if now_s >= ending.kill_s else Wait(ending.kill_s)
    if ending.has_hook and not ending.is_hooked:
        return Hook()
    if ending.has_hook and not ending.is_unhooked and now_s < end_s:
        return Wait(end_s)
    return Signal()


def shortened(ending: Ending, grace_s: float) -> Ending:
    """Who says it again may leave it less time, never more."""
    return ending._replace(grace_s=min(ending.grace_s, grace_s))


def signal_number(name: str) -> int:
    """Of `lifecycle.stopSignal`; SIGTERM where nothing is said, or nothing that is known here."""
    return signal.Signals.__members__.get(name, signal.SIGTERM).value
