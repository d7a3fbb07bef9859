"""Numbers with units, as properties of devices write them: `16G`, `40GBPS`, `2.5GHz`, `300W`.

A number is digits, a prefix that scales, and a word that names the unit. Prefixes are those of Kubernetes'
quantities; after a prefix only words of a closed list are read, anything else is a word without a prefix
(`12cores`). A number without a word fits any unit; different words are different things and never compare,
nor is one converted into the other. All arithmetic is exact.
"""

import re
from fractions import Fraction
from functools import lru_cache
from typing import Final, NamedTuple

_PREFIXES: Final = {
    "": Fraction(1),
    "m": Fraction(1, 1000),
    **{prefix: Fraction(1000**power) for power, prefix in enumerate("kMGTPE", 1)},
    **{f"{prefix}i": Fraction(1024**power) for power, prefix in enumerate("KMGTPE", 1)},
}
_WORDS: Final = ("B", "b", "Bps", "bps", "BPS", "Hz", "W")
_NUMBER: Final = re.compile(r"([+-]?(?:\d+(?:\.\d*)?|\.\d+))([A-Za-z%/]*)", re.ASCII)
LENGTH_MAX: Final = 256


class Measured(NamedTuple):
    value: Fraction
    unit: str  # "": fits any

    def compare(self, other: "Measured") -> int | None:
        """-1, 0 or 1; None where the units differ."""
        if self.unit and other.unit and self.unit != other.unit:
            return None
        return (self.value > other.value) - (self.value < other.value)


@lru_cache(maxsize=4096)
def parse(text: str) -> Measured | None:
    """The number, or None for what is none."""
    match = _NUMBER.fullmatch(text) if len(text) <= LENGTH_MAX else None
    if match is None:
        return None
    prefix, unit = _suffix(match[2])
    return Measured(Fraction(match[1]) * _PREFIXES[prefix], unit)


def _suffix(text: str) -> tuple[str, str]:
    """Prefix and word."""
    if text in _WORDS:
        return "", text
    for size in (2, 1):
        prefix, word = text[:size], text[size:]
        if prefix in _PREFIXES and (not word or word in _WORDS):
            return prefix, word
    return "", text
