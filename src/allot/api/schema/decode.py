"""Bytes from a client to plain JSON values, within bounds.

What it promises
    DECODE1  Whatever the bytes are, the answer is a value or a `BadRequest`, quickly: work
             and memory grow with the size of the body, not with what it says.
    DECODE2  Values nest at most DEPTH_MAX deep, so that recursion over them is safe.
    DECODE3  Every number can be written as JSON again: no NaN and no infinity. Integers of
             any field that has a type are held to its width by `check`.
    DECODE4  A key given twice is named by its path, up to NOTED_MAX of them; the last one counts.
    DECODE5  There are at most VALUES_MAX values, and no key is longer than KEY_LENGTH_MAX.

How duplicates are found
    msgspec does not report them, and parsing twice would cost more than everything
    else. A string keeps its quotes when it is written again, so a body has as many
    quotes as its value written out, unless a key was given twice (or a quote was
    spelled \\u0022). Only then is it parsed again, slowly.
"""

import json
from collections.abc import Iterator
from itertools import islice
from typing import Any, Final, NamedTuple

import msgspec

from ..errors import BadRequest
from .where import NOTED_MAX, Where, written

DEPTH_MAX: Final = 200

VALUES_MAX: Final = 200_000
"""How many values a body may have. The largest objects that are stored have a tenth of that; each
value takes fifty times the memory that the shortest ones take in the body."""

KEY_LENGTH_MAX: Final = 16 * 1024
"""How long a key may be. The longest that anybody needs are those of managedFields, which hold the
value of an element of a set."""

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder().decode


class Decoded(NamedTuple):
    fields: dict[str, Any]
    duplicates: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()  # what the encoding itself cannot name, and so was left out


def decode(body: bytes, *, find_duplicates: bool = True) -> Decoded:
    """A JSON object, and the paths of the keys that it gives more than once."""
    value = decode_value(body)
    if type(value) is not dict:
        raise BadRequest("the body of the request is not a JSON object")
    if not find_duplicates:
        return Decoded(value)
    if b"\\u0022" not in body and body.count(b'"') == _encode(value).count(b'"'):
        return Decoded(value)
    return Decoded(value, tuple(_duplicates(body)))


def decode_value(body: bytes) -> Any:
    """Any JSON value: the array of a JSON patch, for example."""
    try:
        value = _decode(body)
    except RecursionError:
        raise too_deep() from None
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise BadRequest(f"the body of the request is not valid JSON: {error}") from None
    if len(body) > KEY_LENGTH_MAX or body.count(b"{") + body.count(b"[") > DEPTH_MAX:
        require_bounded(value)
    return value


def too_deep() -> BadRequest:
    return BadRequest(f"the body of the request is nested deeper than {DEPTH_MAX} levels")


def require_shallow(value: Any) -> None:
    """DECODE2."""
    if depth_of(value) > DEPTH_MAX:
        raise too_deep()


def depth_of(value: Any) -> int:
    """How many containers are inside each other, counted up to one more than DEPTH_MAX."""
    return sum(1 for _ in _levels(value))


def require_bounded(value: Any) -> None:
    """DECODE2, DECODE5. Bodies that are too short to break them are not looked at."""
    depth, count = 0, 1
    for level in _levels(value):
        depth += 1
        count += sum(map(len, level))
        longest = max((max(map(len, one)) for one in level if type(one) is dict and one), default=0)
        if longest > KEY_LENGTH_MAX:
            raise key_too_long(longest)
        if count > VALUES_MAX:
            raise too_many()
    if depth > DEPTH_MAX:
        raise too_deep()


def key_too_long(length: int) -> BadRequest:
    return BadRequest(f"the body of the request has a key of {length} characters, more than {KEY_LENGTH_MAX}")


def too_many() -> BadRequest:
    return BadRequest(f"the body of the request has more than {VALUES_MAX} values")


def _levels(value: Any) -> Iterator[list[Any]]:
    """The containers in a value, those of one depth at a time; one level more than DEPTH_MAX at most."""
    level = [value]
    for _ in range(DEPTH_MAX + 1):
        level = [one for one in level if type(one) is dict or type(one) is list]
        if not level:
            return
        yield level
        level = [inner for one in level for inner in (one.values() if type(one) is dict else one)]


class _Pairs(list[tuple[str, Any]]):
    """An object before its keys were made unique."""


def _duplicates(body: bytes) -> Iterator[str]:
    """DECODE4. The body is known to be JSON of bounded depth."""
    doubled = _doubled(json.loads(body, object_pairs_hook=_Pairs), None)
    return (written(where) for where in islice(doubled, NOTED_MAX))


def _doubled(value: Any, path: Where | None) -> Iterator[Where]:
    if isinstance(value, _Pairs):
        seen: set[str] = set()
        for key, member in value:
            where = Where(path, key)
            if key in seen:
                yield where
            seen.add(key)
            if isinstance(member, list):
                yield from _doubled(member, where)
    else:
        for i, member in enumerate(value):
            if isinstance(member, list):
                yield from _doubled(member, Where(path, i))
