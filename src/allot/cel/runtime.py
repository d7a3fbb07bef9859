"""What generated code calls besides the library.

Each of these returns the right answer or raises; which error it is does not
matter, because the careful way repeats the evaluation and says it properly.
"""

from collections.abc import Callable, Iterable
from typing import Any

from allot.api import Semver

from .interpret import insert, pairs, sort_by_keys
from .values import NONE, Optional, from_key, no_overload, particular


def truth(value: Any) -> bool:
    if value is True or value is False:
        return value
    raise no_overload(value)


def int_only(value: Any) -> int:
    """For orders with an int: a bool would pass in Python, and does not in CEL."""
    if type(value) is int:
        return value
    raise no_overload(value)


def open_to_all(value: Any) -> Any:
    """For the left side of `==`: a version would refuse to be compared with another type."""
    if type(value) in particular:
        raise no_overload(value)
    return value


def precedence(value: Any) -> Any:
    if type(value) is Semver:
        return value.precedence
    raise no_overload(value)


def searcher(search: Callable[[str], Any]) -> Callable[[Any], bool]:
    """A compiled pattern as a test that accepts nothing but strings."""

    def matches(text: Any) -> bool:
        if type(text) is not str:
            raise no_overload(text)
        return search(text) is not None

    return matches


def each(container: Any) -> Iterable[Any]:
    """What a macro with one variable sees: the elements of a list, the keys of a map."""
    if isinstance(container, list | tuple):
        return container
    return [key for key, _ in pairs(container)]


def each_key(container: dict[Any, Any]) -> list[Any]:
    return [from_key(key) for key in container]


def only_one(ones: Iterable[int]) -> bool:
    return sum(ones) == 1


def make_list(optional: tuple[bool, ...], *elements: Any) -> list[Any]:
    made: list[Any] = []
    for is_optional, element in zip(optional, elements, strict=True):
        if not is_optional:
            made.append(element)
        elif not isinstance(element, Optional):
            raise no_overload(element)
        elif element.present:
            made.append(element.value)
    return made


def make_map(*entries: tuple[bool, Any, Any]) -> dict[Any, Any]:
    made: dict[Any, Any] = {}
    for is_optional, key, value in entries:
        if not is_optional:
            insert(made, key, value)
        elif not isinstance(value, Optional):
            raise no_overload(value)
        elif value.present:
            insert(made, key, value.value)
    return made


def merge_entries(maps: Iterable[Any]) -> dict[Any, Any]:
    made: dict[Any, Any] = {}
    for entries in maps:
        if not isinstance(entries, dict):
            raise no_overload(entries)
        for filed, value in entries.items():
            insert(made, from_key(filed), value)
    return made


def sort_by(items: Any, key: Callable[[Any], Any]) -> list[Any]:
    if not isinstance(items, list | tuple):
        raise no_overload(items)
    return sort_by_keys(items, [key(item) for item in items])


def opt_map(target: Any, body: Callable[[Any], Any], flat: bool) -> Optional:
    if not isinstance(target, Optional):
        raise no_overload(target)
    if not target.present:
        return NONE
    made = body(target.value)
    if not flat:
        return Optional(made)
    if not isinstance(made, Optional):
        raise no_overload(made)
    return made
