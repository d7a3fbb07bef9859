"""Who may write which part of the status of a classic claim.

A driver allocates and deallocates: it needs `resourceclaims/driver` for its own name. The scheduler and the
claim controller write reservations, and ask for deallocation: they need `resourceclaims/binding`, as for
structured claims. A driver may list the first users in the write that allocates.
"""

from .. import field
from ..field import FieldError, Path
from ..kind import Fields, WriteContext
from ..resource import limits
from ..resource.permissions import refusal
from ..resource.reading import same
from ..user import Action

_STATUS = Path("status")


def status_write(new: Fields, old: Fields, context: WriteContext) -> list[FieldError]:
    """May the caller change what differs between the two statuses?"""
    if not context.gates["DRAResourceClaimGranularStatusAuthorization"]:
        return []
    status, before = new.get("status") or {}, old.get("status") or {}
    namespace = (new.get("metadata") or {}).get("namespace") or ""
    changes = {part for part in ("allocation", "driverName", "reservedFor") if _differ(status, before, part)}
    errors = []
    if changes & {"allocation", "driverName"}:
        for name in _drivers(status, before):
            errors += _driver(name, namespace, context)
    is_first = status.get("allocation") is not None and before.get("allocation") is None
    if "reservedFor" in changes and not is_first:
        errors += _binding("reservedFor", context)
    if status.get("deallocationRequested") and not before.get("deallocationRequested"):
        errors += _binding("deallocationRequested", context)
    return errors


def numeric_status_write(status: Fields, before: Fields, context: WriteContext) -> list[FieldError]:
    """The same of a claim that the scheduler allocates: nobody else has a part in it."""
    if not context.gates["DRAResourceClaimGranularStatusAuthorization"]:
        return []
    parts = ("allocation", "driverName", "reservedFor", "deallocationRequested")
    changed = next((part for part in parts if _differ(status, before, part)), None)
    return _binding(changed, context) if changed is not None else []


def _drivers(status: Fields, before: Fields) -> list[str]:
    """Whose right it is: that of the driver which writes its name, and of the one whose allocation changes.
    An allocation without a driver is refused for that."""
    names = [status.get("driverName") or ""]
    if before.get("allocation") is not None or not names[0]:
        names.append(before.get("driverName") or "")
    return [name for name in dict.fromkeys(names) if name]


def _differ(status: Fields, before: Fields, part: str) -> bool:
    return not same(status.get(part), before.get(part))


def _driver(name: str, namespace: str, context: WriteContext) -> list[FieldError]:
    sub = limits.DRIVER_SUBRESOURCE
    action = Action(context.verb, limits.GROUP, "resourceclaims", sub, namespace=namespace, name=name)
    return _refused("allocation", action, context)


def _binding(part: str, context: WriteContext) -> list[FieldError]:
    action = Action(context.verb, limits.GROUP, "resourceclaims", limits.BINDING_SUBRESOURCE)
    return _refused(part, action, context)


def _refused(part: str, action: Action, context: WriteContext) -> list[FieldError]:
    why = refusal(context, action)
    if why is None:
        return []
    text = (
        f'changing status.{part} requires resource="resourceclaims/{action.subresource}",'
        f' verb="{action.verb}" permission: {why}'
    )
    return [field.forbidden(_STATUS / part, text)]
