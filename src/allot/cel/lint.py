"""Selectors that compile and can never match, because nobody publishes such a name.

A typing mistake in a domain reads as an empty map and in a name as a run-time
error; neither says what was meant. Against an inventory both can be found, with
the nearest name that exists.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches

from .device import CelDevice
from .errors import ParseProblem
from .lookups import Found, Lookup, lookups
from .parser import parse
from .tree import Call, Literal, Node, Select, walk

Published = Mapping[str, frozenset[str]]  # domain to names


@dataclass(frozen=True, slots=True)
class InventoryNames:
    """Every name some published device has."""

    drivers: frozenset[str] = frozenset()
    attributes: Published = field(default_factory=dict)
    capacity: Published = field(default_factory=dict)

    @classmethod
    def of(cls, devices: Iterable[CelDevice]) -> "InventoryNames":
        drivers: set[str] = set()
        attributes: dict[str, set[str]] = {}
        capacity: dict[str, set[str]] = {}
        for device in devices:
            drivers.add(device.driver)
            for names, domains in ((attributes, device.attributes), (capacity, device.capacity)):
                for domain, values in domains.items():
                    names.setdefault(domain, set()).update(values)
        return cls(frozenset(drivers), _frozen(attributes), _frozen(capacity))


@dataclass(frozen=True, slots=True)
class Suspicion:
    at: int  # offset in the expression
    message: str
    suggestion: str | None = None  # the name that may have been meant

    def __str__(self) -> str:
        return f"{self.message}; did you mean {self.suggestion}?" if self.suggestion else self.message


def lint(expression: str, inventory: InventoryNames) -> list[Suspicion]:
    """What looks mistaken in a selector, given what is published; nothing if it does not parse."""
    try:
        root = parse(expression)
    except ParseProblem:
        return []
    suspicions = [found for lookup in lookups(root) if (found := _judge(lookup, inventory)) is not None]
    suspicions += _unknown_drivers(root, inventory)
    return sorted(dict.fromkeys(suspicions), key=lambda suspicion: suspicion.at)


def _frozen(names: Mapping[str, set[str]]) -> Published:
    return {domain: frozenset(found) for domain, found in names.items()}


def _judge(found: Found, inventory: InventoryNames) -> Suspicion | None:
    lookup = found.lookup
    if lookup.part not in ("attributes", "capacity") or lookup.domain is None:
        return None
    here, there = inventory.attributes, inventory.capacity
    if lookup.part == "capacity":
        here, there = there, here
    names = here.get(lookup.domain)
    if names is None:
        return _unknown_domain(found, here, there)
    if lookup.name is None or lookup.name in names:
        return None
    return Suspicion(found.at, f"no device publishes {lookup}", _nearest_name(lookup, names, here, there))


def _unknown_domain(found: Found, here: Published, there: Published) -> Suspicion:
    lookup = found.lookup
    assert lookup.domain is not None
    if lookup.name is not None and lookup.name in there.get(lookup.domain, ()):
        return Suspicion(found.at, f"no device publishes {lookup}", str(_in_other_part(lookup)))
    near = get_close_matches(lookup.domain, here, n=1, cutoff=0.6)
    suggestion = str(Lookup(lookup.part, near[0], lookup.name)) if near else None
    return Suspicion(found.at, f"no device has {lookup.part} in domain {lookup.domain}", suggestion)


def _nearest_name(lookup: Lookup, names: frozenset[str], here: Published, there: Published) -> str | None:
    assert lookup.domain is not None and lookup.name is not None
    if lookup.name in there.get(lookup.domain, ()):
        return str(_in_other_part(lookup))
    for domain, known in sorted(here.items()):
        if lookup.name in known:
            return str(Lookup(lookup.part, domain, lookup.name))
    lowered = {name.lower(): name for name in sorted(names)}
    near = get_close_matches(lookup.name.lower(), lowered, n=1, cutoff=0.6)
    return str(Lookup(lookup.part, lookup.domain, lowered[near[0]])) if near else None


def _in_other_part(lookup: Lookup) -> Lookup:
    other = "capacity" if lookup.part == "attributes" else "attributes"
    return Lookup(other, lookup.domain, lookup.name)


def _unknown_drivers(root: Node, inventory: InventoryNames) -> list[Suspicion]:
    suspicions: list[Suspicion] = []
    for node in walk(root):
        match node:
            case Call(
                function="_==_",
                args=(Select(field="driver"), Literal(value=str() as driver))
                | (Literal(value=str() as driver), Select(field="driver")),
            ) if driver not in inventory.drivers:
                near = get_close_matches(driver, inventory.drivers, n=1, cutoff=0.6)
                suspicions.append(
                    Suspicion(node.at, f"no device has driver {driver}", near[0] if near else None)
                )
    return suspicions
