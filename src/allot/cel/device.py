"""A device as a selector sees it.

Built once for each kind of device and evaluated many times, so the maps are in
their final shape here: domain, then name, then value. Names without a domain are
filed under the driver. Asking for a domain nobody has published yields an empty
map, asking for a name in it is an error, and `"domain" in device.attributes`
tells the truth.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from allot.api import Quantity, Semver

from . import hints
from .values import INT_MAX, INT_MIN

Attributes = Mapping[str, Mapping[str, Any]]
_LIST_VALUES_MAX: Final = 64
_NOTHING: Final[dict[str, Any]] = {}


class Domains(dict[str, dict[str, Any]]):
    """Domain to names; an unknown domain is empty rather than missing."""

    __slots__ = ()

    def __missing__(self, domain: str) -> dict[str, Any]:
        return _NOTHING


@dataclass(frozen=True, slots=True, eq=False)
class CelDevice:
    driver: str
    attributes: Domains
    capacity: Domains
    allow_multiple_allocations: bool = False
    problem: str | None = None  # why no selector can judge this device
    plain: bool = True  # no problem, and within the sizes that cost estimates rely on

    @classmethod
    def of(
        cls,
        driver: str,
        attributes: Attributes | None = None,
        capacity: Mapping[str, Quantity] | None = None,
        allow_multiple_allocations: bool = False,
    ) -> "CelDevice":
        found, amounts, problem = Domains(), Domains(), None
        for name, written in (attributes or {}).items():
            domain, id = _qualified(name, driver)
            try:
                found.setdefault(domain, {})[id] = _value(written)
            except ValueError as trouble:
                problem = problem or f"attribute {name}: {trouble}"
        for name, amount in (capacity or {}).items():
            domain, id = _qualified(name, driver)
            amounts.setdefault(domain, {})[id] = amount
        bounded = len(driver) <= hints.DRIVER_MAX and _is_bounded(found) and _is_bounded(amounts)
        plain = bounded and problem is None
        return cls(driver, found, amounts, allow_multiple_allocations, problem, plain)


def _qualified(name: str, driver: str) -> tuple[str, str]:
    domain, slash, id = name.partition("/")
    return (domain, id) if slash else (driver, name)


def _value(written: Mapping[str, Any]) -> Any:
    """The one value an attribute carries, in the order upstream looks for it."""
    for key, read in _READERS.items():
        value = written.get(key)
        if value is not None:
            return read(value)
    raise ValueError("unsupported attribute value")


def _int(value: Any) -> int:
    if type(value) is not int or not INT_MIN <= value <= INT_MAX:
        raise ValueError(f"not an int: {value!r:.40}")
    return value


def _bool(value: Any) -> bool:
    if type(value) is not bool:
        raise ValueError(f"not a bool: {value!r:.40}")
    return value


def _string(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError(f"not a string: {value!r:.40}")
    return value


def _version(value: Any) -> Semver:
    return Semver.parse(_string(value))


def _each(read: Any) -> Any:
    def read_all(values: Any) -> tuple[Any, ...]:
        if not isinstance(values, Sequence) or isinstance(values, str):
            raise ValueError(f"not a list: {values!r:.40}")
        return tuple(read(value) for value in values)

    return read_all


_READERS: Final = {
    "int": _int,
    "bool": _bool,
    "string": _string,
    "version": _version,
    "ints": _each(_int),
    "bools": _each(_bool),
    "strings": _each(_string),
    "versions": _each(_version),
}


def _is_bounded(domains: Domains) -> bool:
    return len(domains) <= hints.MAP_MAX and all(
        len(domain) <= hints.DOMAIN_MAX
        and len(names) <= hints.MAP_MAX
        and all(len(id) <= hints.ID_MAX and _is_small(value) for id, value in names.items())
        for domain, names in domains.items()
    )


def _is_small(value: Any) -> bool:
    if isinstance(value, tuple):
        return len(value) <= _LIST_VALUES_MAX and all(_is_small(item) for item in value)
    if isinstance(value, str):
        return len(value) <= hints.VALUE_MAX
    return not isinstance(value, Semver) or len(value.text) <= hints.VALUE_MAX
