"""What may be written into the status of a claim that the scheduler allocates with numeric parameters.

It has the shape of a classic claim, and the finalizer of numeric ones tells it apart. No driver has a say:
scheduler and claim controller write all of it, in every version but v1alpha1, and need
`resourceclaims/binding` for it.

    an allocation is set or cleared, never changed
    it names one node, its driver, and what it takes there as results of the node's numeric pool
    reservations as of any classic claim: one unless it is shareable, 32 at most, none while it goes
    with the allocation go the driver's name and a request to deallocate
"""

from collections.abc import Sequence

from .. import field
from ..field import FieldError, Path
from ..kind import Fields, Rules, WriteContext
from ..numeric import limits as numeric_limits
from ..quantity import Quantity
from ..resource import checks, nodeselectors
from ..resource.found import Found
from ..resource.permissions import only_node
from ..resource.reading import same
from . import drivers, permissions
from .claimstatus import check_request, check_reservations

_STATUS = Path("status")
_ALLOCATION = _STATUS / "allocation"
_RESULTS = _ALLOCATION / "devices" / "results"
REQUEST = "classic"
"""What the results name as their request: the one that the stored form of a classic claim has."""


def prepare_status(new: Fields, old: Fields, context: WriteContext) -> None:
    status = new.get("status") or {}
    if status.get("allocation") is None:
        for part in ("driverName", "deallocationRequested"):
            status.pop(part, None)


def validate_status(new: Fields, old: Fields, context: WriteContext) -> list[FieldError]:
    status, before = new.get("status") or {}, old.get("status") or {}
    metadata = new.get("metadata") or {}
    found = Found()
    found.add(*permissions.numeric_status_write(status, before, context))
    check_reservations(found, status, before, is_deleted=bool(metadata.get("deletionTimestamp")))
    allocation, held = status.get("allocation"), before.get("allocation")
    if held is not None and allocation is not None:
        _kept(found, status, before)
    elif allocation is not None:
        _allocation(found, allocation, status.get("driverName") or "")
        found.add(*drivers.allocates(new, status.get("driverName") or "", context))
    check_request(found, status, before)
    if status.get("devices"):
        text = "a claim of a resource class has no devices that drivers report on"
        found.add(field.forbidden(_STATUS / "devices", text))
    return found.errors(context.version)


def _kept(found: Found, status: Fields, before: Fields) -> None:
    for part in ("allocation", "driverName"):
        if not same(status.get(part), before.get(part)):
            found.add(field.forbidden(_STATUS / part, "may be set and cleared, and not changed"))


def _allocation(found: Found, allocation: Fields, driver: str) -> None:
    checks.driver_name(found, driver, _STATUS / "driverName")
    if checks.size(allocation.get("resourceHandle") or "") > numeric_limits.HANDLE_MAX:
        found.add(field.too_long(_ALLOCATION / "resourceHandle", numeric_limits.HANDLE_MAX))
    path = _ALLOCATION / "nodeSelector"
    if allocation.get("nodeSelector") is not None:
        nodeselectors.check(found, allocation["nodeSelector"], path)
    node = only_node(allocation)
    if node is None:
        found.add(field.invalid(path, None, "must select exactly one node, by its name"))
    results: Sequence[Fields] = (allocation.get("devices") or {}).get("results") or ()
    if not results:
        found.add(field.required(_RESULTS))
    shares = set()
    for at, one in enumerate(results):
        _result(found, one, driver, node, _RESULTS[at])
        share = one.get("shareID")
        if share in shares:
            found.add(field.duplicate(_RESULTS[at] / "shareID", share))
        shares.add(share)


def _result(found: Found, result: Fields, driver: str, node: str | None, path: Path) -> None:
    expected = {
        "request": REQUEST,
        "driver": driver,
        **({"pool": numeric_limits.pool_of(node)} if node is not None else {}),
    }
    for part, value in expected.items():
        if result.get(part) != value:
            found.add(field.invalid(path / part, result.get(part), f"must be {value}"))
    for part in ("device", "shareID"):
        if not result.get(part):
            found.add(field.required(path / part))
    for name, amount in (result.get("consumedCapacity") or {}).items():
        if not _is_amount(amount):
            found.add(field.invalid((path / "consumedCapacity")[name], amount, "must be an amount"))


def _is_amount(value: str | int | float) -> bool:
    try:
        return Quantity.parse(value).sign >= 0
    except (ValueError, TypeError):
        return False


STATUS_RULES = Rules(prepare_status=prepare_status, validate_status=validate_status)
"""For its status alone; all else is judged as of any classic claim."""
