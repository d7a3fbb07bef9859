"""Amounts of something, as Kubernetes writes them: `1500m`, `40Gi`, `1e3`.

A quantity is a whole number of nano units plus the family of suffixes it was
written in. Two quantities are equal when the amounts are, however written; the
family only decides how the amount is printed.

What it promises
    QTY1  Exact: no floating point anywhere between text and text.
    QTY2  `parse(str(q)) == q`, and printing is canonical: no leading or trailing zeros, the
          largest suffix that needs no fraction, the family kept unless it would lose digits
          (`1.5Ki` prints `1536`, `0.5Mi` prints `512Ki`).
    QTY3  What is finer than a nano unit rounds up, away from zero.
    QTY4  Text is judged before any arithmetic: nothing over LENGTH_MAX characters or
          10**DIGITS_MAX is ever turned into a number.
"""

from dataclasses import dataclass, field
from enum import Enum
from functools import lru_cache
from re import ASCII, compile
from typing import Final

NANO: Final = 10**9
INT64_MAX: Final = 2**63 - 1
LENGTH_MAX: Final = 256
DIGITS_MAX: Final = 64

_TEXT = compile(r"([+-]?)(\d*)(?:\.(\d*))?((?:[numkMGTPE]|[KMGTPE]i)?|[eE][+-]?\d{1,18})", ASCII)
_DECIMAL = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
_DECIMAL_SUFFIX = {power: suffix for suffix, power in _DECIMAL.items()}
_BINARY_SUFFIX = {0: "", **{power: suffix for suffix, power in _BINARY.items()}}


class Format(Enum):
    DECIMAL_SI = "DecimalSI"
    BINARY_SI = "BinarySI"
    DECIMAL_EXPONENT = "DecimalExponent"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Quantity:
    nano: int
    format: Format = field(default=Format.DECIMAL_SI)
    scale: int | None = field(default=0)
    """The power of ten that upstream counts the amount in; None where it keeps a decimal of any size."""

    @classmethod
    def parse(cls, text: str | int | float) -> "Quantity":
        """Read a quantity; a JSON number counts as its text. Raises ValueError."""
        return _parsed(text if isinstance(text, str) else _number_text(text))

    @classmethod
    def of(cls, units: int, format: Format = Format.DECIMAL_SI) -> "Quantity":
        return cls(units * NANO, format)

    @property
    def is_integer(self) -> bool:
        return self.nano % NANO == 0

    @property
    def int64(self) -> int | None:
        """The amount as upstream's 64-bit number; None where it is kept in another way.

        How it is written decides, not how much it is: `1` is such a number, `1000m` and `1Pi` are not.
        """
        if self.scale is None or self.scale < 0:
            return None
        units = self.nano // NANO
        return units if -INT64_MAX - 1 <= units <= INT64_MAX else None

    @property
    def sign(self) -> int:
        return (self.nano > 0) - (self.nano < 0)

    def as_int(self) -> int:
        """Whole units; a part of one counts as one more, away from zero."""
        return _divided(self.nano, NANO)

    def milli(self) -> int:
        """Thousandths of a unit, rounded like `as_int`."""
        return _divided(self.nano, NANO // 1000)

    def as_float(self) -> float:
        return self.nano / NANO

    def compare(self, other: "Quantity") -> int:
        """-1, 0 or 1."""
        return (self.nano > other.nano) - (self.nano < other.nano)

    def __add__(self, other: "Quantity") -> "Quantity":
        nano = self.nano + other.nano
        return Quantity(nano, self.format if self.nano else other.format, _joint_scale(self, other, nano))

    def __sub__(self, other: "Quantity") -> "Quantity":
        return self + -other

    def __neg__(self) -> "Quantity":
        return Quantity(-self.nano, self.format, self.scale)

    def __eq__(self, other: object) -> bool:
        return self.nano == other.nano if isinstance(other, Quantity) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.nano)

    def __lt__(self, other: "Quantity") -> bool:
        return self.nano < other.nano

    def __le__(self, other: "Quantity") -> bool:
        return self.nano <= other.nano

    def __gt__(self, other: "Quantity") -> bool:
        return self.nano > other.nano

    def __ge__(self, other: "Quantity") -> bool:
        return self.nano >= other.nano

    def __bool__(self) -> bool:
        return self.nano != 0

    def __str__(self) -> str:
        sign = "-" if self.nano < 0 else ""
        return sign + _printed(abs(self.nano), self.format)

    def __repr__(self) -> str:
        return f"Quantity({str(self)!r})"


