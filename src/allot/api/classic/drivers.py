"""Which driver a classic claim is of.

At first its class says so. The driver marks the beginning of an allocation with its finalizer, and from then
on the claim is its own, also if the class changes or goes. So both are refused to a driver that neither
names: to write itself into the status, and to put its finalizer there.
"""

from .. import field
from ..field import FieldError, Path
from ..kind import Fields, WriteContext
from ..resource import shape
from . import limits

_DRIVER_NAME = Path("status") / "driverName"
_FINALIZERS = Path("metadata") / "finalizers"


def allocates(claim: Fields, driver: str, context: WriteContext) -> list[FieldError]:
    """May the driver call the claim its own?"""
    other = _other(claim, driver, context)
    if not other or limits.finalizer_of(driver) in _finalizers(claim):
        return []
    return [field.forbidden(_DRIVER_NAME, f"{other}, and {driver} had not begun before")]


def marks(new: Fields, old: Fields, context: WriteContext) -> list[FieldError]:
    """May the finalizers of drivers be there that are new? What is allocated its driver may protect again."""
    known = (new.get("status") or {}).get("driverName") or ""
    before, found = _finalizers(old), []
    for at, finalizer in enumerate(_finalizers(new)):
        driver = finalizer.removesuffix(limits.FINALIZER_SUFFIX)
        if finalizer in before or driver in (finalizer, known):
            continue
        if other := _other(new, driver, context):
            found.append(field.forbidden(_FINALIZERS[at], f"{other}, and not of {driver}"))
    return found


def _other(claim: Fields, driver: str, context: WriteContext) -> str:
    """Whose the class is, in words, if not this driver's."""
    name = shape.class_name_of(claim.get("spec") or {})
    known = context.resource_class(name)
    if known is None or known.get("driverName") == driver:
        return ""
    return f"resource class {name} is of driver {known.get('driverName')}"


def _finalizers(claim: Fields) -> list[str]:
    return (claim.get("metadata") or {}).get("finalizers") or []
