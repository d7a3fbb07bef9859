"""What everything that makes pods from a template has in common."""

from collections.abc import Mapping, Sequence
from typing import Any

from ..field import FieldError, Path, forbidden, invalid, required, unsupported
from ..kind import Column, Fields
from .labels import is_empty, matches, selector_text, validate_selector
from .numbers import validate_not_negative
from .podspec import validate_template
from .reading import items, obj

SPEC = Path("spec")
TEMPLATE = SPEC / "template"

NAME = Column("Name", format="name", description="Name must be unique within a namespace.")
AGE = Column("Age", description="How long ago the object was created.")
CONTAINERS = Column("Containers", priority=1, description="Names of the template's containers.")
IMAGES = Column("Images", priority=1, description="Images of the template's containers.")
SELECTOR = Column("Selector", priority=1, description="Which pods it looks after.")


def wide_cells(fields: Mapping[str, Any]) -> list[str]:
    """CONTAINERS, IMAGES and SELECTOR."""
    return [
        *container_cells(obj(fields, "spec", "template")),
        selector_text(obj(fields, "spec").get("selector")),
    ]


def container_cells(template: Mapping[str, Any]) -> list[str]:
    containers = items(template, "spec", "containers")
    return [
        ",".join(str(container.get("name", "")) for container in containers),
        ",".join(str(container.get("image", "")) for container in containers),
    ]


def validate_selected_template(spec: Fields, owner: str) -> list[FieldError]:
    """A selector that is there, says something, and finds the pods of the template."""
    selector = spec.get("selector")
    if selector is None:
        return [required(SPEC / "selector"), *validate_template(obj(spec, "template"), TEMPLATE)]
    found = validate_selector(selector, SPEC / "selector")
    if is_empty(selector):
        text = f"empty selector is invalid for {owner}"
        found.append(invalid(SPEC / "selector", selector, text))
    labels = obj(spec, "template", "metadata", "labels")
    if not found and not matches(selector, labels):
        text = "`selector` does not match template `labels`"
        found.append(invalid(TEMPLATE / "metadata" / "labels", labels, text))
    return found + validate_template(obj(spec, "template"), TEMPLATE)


def validate_long_running(spec: Fields, owner: str) -> list[FieldError]:
    """Pods of this template are replaced whenever they end."""
    pod = obj(spec, "template", "spec")
    found: list[FieldError] = []
    if pod.get("restartPolicy") != "Always":
        at = TEMPLATE / "spec" / "restartPolicy"
        found.append(unsupported(at, pod.get("restartPolicy"), ("Always",)))
    if pod.get("activeDeadlineSeconds") is not None:
        at = TEMPLATE / "spec" / "activeDeadlineSeconds"
        found.append(forbidden(at, f"activeDeadlineSeconds in {owner} is not Supported"))
    return found


def validate_unchanged(new: Fields, old: Fields, names: Sequence[str]) -> list[FieldError]:
    """Fields of the spec that are decided once."""
    return [
        invalid(SPEC / name, obj(new, "spec").get(name), "field is immutable")
        for name in names
        if obj(new, "spec").get(name) != obj(old, "spec").get(name)
    ]


def validate_counts(new: Fields, old: Fields, counts: Sequence[str]) -> list[FieldError]:
    """Replicas as a controller counted them: none is negative, and no part exceeds the whole."""
    path, status = Path("status"), obj(new, "status")
    found = validate_not_negative(status, ("replicas", "observedGeneration", "collisionCount", *counts), path)
    total = max(0, count(status, "replicas"))
    for name in counts:
        if count(status, name) > total:
            text = "cannot be greater than status.replicas"
            found.append(invalid(path / name, count(status, name), text))
    available = count(status, "availableReplicas")
    if "readyReplicas" in counts and available > max(0, count(status, "readyReplicas")):
        text = "cannot be greater than readyReplicas"
        found.append(invalid(path / "availableReplicas", available, text))
    if count(status, "collisionCount") < count(old, "status", "collisionCount"):
        text = "cannot be decremented"
        found.append(invalid(path / "collisionCount", status.get("collisionCount"), text))
    return found


def count(fields: Mapping[str, Any], *path: str) -> int:
    return int(obj(fields, *path[:-1]).get(path[-1]) or 0)
