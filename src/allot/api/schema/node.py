"""The shape of one JSON value.

Where it sits
    `builtin` makes shapes from the table of Kubernetes types, `structural` makes
    them from the OpenAPI of a CustomResourceDefinition; `check`, the strategic
    merge patch, server-side apply and the OpenAPI documents read them. Nobody
    else needs to know where a shape came from.

What it promises
    A shape never changes once made. Types may contain themselves, so the fields
    of an object are looked up on first use.
"""

from collections.abc import Callable, Mapping
from enum import Enum
from typing import Any, Final


class Type(Enum):
    OBJECT = "object"  # named fields
    MAP = "map"  # any string to one shape
    LIST = "list"
    STRING = "string"
    INTEGER = "integer"  # int32 or int64, as `format` says
    NUMBER = "number"
    BOOLEAN = "boolean"
    INT_OR_STRING = "int-or-string"
    QUANTITY = "quantity"
    TIME = "time"
    MICRO_TIME = "micro-time"
    BYTES = "bytes"
    ANY = "any"


CONTAINERS: Final = frozenset({Type.OBJECT, Type.MAP, Type.LIST})

ATOMIC: Final = "atomic"  # a list that is owned and replaced as a whole
SET: Final = "set"  # of scalars, each owned by itself
BY_KEY: Final = "map"  # of objects, each known by its `keys`


class Missing(Enum):
    MISSING = "no default"


MISSING: Final = Missing.MISSING

Fields = Mapping[str, "Schema"]


class Schema:
    """One shape. Only the attributes that belong to its type mean anything."""

    __slots__ = (
        "__weakref__", "_fields", "_find_fields", "atomic", "choices", "compiled", "default", "defaulter",
        "edge", "element", "embedded", "format", "is_free", "is_leaf", "keys", "list_type", "merge_key",
        "name", "nullable", "preserves_unknown", "required", "strategies", "takes_null", "type",
        "validation",
    )  # fmt: skip

    def __init__(
        self,
        type: Type,
        *,
        name: str = "",
        format: str = "",
        fields: Fields | Callable[[], Fields] = {},  # noqa: B006
        required: frozenset[str] = frozenset(),
        element: "Schema | None" = None,
        list_type: str = ATOMIC,
        keys: tuple[str, ...] = (),
        atomic: bool = False,
        merge_key: str = "",
        strategies: frozenset[str] = frozenset(),
        default: Any = MISSING,
        nullable: bool = False,
        preserves_unknown: bool = False,
        embedded: bool = False,
        validation: Mapping[str, Any] = {},
        choices: Mapping[type, "Schema"] = {},
    ) -> None:
        self.type = type
        self.name = name  # of a Kubernetes type, e.g. io.k8s.api.core.v1.Pod
        self.format = format  # int32, int64, ... and whatever a CRD says
        self._fields: Fields | None = None if callable(fields) else fields
        self._find_fields = fields if callable(fields) else None
        self.required = required
        self.element = element  # of a list or map
        self.list_type = list_type
        self.keys = keys  # of a list by key
        self.atomic = atomic  # an object or map that is owned and replaced as a whole
        self.merge_key = merge_key  # what strategic merge patches match list elements by
        self.strategies = strategies  # of strategic merge patches: merge, replace, retainKeys
        self.default = default
        self.nullable = nullable  # an explicit null means something
        self.preserves_unknown = preserves_unknown
        self.embedded = embedded  # holds apiVersion, kind and metadata of its own
        self.validation = validation  # keywords of a CRD that only its validator reads
        # Of a value that may have one of several shapes, which one by its JSON type; merged as a whole.
        self.choices = choices
        self.takes_null = type is Type.ANY and not choices
        # Whatever a custom resource puts here; objects in it are merged field by field.
        self.is_free = type is Type.ANY and preserves_unknown
        # Owned and replaced as a whole: a scalar, an atomic container, JSON that is not ours to read.
        self.is_leaf = (
            list_type == ATOMIC if type is Type.LIST else atomic or not (type in CONTAINERS or self.is_free)
        )
        # What others made of this shape, kept here so that it lives as long as the shape does:
        self.compiled: Any = None  # by `compile`
        self.defaulter: Any = MISSING  # by `defaults`
        self.edge: Any = None  # by whoever tells the elements of a list apart

    @property
    def fields(self) -> Fields:
        if self._fields is None:
            assert self._find_fields is not None
            self._fields = self._find_fields()
        return self._fields

    def child(self, key: str) -> "Schema | None":
        """The shape of one member of an object or map, or None when it has no such member."""
        return self.fields.get(key) if self.type is Type.OBJECT else self.element

    def within(self, key: str) -> "Schema":
        """As `child`, with an answer for members that no schema mentions."""
        if self.is_free:
            return self
        found = (self._fields or self.fields).get(key) if self.type is Type.OBJECT else self.element
        if found is not None:
            return found
        return FREE if self.preserves_unknown else ANYTHING

    def __repr__(self) -> str:
        return f"Schema({self.name or self.type.value})"


ANYTHING: Final = Schema(Type.ANY)
"""JSON that is not ours to read: it has one owner, and is replaced as a whole."""

FREE: Final = Schema(Type.ANY, preserves_unknown=True)
"""Whatever a custom resource that keeps unknown fields puts there."""
