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
from functools import lru_cache
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


@lru_cache(maxsize=4096)
def name(resource: str, properties: Properties) -> str:
    return compute.compute_resource_name(resource, dict(properties))


def resource_of(compute_resource: str) -> str:
    """The resource whose devices a compute resource has: the name says it."""
    return compute_resource.rpartition("-")[0]


class _Sorted(NamedTuple):
    """The devices of a resource by what they are (COMP1, COMP2)."""

    as_of: tuple[object, int]
    by_name: Mapping[str, tuple[Properties, tuple[str, ...]]]
    lent: Mapping[str, Properties | None]
    refused: Mapping[str, str]  # what cannot be exported, and why


class Exports:
    """What is exported of what plugins offer, beside what is lent of it. Sorted anew when either changes."""

    def __init__(self, offers: Offers, loans: Loans, is_wanted: bool) -> None:
        self._offers, self._loans = offers, loans
        self._known: dict[str, _Sorted] = {}
        self.is_wanted = is_wanted

    def is_exported(self, resource: str) -> bool:
        """COMP3."""
        lent = self._sorted(resource).lent
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
            f"{id} of {resource}": why
            for resource in self.exported
            for id, why in self._sorted(resource).refused.items()
        }

    def has(self, compute_resource: str) -> bool:
        resource = resource_of(compute_resource)
        return compute_resource in self._sorted(resource).by_name and self.is_exported(resource)

    def can_be_had(self, resource: str, compute_resource: str) -> frozenset[str]:
        """Of one compute resource, lent or not."""
        _, ids = self._sorted(resource).by_name.get(compute_resource, (NONE, ()))
        return self._offers.can_be_had(resource).intersection(ids)

    def lent_as(self, resource: str, id: str) -> Properties | None:
        """What a device that is to be lent is lent as; None: as one that is counted."""
        if not self.is_exported(resource):
            return None
        known = self._sorted(resource).lent.get(id)  # by an init container of the same pod
        return known if known is not None else self._offers.device(resource, id).properties

    def _of(self, resource: str) -> Iterator[ComputeResource]:
        healthy = self._offers.can_be_had(resource)
        every = self._sorted(resource).by_name.values() or ((NONE, ()),)  # COMP4
        for like, ids in sorted(every):
            yield ComputeResource(resource, like, ids, tuple(id for id in ids if id in healthy))

    def _sorted(self, resource: str) -> _Sorted:
        as_of = self._offers.mark(resource), self._loans.revision
        known = self._known.get(resource)
        if known is None or known.as_of[0] is not as_of[0] or known.as_of[1] != as_of[1]:
            known = self._known[resource] = self._sort(resource, as_of)
        return known

    def _sort(self, resource: str, as_of: tuple[object, int]) -> _Sorted:
        loans = (loan for loan in self._loans.all if loan.resource == resource)
        lent = {one.id: one.properties for loan in loans for one in loan.devices}
        found: dict[Properties, list[str]] = {}
        refused = {}
        for one in self._offers.listed(resource):
            like = lent.get(one.id)
            if like is not None:
                found.setdefault(like, []).append(one.id)
            elif why := wrong(one):
                refused[one.id] = why
            else:
                found.setdefault(one.properties, []).append(one.id)
        by_name = {name(resource, like): (like, tuple(ids)) for like, ids in found.items()}
        return _Sorted(as_of, by_name, lent, refused)


def wrong(device: Device) -> str:
    """Why a device cannot be exported; nothing if it can."""
    if len(device.id.encode()) > compute.limits.DEVICE_ID_MAX:
        return f"its id has more than {compute.limits.DEVICE_ID_MAX} bytes"
    return _wrong(device.properties)


@lru_cache(maxsize=4096)
def _wrong(properties: Properties) -> str:
    limits = compute.limits
    if len(properties) > limits.PROPERTIES_MAX:
        return f"it has more than {limits.PROPERTIES_MAX} properties"
    for key, value in properties:
        if problems := names.qualified(key):
            return f"the name of its property {key[:100]!r} is wrong: {problems[0]}"
        if len(value.encode()) > limits.PROPERTY_VALUE_MAX:
            return f"its property {key} has more than {limits.PROPERTY_VALUE_MAX} bytes"
    return ""
