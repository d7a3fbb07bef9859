"""What a driver has, declared as values: pools of devices, and what the API is told of them. Pure.

    Pool("node-1", [
        Device("gpu-0", {"model": "H100", "firmware": Version("1.2.0")}, capacity={"memory": "80Gi"}),
    ])

Partitions are devices that consume counters of their pool; a device that several claims may share
says so, and how its capacity may be cut. What the API server would refuse for its form it refuses
itself, with the field's path; here stands what one server cannot see in a single slice.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from allot.api import resource

Fields = dict[str, Any]


class Version(str):
    """An attribute that is compared as a semantic version."""


Scalar = bool | int | str | Version
Attribute = Scalar | Sequence[Scalar]


@dataclass(frozen=True, slots=True)
class Capacity:
    """An amount that claims may take parts of: as much as `default`, unless they say otherwise."""

    value: str
    default: str = ""
    valid_values: tuple[str, ...] = ()
    min: str = ""
    max: str = ""
    step: str = ""

    def fields(self) -> Fields:
        policy: Fields = {"default": self.default} if self.default else {}
        if self.valid_values:
            policy["validValues"] = [*self.valid_values]
        bounds = {"min": self.min, "max": self.max, "step": self.step}
        if any(bounds.values()):
            policy["validRange"] = {name: value for name, value in bounds.items() if value}
        return {"value": self.value, **({"requestPolicy": policy} if policy else {})}


@dataclass(frozen=True, slots=True)
class Taint:
    key: str
    effect: str  # NoSchedule, NoExecute or None
    value: str = ""

    def fields(self) -> Fields:
        return {"key": self.key, "effect": self.effect, **({"value": self.value} if self.value else {})}


Counters = Mapping[str, Mapping[str, str]]
"""Counter set -> counter -> amount."""


@dataclass(frozen=True, slots=True)
class Device:
    name: str
    attributes: Mapping[str, Attribute] = field(default_factory=dict)
    capacity: Mapping[str, str | Capacity] = field(default_factory=dict)
    consumes: Counters = field(default_factory=dict)  # of the pool's counters
    taints: tuple[Taint, ...] = ()
    shared: bool = False  # several claims may have it at once
    binding_conditions: tuple[str, ...] = ()  # what must be true of it before a pod is bound
    binding_failure_conditions: tuple[str, ...] = ()
    binds_to_node: bool = False

    def fields(self) -> Fields:
        parts: Fields = {
            "attributes": described(self.attributes),
            "capacity": {name: _capacity(value) for name, value in self.capacity.items()},
            "consumesCounters": [
                {"counterSet": name, "counters": _counters(counters)}
                for name, counters in self.consumes.items()
            ],
            "taints": [taint.fields() for taint in self.taints],
            "allowMultipleAllocations": self.shared,
            "bindingConditions": [*self.binding_conditions],
            "bindingFailureConditions": [*self.binding_failure_conditions],
            "bindsToNode": self.binds_to_node,
        }
        return {"name": self.name, **{name: part for name, part in parts.items() if part}}


@dataclass(frozen=True, slots=True)
class Pool:
    """Devices of the driver's node that are published together. No other node has a pool of this name:
    the node's own name is a good one."""

    name: str
    devices: Sequence[Device]
    counters: Counters = field(default_factory=dict)

    def slices(self, driver: str, node: str) -> tuple[Fields, ...]:
        return resource.pools.Pool(
            driver,
            self.name,
            [device.fields() for device in self.devices],
            [{"name": name, "counters": _counters(counters)} for name, counters in self.counters.items()],
            node=node,
        ).slices()


class BadPools(ValueError):
    """What a driver declares contradicts itself. Every fault is named."""


def check(pools: Iterable[Pool]) -> None:
    faults = [*_faults(tuple(pools))]
    if faults:
        raise BadPools("; ".join(faults))


def _faults(pools: Sequence[Pool]) -> Iterator[str]:
    for name in _twice(pool.name for pool in pools):
        yield f"there are two pools {name!r}"
    for pool in pools:
        for name in _twice(device.name for device in pool.devices):
            yield f"pool {pool.name!r} has two devices {name!r}"
        for device in pool.devices:
            yield from (
                f"pool {pool.name!r}: device {device.name!r} {fault}" for fault in _dangling(pool, device)
            )


def _dangling(pool: Pool, device: Device) -> Iterator[str]:
    for name, counters in device.consumes.items():
        if name not in pool.counters:
            yield f"consumes counters of {name!r}, which the pool does not have"
            continue
        for counter in counters:
            if counter not in pool.counters[name]:
                yield f"consumes the counter {counter!r}, which {name!r} does not have"
    if bool(device.binding_conditions) != bool(device.binding_failure_conditions):
        yield "needs both binding conditions and binding failure conditions, or neither"


def _twice(names: Iterable[str]) -> list[str]:
    return [name for name, count in Counter(names).items() if count > 1]


def described(attributes: Mapping[str, Attribute]) -> Fields:
    """As the API has them."""
    return {name: _attribute(value) for name, value in attributes.items()}


def _attribute(value: Attribute) -> Fields:
    match value:
        case bool():
            return {"bool": value}
        case int():
            return {"int": value}
        case Version():
            return {"version": str(value)}
        case str():
            return {"string": value}
    kind = next(iter(_attribute(value[0]))) if value else "string"
    return {f"{kind}s": [*value]}


def _capacity(value: str | Capacity) -> Fields:
    return value.fields() if isinstance(value, Capacity) else {"value": value}


def _counters(counters: Mapping[str, str]) -> Fields:
    return {name: {"value": value} for name, value in counters.items()}
