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
        "_fields", "_find_fields", "atomic", "compiled", "default", "defaulter", "element", "embedded",
        "format", "keys", "list_type", "merge_key", "name", "nullable", "preserves_unknown", "required",
        "strategies", "type", "validation",
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
        self.compiled: Any = None  # what `compile` and `defaults` made of this shape: kept here so
        self.defaulter: Any = MISSING  # that it lives as long as the shape does

    @property
    def fields(self) -> Fields:
        if self._fields is None:
            assert self._find_fields is not None
            self._fields = self._find_fields()
        return self._fields

    def child(self, key: str) -> "Schema | None":
        """The shape of one member of an object or map, or None when it has no such member."""
        return self.fields.get(key) if self.type is Type.OBJECT else self.element

    @property
    def is_leaf(self) -> bool:
        """Owned as a whole: a scalar, free JSON, or a container that is atomic."""
        if self.type is Type.LIST:
            return self.list_type == ATOMIC
        return self.atomic or self.type not in CONTAINERS

    def __repr__(self) -> str:
        return f"Schema({self.name or self.type.value})"


ANYTHING: Final = Schema(Type.ANY)
"""Free JSON: a field that no schema mentions, or one that holds whatever a user puts there."""
