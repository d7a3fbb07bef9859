"""Every error of one object, in the order and with the paths that upstream gives them.

Upstream checks twice: by hand, on the hub form, and then from declarations on
the types of the request's version. So hand-written errors come first and always
have v1 paths, and declared ones come after with the paths of the version that
the client wrote in. Which rule belongs to which half is upstream's history, not
logic, and callers say `add` or `declare`.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from .. import field
from ..field import FieldError, Path

Item = Any

# v1 path -> v1beta1 path
_FLAT_REQUEST = re.compile(r"^((?:spec\.)?spec\.devices\.requests\[\d+\])\.exactly\.")
_BASIC_DEVICE = re.compile(r"^(spec\.devices\[\d+\])\.(?!name\b)")


class Found:
    __slots__ = ("_by_hand", "_declared")

    def __init__(self) -> None:
        self._by_hand: list[FieldError] = []
        self._declared: list[FieldError] = []

    def add(self, *errors: FieldError) -> None:
        self._by_hand.extend(errors)

    def declare(self, *errors: FieldError) -> None:
        self._declared.extend(errors)

    def texts(self, path: Path, value: Any, texts: Iterable[str], *, declared: bool = False) -> None:
        """One `Invalid value` for each text that a check of `names` returned."""
        for text in texts:  # nearly always none
            (self._declared if declared else self._by_hand).append(field.invalid(path, value, text))

    def errors(self, version: str) -> list[FieldError]:
        if version != "v1beta1":
            return self._by_hand + self._declared
        return self._by_hand + [error._replace(path=in_v1beta1(error.path)) for error in self._declared]


def in_v1beta1(path: Path) -> Path:
    text = _FLAT_REQUEST.sub(r"\1.", str(path))
    return Path(_BASIC_DEVICE.sub(r"\1.basic.", text))


def each(
    found: Found,
    items: Sequence[Item],
    most: int | None,
    path: Path,
    check: Callable[[Item, Path], None],
    *,
    size_declared: bool = True,
) -> None:
    """Check every item. A list that is too long is not looked into."""
    if most is not None and len(items) > most:
        report = found.declare if size_declared else found.add
        report(field.too_many(path, len(items), most))
        return
    for at, item in enumerate(items):
        check(item, path[at])


def each_unique(
    found: Found,
    items: Sequence[Item],
    most: int | None,
    path: Path,
    check: Callable[[Item, Path], None],
    key: Callable[[Item], Any],
    *,
    declared: bool = True,
) -> None:
    """`each`, and no two items may have the same key.

    A declared check shows the whole item that came second, a hand-written one its key.
    """
    if most is not None and len(items) > most:
        (found.declare if declared else found.add)(field.too_many(path, len(items), most))
        return
    for at, item in enumerate(items):
        check(item, path[at])
    seen = set()
    for at, item in enumerate(items):
        this = key(item)
        if this in seen and declared:
            found.declare(field.duplicate(path[at], item))
        elif this in seen:
            found.add(field.duplicate(path[at], this))
        seen.add(this)
