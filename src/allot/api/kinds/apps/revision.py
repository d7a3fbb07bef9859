"""Controller revisions: what a stateful or daemon set looked like."""

from ...field import FieldError, Path, invalid
from ...kind import Column, Fields, Kind, Rules, Version
from ..numbers import validate_not_negative
from ..reading import items
from ..workloads import AGE, NAME


def _validate(revision: Fields) -> list[FieldError]:
    return validate_not_negative(revision, ("revision",), Path())


def _validate_update(new: Fields, old: Fields) -> list[FieldError]:
    found = _validate(new)
    if new.get("data") != old.get("data"):
        found.append(invalid(Path("data"), new.get("data"), "field is immutable"))
    return found


def _controller(revision: Fields) -> str:
    for owner in items(revision, "metadata", "ownerReferences"):
        if owner.get("controller"):
            group = str(owner.get("apiVersion", "")).rpartition("/")[0]
            kind = str(owner.get("kind", "")).lower()
            return f"{kind}.{group}/{owner.get('name')}" if group else f"{kind}/{owner.get('name')}"
    return "<none>"


CONTROLLER_REVISION = Kind(
    group="apps",
    kind="ControllerRevision",
    plural="controllerrevisions",
    singular="controllerrevision",
    versions=(Version("v1", "io.k8s.api.apps.v1.ControllerRevision"),),
    hub="v1",
    rules=Rules(
        validate_create=lambda new, context: _validate(new),
        validate_update=lambda new, old, context: _validate_update(new, old),
    ),
    columns=(
        NAME,
        Column("Controller", description="Whose revision it is."),
        Column("Revision", description="Which revision it is."),
        AGE,
    ),
    cells=lambda fields, age: [
        fields["metadata"]["name"], _controller(fields), fields.get("revision") or 0, age,
    ],
)  # fmt: skip
