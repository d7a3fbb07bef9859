"""From a definition to the kind that the server serves."""

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

from ..field import FieldError
from ..kind import Fields, Kind, Rules, Scale, Version, WriteContext
from ..schema import Schema, from_structural, prune
from .printing import columns_of, read, row_of
from .validate import validate


def kind_of(definition: Mapping[str, Any]) -> Kind | None:
    """The kind of a CustomResourceDefinition, or None if it serves no version."""
    spec = definition["spec"]
    names, group = spec["names"], spec["group"]
    versions = [version for version in spec["versions"] if version.get("served")]
    stored = next(version for version in spec["versions"] if version.get("storage"))
    if not versions:
        return None
    shown, subresources = versions[0], stored.get("subresources") or {}
    shape = _shape(stored)
    return Kind(
        group=group,
        kind=names["kind"],
        plural=names["plural"],
        singular=names.get("singular") or names["kind"].lower(),
        versions=tuple(
            Version(
                version["name"],
                "",
                custom=_shape(version),
                default=_pruner(_shape(version)),
                deprecated=_deprecation(version, f"{group}/{version['name']} {names['kind']}"),
            )
            for version in versions
        ),
        hub=stored["name"],
        stored_version=Version(stored["name"], "", custom=shape),
        is_custom=True,
        namespaced=spec["scope"] == "Namespaced",
        short_names=tuple(names.get("shortNames") or ()),
        categories=tuple(names.get("categories") or ()),
        has_status="status" in subresources,
        scale=_scale(subresources.get("scale")),
        counts_generation=True,
        rules=_rules(shape),
        columns=columns_of(shown),
        cells_at=lambda fields, now: row_of(shown, fields, now),
        selectable=_selectable(stored),
    )


def _shape(version: Mapping[str, Any]) -> Schema:
    openapi = (version.get("schema") or {}).get("openAPIV3Schema") or {
        "type": "object",
        "x-kubernetes-preserve-unknown-fields": True,
    }
    return from_structural(openapi)


def _pruner(shape: Schema) -> Callable[[Fields, datetime], None]:
    """What is assumed may itself say more than its schema."""

    def default(fields: Fields, now: datetime) -> None:
        prune(fields, shape)

    return default


def _rules(shape: Schema) -> Rules:
    def create(new: Fields, context: WriteContext) -> list[FieldError]:
        return validate(new, shape) or context.judge(shape, new, None)

    def update(new: Fields, old: Fields, context: WriteContext) -> list[FieldError]:
        return validate(new, shape) or context.judge(shape, new, old)

    return Rules(validate_create=create, validate_update=update, validate_status=update)


def _scale(paths: Mapping[str, Any] | None) -> Scale | None:
    if not paths:
        return None
    return Scale(
        paths["specReplicasPath"].lstrip("."),
        paths["statusReplicasPath"].lstrip("."),
        (paths.get("labelSelectorPath") or "").lstrip("."),
    )


def _selectable(version: Mapping[str, Any]) -> dict[str, Callable[[Fields], str]]:
    def reader(path: str) -> Callable[[Fields], str]:
        return lambda fields: ",".join(str(value) for value in read(fields, path))

    paths = [field["jsonPath"] for field in version.get("selectableFields") or ()]
    return {path.lstrip("."): reader(path) for path in paths}


def _deprecation(version: Mapping[str, Any], name: str) -> str:
    if not version.get("deprecated"):
        return ""
    return str(version.get("deprecationWarning") or f"{name} is deprecated")