@lru_cache(maxsize=4096)
def _parsed(text: str) -> Quantity:
    """Kept, because the same few texts come with every pod and device."""
    match = _TEXT.fullmatch(text) if len(text) <= LENGTH_MAX else None
    if match is None or not (match[2] or match[3]):
        raise ValueError(f"not a quantity: {_shortened(text)}")
    sign, whole, fraction, suffix = match[1], match[2].lstrip("0"), match[3] or "", match[4]
    nano, format = _amount(whole, fraction.rstrip("0"), suffix, text)
    return Quantity(-nano if sign == "-" else nano, format, _scale(whole or "0", fraction, suffix))


def _number_text(number: int | float) -> str:
    if isinstance(number, bool) or not isinstance(number, int | float):
        raise ValueError(f"not a quantity: {number!r}")
    if isinstance(number, int) and number.bit_length() > 4 * DIGITS_MAX:
        raise ValueError("not a quantity: the number is too large")
    return str(number)


def _shortened(text: str) -> str:
    return repr(text) if len(text) <= 64 else f"{text[:61]!r}... ({len(text)} characters)"


def _amount(whole: str, fraction: str, suffix: str, text: str) -> tuple[int, Format]:
    digits = (whole + fraction).lstrip("0")
    if suffix in _BINARY:
        return _binary_amount(digits, len(fraction), _BINARY[suffix], text)
    if suffix in _DECIMAL:
        power, format = _DECIMAL[suffix], Format.DECIMAL_SI
    else:
        power, format = int(suffix[1:]), Format.DECIMAL_EXPONENT
    if not digits:
        return 0, format
    shift = power - len(fraction) + 9
    _bound(len(digits) + shift - 9, text)
    if shift >= 0:
        return int(digits) * 10**shift, format
    if -shift >= len(digits):  # smaller than one nano unit, whatever the digits are
        return 1, format
    return _divided(int(digits), 10**-shift), format


def _binary_amount(digits: str, fraction_length: int, power: int, text: str) -> tuple[int, Format]:
    if not digits:
        return 0, Format.BINARY_SI
    _bound(len(digits) - fraction_length + 19, text)
    nano = _divided((int(digits) * NANO) << power, 10**fraction_length)
    if nano < NANO:
        return nano, Format.DECIMAL_SI
    return min(nano, INT64_MAX * NANO), Format.BINARY_SI


def _scale(whole: str, fraction: str, suffix: str) -> int | None:
    """Upstream's fast path takes 18 decimal digits, or binary suffixes as far as 15 digits reach."""
    if suffix in _BINARY:
        power = _BINARY[suffix]
        return 0 if not fraction and len(whole) + power * 3 // 10 < 15 else None
    power = _DECIMAL[suffix] if suffix in _DECIMAL else int(suffix[1:])
    scale = power - len(fraction)
    return scale if len(whole) + len(fraction) <= 18 and scale >= -9 else None


def _joint_scale(left: Quantity, right: Quantity, nano: int) -> int | None:
    """The scale of a sum: the finer of the two, while the numbers still have 64 bits in it."""
    if left.scale is None or right.scale is None:
        return None
    if not left.nano or not right.nano:
        return left.scale if left.nano or not right.nano else right.scale
    scale = min(left.scale, right.scale)
    unit = 10 ** (9 + scale)
    return scale if all(abs(one) // unit <= INT64_MAX for one in (left.nano, right.nano, nano)) else None


def _bound(digits: int, text: str) -> None:
    if digits > DIGITS_MAX:
        raise ValueError(f"the quantity is too large: {_shortened(text)}")


def _divided(number: int, by: int) -> int:
    """Division that rounds away from zero."""
    return -(-number // by) if number > 0 else number // by


def _printed(nano: int, format: Format) -> str:
    if nano == 0:
        return "0"
    # Reading caps binary amounts at 64 bits, so a larger sum is printed as a decimal one.
    if format is Format.BINARY_SI and 1024 * NANO <= nano <= INT64_MAX * NANO and nano % NANO == 0:
        units, power = nano // NANO, 0
        while power < 60 and units % 1024 == 0:
            units, power = units // 1024, power + 10
        return f"{units}{_BINARY_SUFFIX[power]}"
    power = -9
    while nano % 1000 == 0 and (power < 18 or format is Format.DECIMAL_EXPONENT):
        nano, power = nano // 1000, power + 3
    if format is Format.DECIMAL_EXPONENT:
        return f"{nano}e{power}" if power else str(nano)
    return f"{nano}{_DECIMAL_SUFFIX[power]}"
