"""Stateful sets: pods with names and volumes of their own."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from ...field import FieldError, forbidden, invalid, unsupported
from ...kind import Column, Fields, Kind, Rules, Scale, Version, WriteContext
from ..core.volume import default_claim_spec
from ..numbers import validate_at_most_all, validate_int_or_percent, validate_not_negative
from ..podspec import default_template, respelled_at
from ..reading import default, items, obj, section, text
from ..workloads import (
    AGE,
    CONTAINERS,
    IMAGES,
    NAME,
    SPEC,
    container_cells,
    count,
    validate_counts,
    validate_long_running,
    validate_selected_template,
)  # fmt: skip

POD_MANAGEMENT = ("OrderedReady", "Parallel")
STRATEGIES = ("OnDelete", "RollingUpdate")
RETENTION = ("Delete", "Retain")
MOVABLE = (
    "replicas", "ordinals", "template", "updateStrategy", "revisionHistoryLimit",
    "persistentVolumeClaimRetentionPolicy", "minReadySeconds",
)  # fmt: skip
_ONLY_THESE = (
    "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template',"
    " 'updateStrategy', 'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy'"
    " and 'minReadySeconds' are forbidden"
)

COUNTS = ("readyReplicas", "availableReplicas", "currentReplicas", "updatedReplicas")


def _default(stateful_set: Fields, now: datetime) -> None:
    spec = section(stateful_set, "spec")
    default(spec, "podManagementPolicy", "OrderedReady")
    strategy = section(spec, "updateStrategy")
    default(strategy, "type", "RollingUpdate")
    if strategy["type"] == "RollingUpdate":
        rolling = section(strategy, "rollingUpdate")
        if rolling.get("partition") is None:
            rolling["partition"] = 0
    retention = section(spec, "persistentVolumeClaimRetentionPolicy")
    default(retention, "whenDeleted", "Retain")
    default(retention, "whenScaled", "Retain")
    for name, value in (("replicas", 1), ("revisionHistoryLimit", 10)):
        if spec.get(name) is None:
            spec[name] = value
    for claim in items(spec, "volumeClaimTemplates"):
        default(claim, "apiVersion", "v1")
        default(claim, "kind", "PersistentVolumeClaim")
        default_claim_spec(section(claim, "spec"))
        default(section(claim, "status"), "phase", "Pending")
    default_template(section(spec, "template"))


def _validate(stateful_set: Fields) -> list[FieldError]:
    spec = obj(stateful_set, "spec")
    found = validate_not_negative(spec, ("replicas", "minReadySeconds", "revisionHistoryLimit"), SPEC)
    for path, value, known in (
        (SPEC / "podManagementPolicy", spec.get("podManagementPolicy"), POD_MANAGEMENT),
        (SPEC / "updateStrategy" / "type", obj(spec, "updateStrategy").get("type"), STRATEGIES),
    ):
        if value not in known:
            found.append(unsupported(path, value or "", known))
    for name, value in obj(spec, "persistentVolumeClaimRetentionPolicy").items():
        if value not in RETENTION:
            found.append(unsupported(SPEC / "persistentVolumeClaimRetentionPolicy" / name, value, RETENTION))
    return [
        *found,
        *_validate_rolling(obj(spec, "updateStrategy")),
        *validate_selected_template(_with_claimed_volumes(spec), "statefulset"),
        *validate_long_running(spec, "StatefulSet"),
    ]


def _with_claimed_volumes(spec: Fields) -> Fields:
    """The spec as its pods see it: containers may mount what the claim templates promise."""
    claimed = [name for one in items(spec, "volumeClaimTemplates") if (name := text(one, "metadata", "name"))]
    if not claimed:
        return spec
    template = obj(spec, "template")
    pod = obj(template, "spec")
    others = [one for one in items(pod, "volumes") if one.get("name") not in claimed]
    volumes = [{"name": name, "persistentVolumeClaim": {"claimName": name}} for name in claimed]
    return {**spec, "template": {**template, "spec": {**pod, "volumes": [*others, *volumes]}}}


def _validate_rolling(strategy: Fields) -> list[FieldError]:
    rolling, path = obj(strategy, "rollingUpdate"), SPEC / "updateStrategy" / "rollingUpdate"
    if strategy.get("type") == "OnDelete":
        if strategy.get("rollingUpdate") is not None:
            return [invalid(path, rolling, "only allowed for updateStrategy 'RollingUpdate'")]
        return []
    found = validate_not_negative(rolling, ("partition",), path)
    unavailable = rolling.get("maxUnavailable")
    if unavailable is not None:
        found += validate_int_or_percent(unavailable, path / "maxUnavailable")
        found += validate_at_most_all(unavailable, path / "maxUnavailable")
        if unavailable in (0, "0%"):
            found.append(invalid(path / "maxUnavailable", unavailable, "cannot be 0"))
    return found


def _validate_update(new: Fields, old: Fields, context: WriteContext) -> list[FieldError]:
    fixed = [{k: v for k, v in obj(f, "spec").items() if k not in MOVABLE} for f in (new, old)]
    found = [] if fixed[0] == fixed[1] else [forbidden(SPEC, _ONLY_THESE)]
    return [*_validate(new), *found]


def _cells(stateful_set: Fields, age: str) -> Sequence[Any]:
    ready = count(stateful_set, "status", "readyReplicas")
    return [
        stateful_set["metadata"]["name"],
        f"{ready}/{count(stateful_set, 'spec', 'replicas')}",
        age,
        *container_cells(obj(stateful_set, "spec", "template")),
    ]


STATEFUL_SET = Kind(
    group="apps",
    kind="StatefulSet",
    plural="statefulsets",
    singular="statefulset",
    short_names=("sts",),
    categories=("all",),
    versions=(
        Version(
            "v1",
            "io.k8s.api.apps.v1.StatefulSet",
            default=_default,
            respell=respelled_at("spec", "template", "spec"),
        ),
    ),
    hub="v1",
    has_status=True,
    scale=Scale(selector="spec.selector"),
    counts_generation=True,
    rules=Rules(
        validate_create=lambda new, context: _validate(new),
        validate_update=_validate_update,
        validate_status=lambda new, old, context: validate_counts(new, old, COUNTS),
    ),
    columns=(
        NAME,
        Column("Ready", description="How many replicas are ready, of how many wanted."),
        AGE,
        CONTAINERS,
        IMAGES,
    ),
    cells=_cells,
)
