"""From-to arithmetic for sizes and costs, which stops at 64 bits instead of growing."""

from math import ceil
from typing import Final, NamedTuple

MOST: Final = 2**64 - 1


class Span(NamedTuple):
    low: int
    high: int

    def plus(self, other: "Span") -> "Span":
        return Span(min(self.low + other.low, MOST), min(self.high + other.high, MOST))

    def times(self, other: "Span") -> "Span":
        return Span(min(self.low * other.low, MOST), min(self.high * other.high, MOST))

    def scaled(self, factor: float) -> "Span":
        """Multiplied and rounded up, through doubles as upstream does it."""
        return Span(_scaled(self.low, factor), _scaled(self.high, factor))

    def either(self, other: "Span") -> "Span":
        return Span(min(self.low, other.low), max(self.high, other.high))


def fixed(size: int) -> Span:
    return Span(size, size)


def _scaled(number: int, factor: float) -> int:
    product = float(number) * factor
    return MOST if product >= 2.0**64 else ceil(product)


UNKNOWN: Final = Span(0, MOST)
ZERO: Final = Span(0, 0)
ONE: Final = Span(1, 1)
EMPTY: Final = Span(MOST, 0)  # the union of nothing
