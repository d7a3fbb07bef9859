"""Trying again: on conflicts, and when the server asks for time."""

import asyncio
import random
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from typing import TypeVar

from allot.api import errors

T = TypeVar("T")
Sleep = Callable[[float], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Backoff:
    """How long to wait before each further attempt."""

    attempts: int
    first_s: float
    factor: float = 1.0
    jitter: float = 0.1  # up to this share is added
    longest_s: float = 60.0

    def waits(self, rng: random.Random) -> Iterator[float]:
        """One wait between every two attempts."""
        wait_s = self.first_s
        for _ in range(self.attempts - 1):
            yield min(wait_s, self.longest_s) * (1 + self.jitter * rng.random())
            wait_s *= self.factor


ON_CONFLICT = Backoff(attempts=5, first_s=0.01)


async def retry_on_conflict(
    attempt: Callable[[], Awaitable[T]],
    backoff: Backoff = ON_CONFLICT,
    *,
    sleep: Sleep = asyncio.sleep,
    rng: random.Random | None = None,
) -> T:
    """Do `attempt` until no one else was faster. It must read the object anew each time.

    That an object exists already is no conflict: doing the same again will not help.
    """
    for wait_s in backoff.waits(rng or random.Random()):
        try:
            return await attempt()
        except errors.AlreadyExists:
            raise
        except errors.Conflict:
            await sleep(wait_s)
    return await attempt()
