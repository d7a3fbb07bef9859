"""Where names that nobody chose come from.

Handed in like the clock, so that a seed decides every id of a simulated cluster.
"""

import random
import uuid
from typing import Protocol

SUFFIX_LETTERS = "bcdfghjklmnpqrstvwxz2456789"
"""No vowels and no look-alikes, so that a random suffix is never a word."""


class Ids(Protocol):
    def uid(self) -> str:
        """A fresh lower-case UUID."""
        ...

    def suffix(self, length: int) -> str:
        """Random letters for the end of a generated name."""
        ...


class RandomIds:
    def __init__(self, rng: random.Random | None = None) -> None:
        # Ids must differ, not be secret: asking the system for each would cost more than the write.
        self._rng = rng or random.Random()

    def uid(self) -> str:
        return str(uuid.UUID(int=self._rng.getrandbits(128), version=4))

    def suffix(self, length: int) -> str:
        return "".join(self._rng.choices(SUFFIX_LETTERS, k=length))
