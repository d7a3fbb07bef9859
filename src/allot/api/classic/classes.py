"""What a ResourceClass may say, and what a reference to parameters must."""

from .. import field, names
from ..field import FieldError, Path
from ..kind import Fields, WriteContext
from ..numeric import parametertypes
from ..resource import checks, nodeselectors
from ..resource.found import Found
from . import limits


def prepare_create(new: Fields, context: WriteContext) -> None:
    parametertypes.prepare(new, None, context)


def prepare_update(new: Fields, old: Fields, context: WriteContext) -> None:
    parametertypes.prepare(new, old, context)


def validate_create(new: Fields, context: WriteContext) -> list[FieldError]:
    return _validate(new, None, context)


def validate_update(new: Fields, old: Fields, context: WriteContext) -> list[FieldError]:
    """A class may change: claims keep what they need of it."""
    return _validate(new, old, context)


def _validate(new: Fields, old: Fields | None, context: WriteContext) -> list[FieldError]:
    found = Found()
    checks.driver_name(found, new.get("driverName") or "", Path("driverName"))
    reference = new.get("parametersRef")
    if reference is not None:
        parameters(found, reference, Path("parametersRef"))
        namespace = reference.get("namespace") or ""
        if namespace:
            found.texts(Path("parametersRef") / "namespace", namespace, names.label_name(namespace))
    if new.get("suitableNodes") is not None:
        nodeselectors.check(found, new["suitableNodes"], Path("suitableNodes"))
    parametertypes.check(found, new, old, context)
    return found.errors(context.version)


def parameters(found: Found, reference: Fields, path: Path) -> None:
    """Any object of any kind, which need not exist yet: its form is all that can be judged."""
    group, kind, name = (reference.get(part) or "" for part in ("apiGroup", "kind", "name"))
    if group:
        found.texts(path / "apiGroup", group, names.subdomain(group))
    if not kind:
        found.add(field.required(path / "kind"))
    else:
        found.texts(path / "kind", kind, names.label_name(kind.lower()))
    if not name:
        found.add(field.required(path / "name"))
    elif checks.size(name) > limits.PARAMETERS_NAME_MAX:
        found.add(field.too_long(path / "name", limits.PARAMETERS_NAME_MAX))
    else:
        found.texts(path / "name", name, names.path_segment(name))
