"""Which field is wrong, and how.

Validation returns a list of `FieldError`; an empty list means the object is
fine. The server turns a list into one 422 whose causes carry field, reason and
text. A path is an immutable value that grows by `/` for a field and by `[...]`
for an index or key:

    SPEC = Path("spec")
    SPEC / "devices" / "requests" [0] / "name"     ->  spec.devices.requests[0].name
"""

import json
from collections.abc import Iterable, Sequence
from enum import Enum
from typing import Any, NamedTuple

import msgspec

from .errors import Cause, Invalid

ERRORS_SHOWN_MAX = 100
"""An answer tells of so many, and counts the rest: a request of a megabyte can have a hundred thousand."""

VALUE_LENGTH_MAX = 1000
PATH_LENGTH_MAX = 1000
"""What was found, and where, are shown up to here; both are the client's own words, of any length."""


class Path(msgspec.Struct, frozen=True, eq=False, gc=False):
    """Written out only when somebody reads it: nearly all paths are made for fields that are fine."""

    _step: str = ""
    _before: "Path | None" = None
    _key: int | str | None = None  # set for an index or key; then `_step` means nothing

    def __truediv__(self, field: str) -> "Path":
        return Path(field, self)

    def __getitem__(self, key: int | str) -> "Path":
        return Path("", self, key)

    def __str__(self) -> str:
        if self._before is None:
            return self._step
        before = str(self._before)
        if self._key is not None:
            return f"{before}[{self._key}]"
        return f"{before}.{self._step}" if before else self._step

    def __repr__(self) -> str:
        return f"Path({str(self)!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Path) and str(other) == str(self)

    def __ne__(self, other: object) -> bool:
        return not self == other  # structs have one of their own

    def __hash__(self) -> int:
        return hash(str(self))


class Wrong(Enum):
    """The kinds of field error: the text upstream begins with, and the reason of the cause."""

    REQUIRED = ("Required value", "FieldValueRequired")
    INVALID = ("Invalid value", "FieldValueInvalid")
    DUPLICATE = ("Duplicate value", "FieldValueDuplicate")
    TOO_MANY = ("Too many", "FieldValueTooMany")
    TOO_LONG = ("Too long", "FieldValueTooLong")
    UNSUPPORTED = ("Unsupported value", "FieldValueNotSupported")
    FORBIDDEN = ("Forbidden", "FieldValueForbidden")
    NOT_FOUND = ("Not found", "FieldValueNotFound")
    TYPE_INVALID = ("Invalid value", "FieldValueTypeInvalid")
    INTERNAL = ("Internal error", "InternalError")


_VALUELESS = {Wrong.REQUIRED, Wrong.FORBIDDEN, Wrong.TOO_LONG, Wrong.TOO_MANY, Wrong.INTERNAL}


class FieldError(NamedTuple):
    wrong: Wrong
    path: Path
    detail: str
    value: Any = None

    def text(self) -> str:
        """Everything after the field's path."""
        start = self.wrong.value[0]
        if self.wrong not in _VALUELESS:
            start = f"{start}: {_shown(self.value)}"
        return f"{start}: {self.detail}" if self.detail else start

    def cause(self) -> Cause:
        return Cause(self.wrong.value[1], self.text(), _cut(str(self.path), PATH_LENGTH_MAX))


def _shown(value: Any) -> str:
    if isinstance(value, _Verbatim):
        return value
    return _cut(json.dumps(value, ensure_ascii=False, separators=(",", ":")), VALUE_LENGTH_MAX)


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[:most]}..."


class _Verbatim(str):
    """A value to be shown without quotes."""


def required(path: Path, detail: str = "") -> FieldError:
    return FieldError(Wrong.REQUIRED, path, detail)


def invalid(path: Path, value: Any, detail: str) -> FieldError:
    return FieldError(Wrong.INVALID, path, detail, value)


def duplicate(path: Path, value: Any) -> FieldError:
    return FieldError(Wrong.DUPLICATE, path, "", value)


def too_many(path: Path, actual: int, most: int) -> FieldError:
    return FieldError(Wrong.TOO_MANY, path, f"{actual}: must have at most {most} items")


def too_long(path: Path, most: int) -> FieldError:
    return FieldError(Wrong.TOO_LONG, path, f"may not be more than {most} bytes")


def unsupported(path: Path, value: Any, supported: Iterable[str]) -> FieldError:
    listed = ", ".join(json.dumps(s) for s in sorted(supported))
    return FieldError(Wrong.UNSUPPORTED, path, f"supported values: {listed}", value)


def forbidden(path: Path, detail: str) -> FieldError:
    return FieldError(Wrong.FORBIDDEN, path, detail)


def not_found(path: Path, value: Any) -> FieldError:
    return FieldError(Wrong.NOT_FOUND, path, "", value)


def refusal(group: str, kind: str, name: str, errors: Sequence[FieldError]) -> Invalid:
    """The first of `errors` as the one answer a client gets."""
    causes = [error.cause() for error in errors[:ERRORS_SHOWN_MAX]]
    texts = [f"{cause.field}: {cause.message}" for cause in causes]
    if len(errors) > len(texts):
        texts.append(f"and {len(errors) - len(texts)} more")
    what = texts[0] if len(texts) == 1 else "[" + ", ".join(texts) + "]"
    qualified = f"{kind}.{group}" if group else kind
    return Invalid(
        f'{qualified} "{name}" is invalid: {what}',
        group=group,
        kind=kind,
        name=name,
        causes=causes,
    )
