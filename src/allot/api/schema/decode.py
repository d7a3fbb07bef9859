"""Bytes from a client to plain JSON values, within bounds.

What it promises
    D1  Whatever the bytes are, the answer is a value or a `BadRequest`, quickly:
        work and memory grow with the size of the body, not with what it says.
    D2  Values nest at most DEPTH_MAX deep, so that recursion over them is safe.
    D3  Every number can be written as JSON again: no NaN and no infinity. Integers
        of any field that has a type are held to its width by `check`.
    D4  A key given twice is named by its path; the last one counts.

How duplicates are found
    msgspec does not report them, and parsing twice would cost more than everything
    else. A string keeps its quotes when it is written again, so a body has as many
    quotes as its value written out, unless a key was given twice (or a quote was
    spelled \\u0022). Only then is it parsed again, slowly.
"""

import json
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

import msgspec

from ..errors import BadRequest

DEPTH_MAX: Final = 200

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder().decode


class Decoded(NamedTuple):
    fields: dict[str, Any]
    duplicates: tuple[str, ...] = ()


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
    if body.count(b"{") + body.count(b"[") > DEPTH_MAX:
        require_shallow(value)
    return value


def too_deep() -> BadRequest:
    return BadRequest(f"the body of the request is nested deeper than {DEPTH_MAX} levels")


def require_shallow(value: Any) -> None:
    """D2."""
    if depth_of(value) > DEPTH_MAX:
        raise too_deep()


def depth_of(value: Any) -> int:
    """How many containers are inside each other, counted up to one more than DEPTH_MAX."""
    level = [value]
    for depth in range(DEPTH_MAX + 1):
        level = [one for one in level if type(one) is dict or type(one) is list]
        if not level:
            return depth
        level = [inner for one in level for inner in (one.values() if type(one) is dict else one)]
    return DEPTH_MAX + 1


class _Pairs(list[tuple[str, Any]]):
    """An object before its keys were made unique."""


def _duplicates(body: bytes) -> Iterator[str]:
    """D4. The body is known to be JSON of bounded depth."""
    yield from _doubled(json.loads(body, object_pairs_hook=_Pairs), "")


def _doubled(value: Any, path: str) -> Iterator[str]:
    if isinstance(value, _Pairs):
        seen: set[str] = set()
        for key, member in value:
            where = f"{path}.{key}" if path else key
            if key in seen:
                yield where
            seen.add(key)
            yield from _doubled(member, where)
    elif isinstance(value, list):
        for i, member in enumerate(value):
            yield from _doubled(member, f"{path}[{i}]")
