"""Devices with properties, as compute resources of the node (KEP-14): which there are, who is in which. Pure.

    counted ──────────────► exported                    the node is to export compute resources
            ◄──────────────                             it is not, any more
    each only while no device of the resource is lent as what it was before

What it promises
    COMP1  Devices with one name of a resource and the same properties are one compute resource, whose name
           follows from them; a device is in one of them.
    COMP2  What is lent stays what it was lent as, whatever its plugin says of it meanwhile; what is not lent
           is what the plugin says. So a property changes without anybody losing a device or being counted
           twice, and the change is complete when the last pod that had such a device is over.
    COMP3  A resource is counted or exported, never both. It changes when none of its devices is lent as
           what it was: those who have devices were given them under names that somebody still counts.
    COMP4  A resource that was offered once stays exported, at the end without devices: so a scheduler knows
           that a plugin serves it here, which is not the same as never having said (OFFER3).
"""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from allot.api import compute, names

from .loans import Loans
from .offers import Device, Offers, Properties

NONE: Properties = ()


class ComputeResource(NamedTuple):
    resource: str
    properties: Properties
    devices: tuple[str, ...]
    allocatable: tuple[str, ...]

    @property
    def name(self) -> str:
        return name(self.resource, self.properties)

    def as_fields(self) -> dict[str, Any]:
        """As a server shows it: what is empty is not there."""
        fields: dict[str, Any] = {"name": self.name, "resourceName": self.resource}
        lists = {"devices": list(self.devices), "allocatableDevices": list(self.allocatable)}
        said: dict[str, Any] = {"properties": dict(self.properties), **lists}
        return fields | {key: value for key, value in said.items() if value}


def name(resource: str, properties: Properties) -> str:
    return compute.compute_resource_name(resource, dict(properties))


def resource_of(compute_resource: str) -> str:
    """The resource whose devices a compute resource has: the name says it."""
    return compute_resource.rpartition("-")[0]


class Exports:
    """What is exported of what plugins offer, beside what is lent of it."""

    def __init__(self, offers: Offers, loans: Loans, is_wanted: bool) -> None:
        self._offers, self._loans = offers, loans
        self.is_wanted = is_wanted

    def is_exported(self, resource: str) -> bool:
        """COMP3."""
        lent = self._lent(resource)
        return any(one is not None for one in lent.values()) if lent else self.is_wanted

    @property
    def counted(self) -> tuple[str, ...]:
        return tuple(one for one in self._offers.resources if not self.is_exported(one))

    @property
    def exported(self) -> tuple[str, ...]:
        return tuple(one for one in self._offers.resources if self.is_exported(one))

    @property
    def late(self) -> tuple[str, ...]:
        """Resources that are to change, and wait for pods that have some of them (COMP3)."""
        return self.counted if self.is_wanted else self.exported

    def all(self) -> tuple[ComputeResource, ...]:
        """In a fixed order."""
        return tuple(one for resource in self.exported for one in self._of(resource))

    def refused(self) -> Mapping[str, str]:
        """Devices that are not exported, and why."""
        return {
            f"{one.id} of {resource}": why
            for resource in self.exported
            for one in self._offers.listed(resource)
            if (why := wrong(one))
        }

    def can_be_had(self, resource: str, compute_resource: str) -> frozenset[str]:
        """Of one compute resource, lent or not."""
        healthy = self._offers.can_be_had(resource)
        named = self._named(resource).items()
        return frozenset(
            id for id, like in named if id in healthy and name(resource, like) == compute_resource
        )

    def has(self, compute_resource: str) -> bool:
        resource = resource_of(compute_resource)
        known = {name(resource, like) for like in self._named(resource).values()}
        return self.is_exported(resource) and compute_resource in known

    def lent_as(self, resource: str, id: str) -> Properties | None:
        """What the device is lent as; None: as one that is counted."""
        return self._named(resource).get(id, NONE) if self.is_exported(resource) else None

    def _of(self, resource: str) -> Iterator[ComputeResource]:
        healthy = self._offers.can_be_had(resource)
        by_properties: dict[Properties, list[str]] = {}
        for id, like in self._named(resource).items():
            by_properties.setdefault(like, []).append(id)
        for like, ids in sorted((by_properties or {NONE: []}).items()):  # COMP4
            yield ComputeResource(resource, like, tuple(ids), tuple(id for id in ids if id in healthy))

    def _named(self, resource: str) -> dict[str, Properties]:
        """COMP1, COMP2: what each device that is listed is, in order of name."""
        lent = self._lent(resource)
        found = {}
        for one in self._offers.listed(resource):
            like = lent.get(one.id)
            if like is not None:
                found[one.id] = like
            elif not wrong(one):
                found[one.id] = one.properties
        return found

    def _lent(self, resource: str) -> dict[str, Properties | None]:
        loans = (loan for loan in self._loans.all if loan.resource == resource)
        return {one.id: one.properties for loan in loans for one in loan.devices}


def wrong(device: Device) -> str:
    """Why a device cannot be exported; nothing if it can."""
    limits = compute.limits
    if len(device.id.encode()) > limits.DEVICE_ID_MAX:
        return f"its id has more than {limits.DEVICE_ID_MAX} bytes"
    if len(device.properties) > limits.PROPERTIES_MAX:
        return f"it has more than {limits.PROPERTIES_MAX} properties"
    for key, value in device.properties:
        if problems := names.qualified(key):
            return f"the name of its property {key[:100]!r} is wrong: {problems[0]}"
        if len(value.encode()) > limits.PROPERTY_VALUE_MAX:
            return f"its property {key} has more than {limits.PROPERTY_VALUE_MAX} bytes"
    return ""
