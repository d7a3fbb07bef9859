"""JSON Patch (RFC 6902), without changing the document and within bounds.

The result shares what no operation touched with the document: a container is
copied when it is first changed, and is then changed in place. No value is in the
result twice: `copy` really copies.

What it promises
    JPATCH1  The document and the patch are never changed.
    JPATCH2  Either every operation succeeds or the answer is an error.
    JPATCH3  Work is bounded: OPERATIONS_MAX operations, GROWTH_BYTES_MAX by `copy`,
             MOVES_MAX elements pushed aside in lists. The result is no deeper than a body
             may be.
"""

from collections.abc import Callable
from typing import Any, Final

import msgspec

from allot.api import equal, errors, schema

OPERATIONS_MAX: Final = 10_000
GROWTH_BYTES_MAX: Final = 3 * 1024 * 1024
MOVES_MAX: Final = 50_000_000

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder().decode

Path = list[str]


def json_patch(document: Any, operations: Any) -> Any:
    """The document after all operations, in order."""
    if type(operations) is not list:
        raise errors.BadRequest("a JSON patch is a list of operations")
    if len(operations) > OPERATIONS_MAX:
        raise errors.TooLarge(
            f"a JSON patch has at most {OPERATIONS_MAX} operations, this one has {len(operations)}"
        )
    patching = _Patching(document)
    try:
        for operation in operations:
            patching.perform(operation)
    except RecursionError:
        raise schema.too_deep() from None
    if patching.may_be_deeper:
        schema.require_shallow(patching.root)
    return patching.root


class _Patching:
    def __init__(self, document: Any) -> None:
        self.root = document
        self.may_be_deeper = False
        self._own: dict[int, Any] = {}  # containers made here; held, so that no id is used twice
        self._grown = 0
        self._moved = 0

    def perform(self, operation: Any) -> None:
        if type(operation) is not dict:
            raise errors.BadRequest("an operation of a JSON patch is an object")
        kind, path = operation.get("op"), _pointer(operation, "path")
        match kind:
            case "add":
                self._put_new(path, _value(operation), self._add)
            case "remove":
                self._remove(path)
            case "replace":
                self._put_new(path, _value(operation), self._replace)
            case "move":
                self._move(_pointer(operation, "from"), path)
            case "copy":
                self._copy(_pointer(operation, "from"), path)
            case "test":
                if not equal(self._find(path), _value(operation)):
                    raise _failed(f"testing value at {_shown(path)} failed")
            case _:
                raise errors.BadRequest(f"a JSON patch has no operation {str(kind)[:40]!r}")

    def _put_new(self, path: Path, value: Any, put: Callable[[Path, Any], None]) -> None:
        """A value of the patch, so that looking at all of it costs no more than reading it did."""
        if type(value) in (dict, list) and len(path) + schema.depth_of(value) > schema.DEPTH_MAX:
            self.may_be_deeper = True
        put(path, value)

    def _add(self, path: Path, value: Any) -> None:
        if not path:
            self.root = value
            return
        parent = self._changeable(path[:-1])
        key = path[-1]
        if type(parent) is dict:
            parent[key] = value
            return
        index = len(parent) if key == "-" else _index(key, len(parent) + 1, path)
        self._charge(len(parent) - index)
        parent.insert(index, value)

    def _remove(self, path: Path) -> Any:
        if not path:
            raise _failed("the whole document cannot be removed")
        parent = self._changeable(path[:-1])
        key = path[-1]
        if type(parent) is dict:
            if key not in parent:
                raise _missing(path)
            return parent.pop(key)
        index = _index(key, len(parent), path)
        self._charge(len(parent) - index)
        return parent.pop(index)

    def _replace(self, path: Path, value: Any) -> None:
        if not path:
            self.root = value
            return
        parent = self._changeable(path[:-1])
        key = path[-1]
        if type(parent) is list:
            parent[_index(key, len(parent), path)] = value
        elif key in parent:
            parent[key] = value
        else:
            raise _missing(path)

    def _move(self, source: Path, target: Path) -> None:
        if source == target:
            self._find(source)
            return
        if target[: len(source)] == source:
            raise _failed(f"{_shown(source)} cannot be moved into itself")
        self.may_be_deeper = True
        self._add(target, self._remove(source))

    def _copy(self, source: Path, target: Path) -> None:
        written = _encode(self._find(source))
        self._grown += len(written)
        if self._grown > GROWTH_BYTES_MAX:
            raise errors.TooLarge(f"the copies of a JSON patch may not exceed {GROWTH_BYTES_MAX} bytes")
        self.may_be_deeper = True
        self._add(target, _decode(written))

    def _charge(self, moved: int) -> None:
        self._moved += moved
        if self._moved > MOVES_MAX:
            raise errors.TooLarge("the JSON patch inserts and removes too much in long lists")

    def _find(self, path: Path) -> Any:
        value = self.root
        for depth, key in enumerate(path):
            value = _step(value, key, path, depth)
        return value

    def _changeable(self, path: Path) -> Any:
        """The container at `path`, copied along the way unless it is already ours."""
        value = self.root = self._owned(self.root, path, 0)
        for depth, key in enumerate(path):
            inner = self._owned(_step(value, key, path, depth), path, depth + 1)
            value[key if type(value) is dict else int(key)] = inner
            value = inner
        return value

    def _owned(self, value: Any, path: Path, depth: int) -> Any:
        if id(value) in self._own:
            return value
        if type(value) is dict:
            copied: Any = dict(value)
        elif type(value) is list:
            copied = list(value)
        else:
            raise _failed(f"{_shown(path[:depth])} is neither an object nor a list")
        self._own[id(copied)] = copied
        return copied


def _step(value: Any, key: str, path: Path, depth: int) -> Any:
    if type(value) is dict:
        if key in value:
            return value[key]
    elif type(value) is list:
        return value[_index(key, len(value), path[: depth + 1])]
    raise _missing(path[: depth + 1])


def _index(key: str, end: int, path: Path) -> int:
    """A position in a list, as RFC 6901 writes it: digits without leading zeros."""
    if not (key.isascii() and key.isdigit()) or (key[0] == "0" and key != "0") or len(key) > 9:
        raise _failed(f"{_shown(path)} is not a position in a list")
    if int(key) >= end:
        raise _missing(path)
    return int(key)


def _pointer(operation: dict[str, Any], name: str) -> Path:
    text = operation.get(name)
    if type(text) is not str or (text and text[0] != "/"):
        raise errors.BadRequest(f"an operation of a JSON patch needs a JSON pointer as {name!r}")
    parts = text.split("/")[1:]
    return [part.replace("~1", "/").replace("~0", "~") for part in parts] if "~" in text else parts


def _value(operation: dict[str, Any]) -> Any:
    if "value" not in operation:
        raise errors.BadRequest(f"the operation {operation['op']!r} of a JSON patch needs a value")
    return operation["value"]


def _failed(why: str) -> errors.Invalid:
    return errors.Invalid(f"the JSON patch cannot be applied: {why}")


def _missing(path: Path) -> errors.Invalid:
    return _failed(f"there is no {_shown(path)}")


def _shown(path: Path) -> str:
    text = "".join("/" + part.replace("~", "~0").replace("/", "~1") for part in path)
    return (text if len(text) <= 200 else text[:200] + "...") or "the document"
