"""What a DeviceTaintRule may say."""

from datetime import datetime

from .. import field
from ..age import timestamp
from ..field import FieldError, Path
from ..kind import Fields, WriteContext
from . import checks, conditions, limits
from .found import Found

_SPEC = Path("spec")
_CONDITIONS = Path("status") / "conditions"


def validate_create(new: Fields, context: WriteContext) -> list[FieldError]:
    spec = new.get("spec") or {}
    found = Found()
    _selector(found, spec.get("deviceSelector"), _SPEC / "deviceSelector")
    checks.taint(found, spec.get("taint") or {}, _SPEC / "taint")
    return found.errors(context.version)


def validate_update(new: Fields, old: Fields, context: WriteContext) -> list[FieldError]:
    """An effect that was accepted once stays accepted."""
    errors = validate_create(new, context)
    if _taint(new).get("effect") != _taint(old).get("effect"):
        return errors
    return [error for error in errors if error.path != _SPEC / "taint" / "effect"]


def validate_status(new: Fields, old: Fields, context: WriteContext) -> list[FieldError]:
    found = Found()
    listed = (new.get("status") or {}).get("conditions") or ()
    conditions.check(found, listed, _CONDITIONS)
    if len(listed) > limits.RULE_CONDITIONS_MAX:
        found.add(field.too_many(_CONDITIONS, len(listed), limits.RULE_CONDITIONS_MAX))
    return found.errors(context.version)


def restamp(new: Fields, old: Fields, now: datetime) -> None:
    """Another effect is another taint: it counts from now, unless the writer says otherwise."""
    taint, before = _taint(new), _taint(old)
    another = taint.get("effect") != before.get("effect")
    if taint and another and taint.get("timeAdded") == before.get("timeAdded"):
        taint["timeAdded"] = timestamp(now)


def _taint(rule: Fields) -> Fields:
    taint: Fields = (rule.get("spec") or {}).get("taint") or {}
    return taint


def _selector(found: Found, selector: Fields | None, path: Path) -> None:
    if selector is None:
        return
    if selector.get("driver") is not None:
        checks.driver_name(found, selector["driver"], path / "driver")
    if selector.get("pool") is not None:
        checks.pool_name(found, selector["pool"], path / "pool")
    if selector.get("device") is not None:
        checks.device_name(found, selector["device"], path / "device")
