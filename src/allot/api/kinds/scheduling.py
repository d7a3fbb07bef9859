"""scheduling.k8s.io/v1: which pods matter more."""

from collections.abc import Mapping
from datetime import datetime

from ..field import FieldError, Path, forbidden, invalid, unsupported
from ..kind import Column, Fields, Kind, Rules, Version
from .reading import default, text
from .workloads import AGE

USER_PRIORITY_MAX = 1_000_000_000
SYSTEM_PREFIX = "system-"
SYSTEM_CLASSES: Mapping[str, int] = {
    "system-cluster-critical": 2_000_000_000,
    "system-node-critical": 2_000_001_000,
}
PREEMPTION_POLICIES = ("Never", "PreemptLowerPriority")
_NAME = Path("metadata.name")


def _default(priority_class: Fields, now: datetime) -> None:
    default(priority_class, "preemptionPolicy", "PreemptLowerPriority")


def _validate(priority_class: Fields) -> list[FieldError]:
    name, value = text(priority_class, "metadata", "name"), priority_class.get("value") or 0
    found: list[FieldError] = []
    if name.startswith(SYSTEM_PREFIX):
        if SYSTEM_CLASSES.get(name) != value or priority_class.get("globalDefault"):
            why = "priority class names with 'system-' prefix are reserved for system use only"
            found.append(forbidden(_NAME, why))
    elif value > USER_PRIORITY_MAX:
        why = f"maximum allowed value of a user defined priority is {USER_PRIORITY_MAX}"
        found.append(forbidden(Path("value"), why))
    policy = priority_class.get("preemptionPolicy")
    if policy not in PREEMPTION_POLICIES:
        found.append(unsupported(Path("preemptionPolicy"), policy, PREEMPTION_POLICIES))
    return found


def _validate_update(new: Fields, old: Fields) -> list[FieldError]:
    found: list[FieldError] = []
    if (new.get("value") or 0) != (old.get("value") or 0):
        found.append(forbidden(Path("value"), "may not be changed in an update."))
    if new.get("preemptionPolicy") != old.get("preemptionPolicy"):
        found.append(invalid(Path("preemptionPolicy"), new.get("preemptionPolicy"), "field is immutable"))
    return found


PRIORITY_CLASS = Kind(
    group="scheduling.k8s.io",
    kind="PriorityClass",
    plural="priorityclasses",
    singular="priorityclass",
    short_names=("pc",),
    versions=(Version("v1", "io.k8s.api.scheduling.v1.PriorityClass", default=_default),),
    hub="v1",
    namespaced=False,
    counts_generation=True,
    rules=Rules(
        validate_create=lambda new, context: _validate(new),
        validate_update=lambda new, old, context: _validate_update(new, old),
    ),
    columns=(
        Column("Name", format="name", description="Name must be unique within a cluster."),
        Column("Value", description="The priority that pods of this class get."),
        Column("Global-Default", description="Whether pods without a class get this one."),
        AGE,
        Column("PreemptionPolicy", description="Whether its pods push others aside."),
    ),
    cells=lambda fields, age: [
        fields["metadata"]["name"],
        fields.get("value") or 0,
        bool(fields.get("globalDefault")),
        age,
        fields.get("preemptionPolicy", ""),
    ],
)

KINDS = (PRIORITY_CLASS,)
