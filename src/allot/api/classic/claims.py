"""What a classic ResourceClaim and a template of one may ask for: a class, parameters, and when."""

from .. import field
from ..field import FieldError, Path
from ..kind import Fields, Rules, WriteContext
from ..resource import checks, shape
from ..resource.claims import check_template_metadata
from ..resource.found import Found
from ..resource.reading import same
from ..resource.shape import IMMEDIATE, WAIT_FOR_FIRST_CONSUMER
from . import claimstatus, classes, drivers, limits, versions

_SPEC = Path("spec")
_MODES = (IMMEDIATE, WAIT_FOR_FIRST_CONSUMER)


def prepare_create(new: Fields, context: WriteContext) -> None:
    new["status"] = {}


def validate_create(new: Fields, context: WriteContext) -> list[FieldError]:
    found = Found()
    _spec(found, new.get("spec") or {}, _SPEC, context)
    found.add(*drivers.marks(new, {}, context))
    return found.errors(context.version)


def validate_update(new: Fields, old: Fields, context: WriteContext) -> list[FieldError]:
    return [*_kept(new, old), *drivers.marks(new, old, context), *_made_numeric(new, old)]


def _made_numeric(new: Fields, old: Fields) -> list[FieldError]:
    """What a driver has allocated is its own to take back: nobody makes it look like the scheduler's."""
    if shape.is_numeric_in(old) or (old.get("status") or {}).get("allocation") is None:
        return []
    if shape.NUMERIC_FINALIZER not in (new["metadata"].get("finalizers") or ()):
        return []
    text = "may not be set on a claim that its driver has allocated"
    return [field.forbidden(Path("metadata") / "finalizers", text)]


def _kept(new: Fields, old: Fields) -> list[FieldError]:
    if same(new.get("spec"), old.get("spec")):
        return []
    return [field.invalid(_SPEC, None, "field is immutable")]


def prepare_template(new: Fields, context: WriteContext) -> None:
    spec = new.setdefault("spec", {})
    for name in ("metadata", "spec"):
        if spec.get(name) is None:
            spec[name] = {}


def validate_template(new: Fields, context: WriteContext) -> list[FieldError]:
    spec = new.get("spec") or {}
    found = Found()
    check_template_metadata(found, spec.get("metadata") or {}, _SPEC / "metadata")
    _spec(found, spec.get("spec") or {}, _SPEC / "spec", context)
    return found.errors(context.version)


def _spec(found: Found, spec: Fields, path: Path, context: WriteContext) -> None:
    name, mode = spec.get("resourceClassName") or "", spec.get("allocationMode") or ""
    if context.version != limits.VERSION:
        text = f"claims of a resource class are made in {limits.API_VERSION}, this is {context.version}"
        found.add(field.forbidden(path / "resourceClassName", text))
        return
    checks.class_name(found, name, path / "resourceClassName")
    if name and mode not in _MODES:
        found.add(field.unsupported(path / "allocationMode", mode, _MODES))
    if spec.get("parametersRef") is not None:
        classes.parameters(found, spec["parametersRef"], path / "parametersRef")
    if name and spec.get("devices") != versions.devices_of(name):
        text = "may not be set beside `resourceClassName`: its driver decides on the devices"
        found.add(field.forbidden(path / "devices", text))


CLAIM_RULES = Rules(
    prepare_create=prepare_create,
    validate_create=validate_create,
    validate_update=validate_update,
    validate_status=claimstatus.validate_status,
)

TEMPLATE_RULES = Rules(
    prepare_create=prepare_template,
    prepare_update=lambda new, old, context: prepare_template(new, context),
    validate_create=validate_template,
    validate_update=lambda new, old, context: _kept(new, old),
)
