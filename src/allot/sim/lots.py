"""Chance by name: what a seed decides about one thing does not depend on any other thing.

A generator that everybody shares would hand each the numbers that the others left over:
take one pod out of a story, and all that follows is another story. Here a lot belongs to
a name. The same seed and name give the same lot in any process, whatever else happens,
which is what makes it possible to shrink a story and still recognise it.
"""

import random
from hashlib import blake2b

_LOT_BYTES = 4
_LOTS_MAX = 16


class Lots:
    def __init__(self, seed: int) -> None:
        self._key = str(seed).encode()

    def draw(self, name: str) -> "Draw":
        return Draw(blake2b(name.encode(), digest_size=_LOT_BYTES * _LOTS_MAX, key=self._key).digest())

    def generator(self, name: str) -> random.Random:
        """For whoever needs many numbers."""
        return random.Random(blake2b(name.encode(), digest_size=16, key=self._key).digest())


class Draw:
    """A handful of numbers between 0 and 1, each at its place."""

    __slots__ = ("_bytes",)

    def __init__(self, drawn: bytes) -> None:
        self._bytes = drawn

    def __getitem__(self, place: int) -> float:
        at = place * _LOT_BYTES
        return int.from_bytes(self._bytes[at : at + _LOT_BYTES], "big") / 2**32
