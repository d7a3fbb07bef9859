"""Replica sets: so many pods of one template."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from ...field import FieldError
from ...kind import Column, Fields, Kind, Rules, Scale, Version
from ..numbers import validate_not_negative
from ..podspec import default_template, respelled_at
from ..reading import obj, section
from ..workloads import (
    AGE,
    CONTAINERS,
    IMAGES,
    NAME,
    SELECTOR,
    SPEC,
    count,
    validate_counts,
    validate_long_running,
    validate_selected_template,
    validate_unchanged,
    wide_cells,
)  # fmt: skip

COUNTS = ("fullyLabeledReplicas", "readyReplicas", "availableReplicas")


def _default(replica_set: Fields, now: datetime) -> None:
    spec = section(replica_set, "spec")
    if spec.get("replicas") is None:
        spec["replicas"] = 1
    default_template(section(spec, "template"))


def _validate(replica_set: Fields) -> list[FieldError]:
    spec = obj(replica_set, "spec")
    return [
        *validate_not_negative(spec, ("replicas", "minReadySeconds"), SPEC),
        *validate_selected_template(spec, "replicaset"),
        *validate_long_running(spec, "ReplicaSet"),
    ]


def replica_cells(fields: Fields, age: str) -> Sequence[Any]:
    status = obj(fields, "status")
    return [
        fields["metadata"]["name"],
        count(fields, "spec", "replicas"),
        count(status, "replicas"),
        count(status, "readyReplicas"),
        age,
    ]


REPLICA_COLUMNS = (
    NAME,
    Column("Desired", "integer", description="How many replicas are wanted."),
    Column("Current", "integer", description="How many replicas there are."),
    Column("Ready", "integer", description="How many replicas are ready."),
    AGE,
    CONTAINERS,
    IMAGES,
    SELECTOR,
)

REPLICA_SET = Kind(
    group="apps",
    kind="ReplicaSet",
    plural="replicasets",
    singular="replicaset",
    short_names=("rs",),
    categories=("all",),
    versions=(
        Version(
            "v1",
            "io.k8s.api.apps.v1.ReplicaSet",
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
        validate_update=lambda new, old, context: [
            *_validate(new),
            *validate_unchanged(new, old, ("selector",)),
        ],
        validate_status=lambda new, old, context: validate_counts(new, old, COUNTS),
    ),
    columns=REPLICA_COLUMNS,
    cells=lambda fields, age: [*replica_cells(fields, age), *wide_cells(fields)],
    selectable={"status.replicas": lambda fields: str(count(fields, "status", "replicas"))},
)
