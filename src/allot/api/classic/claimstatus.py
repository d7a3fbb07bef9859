"""What may be written into the status of a classic claim.

A driver sets an allocation and takes it away; scheduler and claim controller list who may use it, and the
scheduler may ask for it back. What keeps them out of each other's way is held here, whoever writes:

    reservations only with an allocation, one unless it is shareable, 32 at most
    no new one while deallocation is requested, or the claim is being deleted
    an allocation goes only when nobody has reserved it, and its place stays while somebody has
    deallocation is requested of what is allocated and not reserved, and the request ends with the allocation
"""

from .. import field
from ..field import FieldError, Path
from ..kind import Fields, WriteContext
from ..resource import checks, nodeselectors
from ..resource.claimstatus import check_consumer
from ..resource.found import Found, each_unique
from ..resource.reading import same
from . import drivers, limits, permissions

_STATUS = Path("status")
_ALLOCATION = _STATUS / "allocation"


def validate_status(new: Fields, old: Fields, context: WriteContext) -> list[FieldError]:
    status, before = new.get("status") or {}, old.get("status") or {}
    metadata = new.get("metadata") or {}
    found = Found()
    found.add(*permissions.status_write(new, old, context))
    check_reservations(found, status, before, is_deleted=bool(metadata.get("deletionTimestamp")))
    _allocation(found, status, before)
    driver = status.get("driverName") or ""
    is_allocated = status.get("allocation") is not None and before.get("allocation") is None
    if is_allocated or (driver and driver != (before.get("driverName") or "")):
        found.add(*drivers.allocates(new, driver, context))
    check_request(found, status, before)
    if status.get("devices"):
        text = "a claim of a resource class has no devices that drivers report on"
        found.add(field.forbidden(_STATUS / "devices", text))
    return found.errors(context.version)


def check_reservations(found: Found, status: Fields, before: Fields, *, is_deleted: bool) -> None:
    reserved, path = status.get("reservedFor") or (), _STATUS / "reservedFor"
    each_unique(
        found, reserved, limits.RESERVED_FOR_MAX, path,
        lambda one, at: check_consumer(found, one, at), lambda one: one.get("uid") or "",
    )  # fmt: skip
    if not reserved:
        return
    allocation = status.get("allocation")
    if allocation is None:
        found.add(field.forbidden(path, "may not be specified when `allocation` is not set"))
        return
    if len(reserved) > 1 and not allocation.get("shareable"):
        text = f"{len(reserved)} consumers of an allocation that is not shareable: it has one at a time"
        found.add(field.forbidden(path, text))
    known = {one.get("uid") for one in before.get("reservedFor") or ()}
    is_wanted_back = before.get("deallocationRequested") or status.get("deallocationRequested")
    if (is_deleted or is_wanted_back) and any(one.get("uid") not in known for one in reserved):
        text = "new entries may not be added while `deallocationRequested` or `deletionTimestamp` are set"
        found.add(field.forbidden(path, text))


def _allocation(found: Found, status: Fields, before: Fields) -> None:
    new, old = status.get("allocation"), before.get("allocation")
    reserved = len(before.get("reservedFor") or ())
    if new is None:
        if old is not None and reserved:
            text = f"may not be cleared while the claim is reserved: there are {reserved} in `reservedFor`"
            found.add(field.forbidden(_ALLOCATION, text))
        return
    driver = status.get("driverName") or ""
    checks.driver_name(found, driver, _STATUS / "driverName")
    if checks.size(new.get("resourceHandle") or "") > limits.RESOURCE_HANDLE_MAX:
        found.add(field.too_long(_ALLOCATION / "resourceHandle", limits.RESOURCE_HANDLE_MAX))
    path = _ALLOCATION / "availableOnNodes"
    if new.get("nodeSelector") is not None:
        nodeselectors.check(found, new["nodeSelector"], path)
    if new.get("devices"):
        text = "a claim of a resource class is allocated by its driver, which names no devices"
        found.add(field.forbidden(_ALLOCATION / "devices", text))
    if old is None:
        return
    if driver != (before.get("driverName") or ""):
        found.add(
            field.invalid(_STATUS / "driverName", driver, "may not change while the claim is allocated")
        )
    if reserved and not same(new.get("nodeSelector"), old.get("nodeSelector")):
        found.add(field.forbidden(path, "may not change while the claim is reserved"))


def check_request(found: Found, status: Fields, before: Fields) -> None:
    """For deallocation."""
    path = _STATUS / "deallocationRequested"
    if status.get("deallocationRequested"):
        if status.get("allocation") is None:
            found.add(field.forbidden(path, "may not be set when `allocation` is not set"))
        if status.get("reservedFor"):
            found.add(field.forbidden(path, "may not be set while the claim is reserved"))
    elif before.get("deallocationRequested") and status.get("allocation") is not None:
        found.add(field.forbidden(path, "is reset in the write that clears `allocation`"))
