"""Shapes as OpenAPI v3 schemas.

Named types are referred to and collected on the way, so that a document holds
what its kinds need and nothing else. Scalars that clients treat as types of
their own (quantities, times) are referred to as well.
"""

from collections.abc import Mapping
from typing import Any

from allot.api import schema as shapes

from .descriptions import describe

Document = dict[str, Any]

_META = "io.k8s.apimachinery.pkg.apis.meta.v1"

SPECIAL: Mapping[shapes.Type, tuple[str, Document]] = {
    shapes.Type.QUANTITY: (
        "io.k8s.apimachinery.pkg.api.resource.Quantity",
        {"oneOf": [{"type": "string"}, {"type": "number"}]},
    ),
    shapes.Type.INT_OR_STRING: (
        "io.k8s.apimachinery.pkg.util.intstr.IntOrString",
        {"format": "int-or-string", "oneOf": [{"type": "integer"}, {"type": "string"}]},
    ),
    shapes.Type.TIME: (f"{_META}.Time", {"type": "string", "format": "date-time"}),
    shapes.Type.MICRO_TIME: (f"{_META}.MicroTime", {"type": "string", "format": "date-time"}),
}

_PLAIN = {
    shapes.Type.STRING: "string",
    shapes.Type.INTEGER: "integer",
    shapes.Type.NUMBER: "number",
    shapes.Type.BOOLEAN: "boolean",
    shapes.Type.BYTES: "string",
}


class Components:
    """The schemas of one document, by name."""

    def __init__(self) -> None:
        self.schemas: dict[str, Document] = {}

    def refer(self, name: str) -> Document:
        """A reference to a Kubernetes type, which joins the document."""
        if name not in self.schemas:
            self.schemas[name] = {}  # before its fields, which may refer to it again
            self.schemas[name].update(self._named(shapes.get(name)))
        return {"$ref": f"#/components/schemas/{name}"}

    def define(self, name: str, schema: shapes.Schema) -> Document:
        """The schema of a custom resource, under a name of our choice."""
        if name not in self.schemas:
            self.schemas[name] = self._inline(schema)
        return {"$ref": f"#/components/schemas/{name}"}

    def mark(self, name: str, group: str, version: str, kind: str) -> None:
        """Say which kind a schema is the schema of."""
        kinds = self.schemas[name].setdefault("x-kubernetes-group-version-kind", [])
        entry = {"group": group, "kind": kind, "version": version}
        if entry not in kinds:
            kinds.append(entry)

    def _named(self, schema: shapes.Schema) -> Document:
        told = describe(schema.name)
        out: Document = {"description": told.text} if told.text else {}
        out["type"] = "object"
        if schema.required:
            out["required"] = sorted(schema.required)
        out["properties"] = {
            name: self._field(field, told.fields.get(name, "")) for name, field in schema.fields.items()
        }
        if schema.atomic:
            out["x-kubernetes-map-type"] = "atomic"
        return out

    def _field(self, field: shapes.Schema, description: str) -> Document:
        shown = self._shown(field)
        if "$ref" in shown and (description or field.strategies or field.default is not shapes.MISSING):
            shown = {"allOf": [shown]}
        if description:
            shown = {"description": description, **shown}
        if field.default is not shapes.MISSING:
            shown["default"] = field.default
        if field.strategies:
            shown["x-kubernetes-patch-strategy"] = ",".join(sorted(field.strategies))
        if field.merge_key:
            shown["x-kubernetes-patch-merge-key"] = field.merge_key
        return shown

    def _shown(self, schema: shapes.Schema) -> Document:
        if schema.type is shapes.Type.OBJECT:
            return self.refer(schema.name) if schema.name else self._inline(schema)
        if schema.type in SPECIAL and not schema.validation:
            name, document = SPECIAL[schema.type]
            self.schemas.setdefault(name, document)
            return {"$ref": f"#/components/schemas/{name}"}
        return self._inline(schema)

    def _inline(self, schema: shapes.Schema) -> Document:
        out: Document = dict(schema.validation)
        match schema.type:
            case shapes.Type.OBJECT:
                out |= self._inline_object(schema)
            case shapes.Type.MAP:
                out |= {"type": "object", "additionalProperties": self._field(schema.element or schema, "")}
            case shapes.Type.LIST:
                out |= {"type": "array", "items": self._field(schema.element or schema, "")}
                out["x-kubernetes-list-type"] = schema.list_type
                if schema.keys:
                    out["x-kubernetes-list-map-keys"] = list(schema.keys)
            case shapes.Type.INT_OR_STRING:
                out["x-kubernetes-int-or-string"] = True
            case shapes.Type.ANY:
                out |= {"x-kubernetes-preserve-unknown-fields": True}
            case plain:
                out["type"] = _PLAIN[plain]
        if schema.atomic:
            out["x-kubernetes-map-type"] = "atomic"
        if schema.format and schema.type is not shapes.Type.INT_OR_STRING:
            out["format"] = schema.format
        if schema.nullable:
            out["nullable"] = True
        return out

    def _inline_object(self, schema: shapes.Schema) -> Document:
        out: Document = {"type": "object"}
        if schema.fields:
            out["properties"] = {name: self._field(field, "") for name, field in schema.fields.items()}
        if schema.required:
            out["required"] = sorted(schema.required)
        if schema.preserves_unknown:
            out["x-kubernetes-preserve-unknown-fields"] = True
        if schema.embedded:
            out["x-kubernetes-embedded-resource"] = True
        return out
