"""Devices, and what many of them have in common.

A fleet publishes the same description thousands of times. Whatever two devices
have in common besides their name is stored once, as their *kind*; a selector is
evaluated once per kind and remembered there for as long as a device of the kind
is published. A device is then little more than a name and a pointer.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, TypeVar
from weakref import WeakValueDictionary

import msgspec

from allot.api import Quantity, meta, resource
from allot.cel import CelDevice

from .capacity import Capacity

A = TypeVar("A")
B = TypeVar("B")


class PoolId(NamedTuple):
    driver: str
    name: str

    def __str__(self) -> str:
        return f"{self.driver}/{self.name}"


class DeviceId(NamedTuple):
    driver: str
    pool: str
    name: str

    @property
    def pool_id(self) -> PoolId:
        return PoolId(self.driver, self.pool)

    def __str__(self) -> str:
        return f"{self.driver}/{self.pool}/{self.name}"


Taints = tuple[resource.DeviceTaint, ...]

Value = frozenset[tuple[str, object]]
"""An attribute as the set of its typed values: a scalar is a set of one, and a value
of a type that the rules do not know is the empty set."""

UNKNOWN_VALUE: Value = frozenset()


class Consumption(NamedTuple):
    """What a device draws from one counter set of its pool."""

    counter_set: str
    amounts: tuple[tuple[str, int], ...]  # counter, nano units
    groups: frozenset[str]


REMEMBERED_MAX = 1024


class BadSlice(ValueError):
    """A published slice that cannot be read; the message names the field."""


class Kind:
    """Everything that a device's description says, but for its name."""

    __slots__ = (
        "__weakref__",
        "_cel",
        "_description",
        "binding",
        "capacity",
        "consumption",
        "draws",
        "driver",
        "remembered",
        "shareable",
    )

    def __init__(self, driver: str, description: resource.Device) -> None:
        self.driver = driver
        self._description = description
        self.capacity = {
            name: _read(f"capacity[{name}]", Capacity.read, published)
            for name, published in description.capacity.items()
        }
        self.consumption = tuple(_consumption(one) for one in description.consumes_counters)
        self.draws = tuple(
            ((one.counter_set, counter), amount)
            for one in self.consumption
            for counter, amount in one.amounts
        )
        self.shareable = bool(description.allow_multiple_allocations)
        self.binding = bool(description.binding_conditions)
        self.remembered: dict[object, object] = {}
        """Answers that depend on the kind alone, by the question's own key."""
        self._cel: CelDevice | None = None

    @property
    def description(self) -> resource.Device:
        """As published, without the name."""
        return self._description

    @property
    def taints(self) -> Taints:
        return self._description.taints

    @property
    def cel(self) -> CelDevice:
        """The kind as selectors see it."""
        if self._cel is None:
            self._cel = CelDevice.of(
                self.driver,
                msgspec.to_builtins(self._description.attributes),
                {name: capacity.value for name, capacity in self.capacity.items()},
                self.shareable,
            )
        return self._cel

    def remember(self, key: object, answer: object) -> None:
        """Keep an answer. What is asked too rarely to be kept is worked out again."""
        if len(self.remembered) >= REMEMBERED_MAX:
            self.remembered.clear()
        self.remembered[key] = answer

    def attribute(self, name: str) -> resource.DeviceAttribute | None:
        """Look up a fully-qualified name; a driver may publish its own without the domain."""
        attributes = self._description.attributes
        found = attributes.get(name)
        if found is None:
            domain, _, identifier = name.partition("/")
            if identifier and domain == self.driver:
                found = attributes.get(identifier)
        return found


def value_of(attribute: resource.DeviceAttribute, *, lists: bool) -> Value:
    """The attribute's typed values; with `lists` off a list is of an unknown type."""
    for tag in ("int", "bool", "string", "version"):
        scalar = getattr(attribute, tag + "_" if tag in ("int", "bool") else tag)
        if scalar is not None:
            return frozenset(((tag, scalar),))
        if lists and (many := getattr(attribute, tag + "s")) is not None:
            return frozenset((tag, one) for one in many)
    return UNKNOWN_VALUE


@dataclass(frozen=True, slots=True)
class Place:
    """Where the devices of one slice may be used, and what the node need not do for them."""

    node_name: str | None
    node_selector: meta.NodeSelector | None
    all_nodes: bool
    per_device: bool | None
    skip_node_operations: tuple[str, ...]


class Device:
    """One published device. Compared by identity: a slice that changes publishes new ones."""

    __slots__ = ("id", "kind", "place", "taints")

    def __init__(self, id: DeviceId, kind: Kind, place: Place, taints: Taints) -> None:
        self.id = id
        self.kind = kind
        self.place = place
        self.taints = taints  # its own and those of the rules that name it

    @property
    def node_name(self) -> str | None:
        return (self.kind.description.node_name or None) if self.place.per_device else self.place.node_name

    @property
    def node_selector(self) -> meta.NodeSelector | None:
        return self.kind.description.node_selector if self.place.per_device else self.place.node_selector

    def __repr__(self) -> str:
        return f"Device({self.id})"


class Kinds:
    """The kinds of all published devices; one goes when its last device does."""

    def __init__(self) -> None:
        self._kinds: WeakValueDictionary[tuple[str, bytes], Kind] = WeakValueDictionary()
        self._encoder = msgspec.json.Encoder()

    def of(self, driver: str, published: resource.Device) -> Kind:
        description = msgspec.structs.replace(published, name="")
        key = (driver, self._encoder.encode(description))
        kind = self._kinds.get(key)
        if kind is None:
            kind = self._kinds[key] = Kind(driver, description)
        return kind

    def __len__(self) -> int:
        return len(self._kinds)


def _consumption(published: resource.DeviceCounterConsumption) -> Consumption:
    where = f"consumesCounters[{published.counter_set}]"
    return Consumption(
        published.counter_set,
        tuple(
            (name, nano(f"{where}[{name}]", counter.value)) for name, counter in published.counters.items()
        ),
        frozenset(published.compatibility_groups),
    )


def nano(field: str, text: str) -> int:
    return _read(field, Quantity.parse, text).nano


def _read(field: str, read: Callable[[A], B], published: A) -> B:
    try:
        return read(published)
    except ValueError as error:
        raise BadSlice(f"{field}: {error}") from None
