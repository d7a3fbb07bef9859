"""A claim as the scheduler reads it."""

from collections.abc import Container, Mapping

import msgspec
from msgspec.structs import replace

from allot.allocation import DeviceId, Taken
from allot.api import Object, classic, resource
from allot.informers import Key


class ClaimInfo(msgspec.Struct, frozen=True, eq=False, gc=False):
    object: Object
    uid: str
    key: Key
    view: resource.ResourceClaim

    @classmethod
    def of(cls, object: Object) -> "ClaimInfo":
        return cls(object, object.uid, Key.of(object), object.view(resource.ResourceClaim))

    @property
    def allocation(self) -> resource.AllocationResult | None:
        return self.view.status.allocation

    @property
    def is_deleting(self) -> bool:
        return bool(self.view.metadata.deletion_timestamp)

    @property
    def is_classic(self) -> bool:
        """Whether its driver allocates it (KEP-3063), and not the scheduler."""
        return self.view.spec.resource_class_name != ""  # `shape.is_classic`, asked of every claim

    @property
    def is_held_numerically(self) -> bool:
        """Whether it is allocated with numeric parameters (KEP-4381)."""
        return self.allocation is not None and resource.shape.is_numeric(self.view)

    @property
    def is_to_be_deallocated(self) -> bool:
        return self.view.status.deallocation_requested

    @property
    def reserved_for(self) -> tuple[resource.ResourceClaimConsumerReference, ...]:
        return self.view.status.reserved_for

    def is_reserved_for(self, uid: str) -> bool:
        return any(one.uid == uid for one in self.reserved_for)

    def is_controlled_by(self, uid: str) -> bool:
        return any(one.controller and one.uid == uid for one in self.view.metadata.owner_references)

    def users_besides(self, uid: str) -> tuple[str, ...]:
        """Everybody else who is listed as a user, in words: pods by name, others with their resource."""
        others = (one for one in self.reserved_for if one.uid != uid)
        return tuple(one.name if one.resource == "pods" else f"{one.resource}/{one.name}" for one in others)

    @property
    def users_max(self) -> int:
        if not self.is_classic:
            return resource.limits.RESERVED_FOR_MAX
        is_shareable = self.allocation is not None and self.allocation.shareable
        return classic.limits.RESERVED_FOR_MAX if is_shareable else 1

    def is_closed_to(self, uid: str) -> bool:
        """Whether others have so much of it that a pod cannot use it besides them."""
        return len(self.reserved_for) >= self.users_max and not self.is_reserved_for(uid)

    # -- as it would be; the object stays what the server said ------------------------------------

    def allocated(self, allocation: resource.AllocationResult) -> "ClaimInfo":
        return self._with(self.reserved_for, allocation)

    def unused(self) -> "ClaimInfo":
        return self._with((), None)

    def used_by(self, uid: str, name: str) -> "ClaimInfo":
        if self.is_reserved_for(uid):
            return self
        user = resource.ResourceClaimConsumerReference(resource="pods", name=name, uid=uid)
        return self._with((*self.reserved_for, user), self.allocation)

    def without_users(self, uids: Container[str]) -> "ClaimInfo":
        left = tuple(one for one in self.reserved_for if one.uid not in uids)
        return self if left == self.reserved_for else self._with(left, self.allocation)

    def _with(
        self,
        reserved_for: tuple[resource.ResourceClaimConsumerReference, ...],
        allocation: resource.AllocationResult | None,
    ) -> "ClaimInfo":
        status = replace(self.view.status, reserved_for=reserved_for, allocation=allocation)
        return replace(self, view=replace(self.view, status=status))

    def __repr__(self) -> str:
        return f"ClaimInfo({self.key} {self.uid})"

    def is_newer_than(self, other: "ClaimInfo") -> bool:
        return is_newer(self.object, other.object)


def devices_named(object: Object) -> tuple[Taken, ...]:
    """Of a claim that cannot be read as one: the devices that its status names, as far as that can be made
    out. They count as taken whole."""
    status = object.fields.get("status")
    allocation = status.get("allocation") if isinstance(status, Mapping) else None
    devices = allocation.get("devices") if isinstance(allocation, Mapping) else None
    results = devices.get("results") if isinstance(devices, Mapping) else None
    found: dict[DeviceId, Taken] = {}
    for one in results if isinstance(results, list) else ():
        named = one if isinstance(one, Mapping) else {}
        driver, pool, device = (named.get(part) for part in ("driver", "pool", "device"))
        if isinstance(driver, str) and isinstance(pool, str) and isinstance(device, str):
            id = DeviceId(driver, pool, device)
            found[id] = Taken(id, admin=named.get("adminAccess") is True)
    return tuple(found.values())


def is_newer(object: Object, than: Object) -> bool:
    """Versions of one server are numbers that grow; where they are not, what comes later is newer."""
    mine, theirs = object.resource_version, than.resource_version
    if mine.isdigit() and theirs.isdigit():
        return int(mine) > int(theirs)
    return mine != theirs


def other_owner(claim: resource.ResourceClaim, pod_uid: str) -> str:
    """The name of the pod that a claim was made for, from a template or for its extended resources, if
    that is another one than this: nobody else may use it, whoever names it (C4, C12)."""
    owner = claim.metadata.controlling_pod
    return owner.name if owner is not None and owner.uid != pod_uid else ""
