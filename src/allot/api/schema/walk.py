"""What exactly does not fit a shape, field by field; and unusual spellings made usual.

Called by `check` for the few objects that `compile.fits` does not wave through.
The object is changed in place where JSON allows a spelling that the API does not
keep: a null for "not given", a quantity that has a shorter form, a time with an
offset. Fields that the shape does not have are taken out and named (S3): nothing
that has no type goes further than this.
"""

import base64
import binascii
import re
from datetime import UTC, datetime
from typing import Any, NamedTuple

from ..quantity import Quantity
from .compile import INT_RANGE
from .node import MISSING, Schema, Type
from .where import NOTED_MAX, Where, written

_RFC_3339 = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]{1,9})?(?:Z|[+-][0-9]{2}:[0-9]{2})\Z"
)

_KIND_OF_JSON = {dict: "object", list: "array", str: "string", bool: "bool", int: "number", float: "number"}

_AS_IT_IS = {Type.STRING: str, Type.BOOLEAN: bool}
"""Types of which every value is fine, and most values are of them."""

_GO_NAMES = {
    Type.STRING: "string",
    Type.BOOLEAN: "bool",
    Type.NUMBER: "float64",
    Type.INT_OR_STRING: "intstr.IntOrString",
    Type.QUANTITY: "resource.Quantity",
    Type.TIME: "v1.Time",
    Type.MICRO_TIME: "v1.MicroTime",
    Type.BYTES: "[]uint8",
    Type.ANY: "interface {}",
}

_ZERO: dict[Type, Any] = {
    Type.STRING: "",
    Type.BOOLEAN: False,
    Type.INTEGER: 0,
    Type.NUMBER: 0,
    Type.QUANTITY: "0",
    Type.INT_OR_STRING: 0,
    Type.BYTES: "",
}


class Malformed(Exception):
    """A value that cannot be read as what its field is; the message names both."""


class _Mismatch(Exception):
    """As `Malformed`, before it is known whose field it is."""


class Mistyped(NamedTuple):
    """A value of the wrong type in a custom resource: an error of its author, field by field."""

    path: str
    wanted: str
    found: str


class Walk:
    """One look at one object.

    `unknown` fills with the paths of what is taken out. A wrong type in a Kubernetes type ends it
    with `Malformed`: such a body cannot be read. In the schema of a custom resource it is noted in
    `mistyped`, and nulls are left for its validator, unless there is a default to take their place.
    """

    def __init__(self, drop_nulls: bool) -> None:
        self.unknown: list[str] = []
        self.mistyped: list[Mistyped] = []
        self._drop_nulls = drop_nulls

    def visit(self, value: Any, schema: Schema, path: Where | None = None, owner: str = "") -> Any:
        """The value in its usual form. `owner` is the type whose field this is, "" in custom ones."""
        try:
            return self._visited(value, schema, path, owner)
        except _Mismatch as error:
            if owner or path is None:
                raise Malformed(str(error)) from None
            if len(self.mistyped) < NOTED_MAX:
                self.mistyped.append(Mistyped(written(path), schema.type.value, _json_name(value)))
            return value

    def _visited(self, value: Any, schema: Schema, path: Where | None, owner: str) -> Any:
        match schema.type:
            case Type.ANY:
                return self._chosen(value, schema, path, owner) if schema.choices else value
            case Type.OBJECT:
                return self._object(value, schema, path, owner)
            case Type.MAP:
                return self._map(value, schema, path, owner)
            case Type.LIST:
                return self._list(value, schema, path, owner)
            case _:
                return _scalar(value, schema, path, owner)

    def _chosen(self, value: Any, schema: Schema, path: Where | None, owner: str) -> Any:
        choice = schema.choices.get(type(value))
        if choice is None:
            raise _mismatch(value, schema, path, owner)
        return self._visited(value, choice, path, owner)

    def _object(self, value: Any, schema: Schema, path: Where | None, owner: str) -> Any:
        if type(value) is not dict:
            raise _mismatch(value, schema, path, owner)
        fields = schema.fields
        inner = schema.name.rpartition(".")[2]
        for key, member in list(value.items()):
            field = fields.get(key)
            if field is not None and _AS_IT_IS.get(field.type) is type(member):
                continue
            where = Where(path, key)
            if field is None:
                if not schema.preserves_unknown:
                    self._take_out(value, key, where)
            elif member is None and not field.takes_null:
                replaceable = schema.name or field.default is not MISSING
                if self._drop_nulls and not field.nullable and replaceable:
                    del value[key]
            else:
                value[key] = self.visit(member, field, where, inner)
        return value

    def _take_out(self, value: dict[str, Any], key: str, where: Where) -> None:
        del value[key]
        if len(self.unknown) < NOTED_MAX:
            self.unknown.append(written(where))

    def _map(self, value: Any, schema: Schema, path: Where | None, owner: str) -> Any:
        if type(value) is not dict:
            raise _mismatch(value, schema, path, owner)
        assert schema.element is not None
        as_it_is = _AS_IT_IS.get(schema.element.type)
        for key, member in value.items():
            if type(member) is not as_it_is:
                value[key] = self._member(member, schema.element, Where(path, key), owner)
        return value

    def _list(self, value: Any, schema: Schema, path: Where | None, owner: str) -> Any:
        if type(value) is not list:
            raise _mismatch(value, schema, path, owner)
        assert schema.element is not None
        as_it_is = _AS_IT_IS.get(schema.element.type)
        for i, member in enumerate(value):
            if type(member) is not as_it_is:
                value[i] = self._member(member, schema.element, Where(path, i), owner)
        return value

    def _member(self, value: Any, schema: Schema, path: Where | None, owner: str) -> Any:
        """A member of a list or map cannot be left out, so a null there is the empty value."""
        if value is not None or schema.takes_null or schema.choices:
            return self.visit(value, schema, path, owner)
        if schema.nullable or not self._drop_nulls or not owner:
            return None
        match schema.type:
            case Type.OBJECT | Type.MAP:
                return {}
            case Type.LIST:
                return []
            case _:
                return _ZERO.get(schema.type)


