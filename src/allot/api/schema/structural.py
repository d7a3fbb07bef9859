"""The OpenAPI schema of a CustomResourceDefinition as a shape.

The keywords that say how values are shaped, merged and defaulted become the
attributes of `Schema`; the others (`pattern`, `minimum`, `anyOf`, ...) are kept
as they are in `validation` for the validator of custom resources. The schema is
taken to be structural: whoever accepts a CRD has checked that.
"""

from collections.abc import Mapping
from typing import Any

from .builtin import get
from .node import ATOMIC, MISSING, Schema, Type

_SHAPE_KEYWORDS = frozenset({
    "type", "properties", "additionalProperties", "items", "default", "nullable", "format", "required",
    "x-kubernetes-list-type", "x-kubernetes-list-map-keys", "x-kubernetes-map-type",
    "x-kubernetes-preserve-unknown-fields", "x-kubernetes-int-or-string", "x-kubernetes-embedded-resource",
})  # fmt: skip

_SCALARS = {
    "string": Type.STRING,
    "integer": Type.INTEGER,
    "number": Type.NUMBER,
    "boolean": Type.BOOLEAN,
}

OBJECT_META = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"


def from_structural(openapi: Mapping[str, Any], *, root: bool = True) -> Schema:
    """The shape that a structural schema describes.

    A root also has apiVersion, kind and metadata, whether the schema mentions them or not.
    """
    common: dict[str, Any] = {
        "format": str(openapi.get("format", "")),
        "default": openapi.get("default", MISSING),
        "nullable": bool(openapi.get("nullable")),
        "validation": {key: value for key, value in openapi.items() if key not in _SHAPE_KEYWORDS},
    }
    if openapi.get("x-kubernetes-int-or-string"):
        return Schema(Type.INT_OR_STRING, **common)
    declared = openapi.get("type")
    if declared == "array":
        return _list(openapi, common)
    if declared == "object" or "properties" in openapi or root:
        return _object(openapi, common, root)
    type_ = _SCALARS.get(str(declared), Type.ANY)
    return Schema(type_, preserves_unknown=type_ is Type.ANY, **common)


def _list(openapi: Mapping[str, Any], common: Mapping[str, Any]) -> Schema:
    return Schema(
        Type.LIST,
        element=from_structural(openapi.get("items") or {}, root=False),
        list_type=str(openapi.get("x-kubernetes-list-type", ATOMIC)),
        keys=tuple(openapi.get("x-kubernetes-list-map-keys") or ()),
        **common,
    )


def _object(openapi: Mapping[str, Any], common: Mapping[str, Any], root: bool) -> Schema:
    embedded = root or bool(openapi.get("x-kubernetes-embedded-resource"))
    preserves = bool(openapi.get("x-kubernetes-preserve-unknown-fields"))
    atomic = openapi.get("x-kubernetes-map-type") == "atomic"
    additional = openapi.get("additionalProperties")
    properties: Mapping[str, Any] = openapi.get("properties") or {}
    if not properties and not embedded and additional not in (None, False):
        element = from_structural({} if additional is True else additional, root=False)
        return Schema(Type.MAP, element=element, atomic=atomic, **common)
    fields = {name: from_structural(schema, root=False) for name, schema in properties.items()}
    if embedded:
        fields |= {
            "apiVersion": Schema(Type.STRING),
            "kind": Schema(Type.STRING),
            "metadata": get(OBJECT_META),
        }
    return Schema(
        Type.OBJECT,
        fields=fields,
        required=frozenset(openapi.get("required") or ()),
        atomic=atomic,
        preserves_unknown=preserves,
        embedded=embedded and not root,
        **common,
    )
