"""Replication controllers and pod templates: the forerunners of replica sets."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from ...field import FieldError, Path, invalid, required
from ...kind import Column, Fields, Kind, Rules, Scale, Version
from ..labels import validate_labels
from ..numbers import validate_not_negative
from ..podspec import default_template, respelled_at, validate_template
from ..reading import obj, section
from ..workloads import (
    AGE,
    CONTAINERS,
    IMAGES,
    NAME,
    SELECTOR,
    SPEC,
    TEMPLATE,
    container_cells,
    count,
    validate_counts,
    validate_long_running,
)  # fmt: skip

COUNTS = ("fullyLabeledReplicas", "readyReplicas", "availableReplicas")


def _default(controller: Fields, now: datetime) -> None:
    """Here, and only here, selector and labels come from the template when they are not said."""
    spec = section(controller, "spec")
    if spec.get("replicas") is None:
        spec["replicas"] = 1
    labels = obj(spec, "template", "metadata", "labels")
    if labels and not spec.get("selector"):
        spec["selector"] = dict(labels)
    metadata = section(controller, "metadata")
    if labels and not metadata.get("labels"):
        metadata["labels"] = dict(labels)
    if spec.get("template") is not None:
        default_template(spec["template"])


def _validate(controller: Fields) -> list[FieldError]:
    spec = obj(controller, "spec")
    selector = obj(spec, "selector")
    found = validate_not_negative(spec, ("replicas", "minReadySeconds"), SPEC)
    if not selector:
        found.append(required(SPEC / "selector"))
    found += validate_labels(selector, SPEC / "selector")
    if spec.get("template") is None:
        return [*found, required(TEMPLATE)]
    labels = obj(spec, "template", "metadata", "labels")
    if any(labels.get(key) != value for key, value in selector.items()):
        text = "`selector` does not match template `labels`"
        found.append(invalid(TEMPLATE / "metadata" / "labels", labels, text))
    return [
        *found,
        *validate_template(obj(spec, "template"), TEMPLATE),
        *validate_long_running(spec, "ReplicationController"),
    ]


def _cells(controller: Fields, age: str) -> Sequence[Any]:
    status, selector = obj(controller, "status"), obj(controller, "spec", "selector")
    return [
        controller["metadata"]["name"],
        count(controller, "spec", "replicas"),
        count(status, "replicas"),
        count(status, "readyReplicas"),
        age,
        *container_cells(obj(controller, "spec", "template")),
        ",".join(f"{key}={value}" for key, value in sorted(selector.items())) or "<none>",
    ]


REPLICATION_CONTROLLER = Kind(
    group="",
    kind="ReplicationController",
    plural="replicationcontrollers",
    singular="replicationcontroller",
    short_names=("rc",),
    categories=("all",),
    versions=(
        Version(
            "v1",
            "io.k8s.api.core.v1.ReplicationController",
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
        validate_update=lambda new, old, context: _validate(new),
        validate_status=lambda new, old, context: validate_counts(new, old, COUNTS),
    ),
    columns=(
        NAME,
        Column("Desired", "integer", description="How many replicas are wanted."),
        Column("Current", "integer", description="How many replicas there are."),
        Column("Ready", "integer", description="How many replicas are ready."),
        AGE,
        CONTAINERS,
        IMAGES,
        SELECTOR,
    ),
    cells=_cells,
    selectable={"status.replicas": lambda fields: str(count(fields, "status", "replicas"))},
)


def _default_pod_template(fields: Fields, now: datetime) -> None:
    default_template(section(fields, "template"))


def _template_cells(fields: Fields, age: str) -> Sequence[Any]:
    template = obj(fields, "template")
    labels = obj(template, "metadata", "labels")
    shown = ",".join(f"{key}={value}" for key, value in sorted(labels.items()))
    return [fields["metadata"]["name"], *container_cells(template), shown or "<none>"]


POD_TEMPLATE = Kind(
    group="",
    kind="PodTemplate",
    plural="podtemplates",
    singular="podtemplate",
    versions=(
        Version(
            "v1",
            "io.k8s.api.core.v1.PodTemplate",
            default=_default_pod_template,
            respell=respelled_at("template", "spec"),
        ),
    ),
    hub="v1",
    counts_generation=True,
    rules=Rules(
        validate_create=lambda new, context: validate_template(obj(new, "template"), Path("template")),
        validate_update=lambda new, old, context: validate_template(obj(new, "template"), Path("template")),
    ),
    columns=(
        NAME,
        Column("Containers", description="Names of the containers."),
        Column("Images", description="Images of the containers."),
        Column("Pod Labels", description="Labels of the pods."),
    ),
    cells=_template_cells,
)