def _scalar(value: Any, schema: Schema, path: Where | None, owner: str) -> Any:
    match schema.type, value:
        case Type.STRING, str():
            return value
        case Type.BOOLEAN, bool():
            return value
        case (Type.INTEGER | Type.INT_OR_STRING, bool()) | (Type.NUMBER | Type.QUANTITY, bool()):
            pass
        case Type.INTEGER, int():
            least, most = INT_RANGE.get(schema.format, INT_RANGE[""])
            if least <= value <= most:
                return value
        case Type.NUMBER, int() | float():
            return value
        case Type.INT_OR_STRING, str():
            return value
        case Type.INT_OR_STRING, int():
            least, most = INT_RANGE["int32"]
            if least <= value <= most:
                return value
        case Type.QUANTITY, str() | int() | float():
            return _quantity(value)
        case ((Type.TIME | Type.MICRO_TIME), str()):
            return _time(value, schema.type)
        case Type.BYTES, str():
            return _bytes(value)
    raise _mismatch(value, schema, path, owner)


def _quantity(value: str | int | float) -> str:
    try:
        return str(Quantity.parse(value.strip() if isinstance(value, str) else value))
    except ValueError as error:
        raise Malformed(f"quantities are decimal numbers with an optional suffix: {error}") from None


def _time(value: str, type_: Type) -> str:
    if not _RFC_3339.match(value):
        raise Malformed(f'parsing time {_cut(value)!r} as "2006-01-02T15:04:05Z07:00": cannot parse')
    try:
        moment = datetime.fromisoformat(value).astimezone(UTC)
    except (ValueError, OverflowError) as error:
        raise Malformed(f"parsing time {_cut(value)!r}: {error}") from None
    digits = "microseconds" if type_ is Type.MICRO_TIME else "seconds"
    return moment.replace(tzinfo=None).isoformat(timespec=digits) + "Z"


def _bytes(value: str) -> str:
    try:
        base64.b64decode(value, validate=True)
    except (binascii.Error, ValueError) as error:
        raise Malformed(f"illegal base64 data: {error}") from None
    return value


def _cut(text: str) -> str:
    return text if len(text) <= 40 else text[:40] + "..."


def _mismatch(value: Any, schema: Schema, path: Where | None, owner: str) -> _Mismatch:
    found = _KIND_OF_JSON.get(type(value), "null")
    if found == "number" and schema.type in (Type.INTEGER, Type.INT_OR_STRING):
        found = f"number {_cut(repr(value))}"
    plain = re.sub(r"\[\d+\]", "", written(path))
    where = f"Go struct field {owner}.{plain}" if path else "Go value"
    return _Mismatch(f"json: cannot unmarshal {found} into {where} of type {go_name(schema)}")


def _json_name(value: Any) -> str:
    """How OpenAPI calls what was found."""
    return {"bool": "boolean", "number": "integer" if type(value) is int else "number"}.get(
        found := _KIND_OF_JSON.get(type(value), "null"), found
    )


def go_name(schema: Schema) -> str:
    """How the reference implementation calls the type; clients show it to people as it is."""
    match schema.type:
        case Type.OBJECT:
            return ".".join(schema.name.split(".")[-2:]) or "object"
        case Type.LIST:
            return "[]" + go_name(schema.element or schema)
        case Type.MAP:
            return "map[string]" + go_name(schema.element or schema)
        case Type.INTEGER:
            return schema.format or "int64"
        case _:
            return _GO_NAMES[schema.type]
