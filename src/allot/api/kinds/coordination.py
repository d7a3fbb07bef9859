"""Leases: who leads, and until when if nothing more is heard."""

from ..field import FieldError, Path, invalid
from ..kind import Column, Fields, Kind, Rules, Version
from .reading import obj, text

_SPEC = Path("spec")


def _validate(lease: Fields) -> list[FieldError]:
    spec = obj(lease, "spec")
    found = []
    duration = spec.get("leaseDurationSeconds")
    if duration is not None and duration <= 0:
        found.append(invalid(_SPEC / "leaseDurationSeconds", duration, "must be greater than 0"))
    transitions = spec.get("leaseTransitions")
    if transitions is not None and transitions < 0:
        text = "must be greater than or equal to 0"
        found.append(invalid(_SPEC / "leaseTransitions", transitions, text))
    return found


LEASE = Kind(
    group="coordination.k8s.io",
    kind="Lease",
    plural="leases",
    singular="lease",
    versions=(Version("v1", "io.k8s.api.coordination.v1.Lease"),),
    hub="v1",
    rules=Rules(
        validate_create=lambda new, context: _validate(new),
        validate_update=lambda new, old, context: _validate(new),
    ),
    columns=(
        Column("Name", format="name", description="Name must be unique within a namespace."),
        Column("Holder", description="Who holds the lease."),
        Column("Age", description="How long ago the object was created."),
    ),
    cells=lambda lease, age: [lease["metadata"]["name"], text(lease, "spec", "holderIdentity"), age],
)

KINDS = (LEASE,)
