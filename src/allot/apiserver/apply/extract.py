"""What a writer owns who made an object out of nothing.

Whoever makes a container owns the container itself besides what is in it; an
applied configuration (`configured`) does not. What no schema mentions has one
owner as a whole, except in custom resources that keep unknown fields: there every
object is taken apart.

This is on the path of every create, so it runs on tables made once for each schema.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

from allot.api import schema as shapes

from .elements import edge_maker, value_edge
from .fieldset import EMPTY, MEMBER, FieldSet

Extract = Callable[[Any], dict[str, Any]]
"""From a value that is there to its node in the set."""

SERVER_FIELDS = frozenset({
    "creationTimestamp", "generation", "managedFields", "name", "namespace", "resourceVersion", "selfLink",
    "uid",
})  # fmt: skip
"""Nobody owns these parts of metadata: the server writes them, or they never change."""

STRUCTS = frozenset({
    "metadata", "spec", "status", "template", "jobTemplate", "strategy", "updateStrategy", "devices",
    "source", "nodeInfo", "daemonEndpoints", "kubeletEndpoint", "loadBalancer",
})  # fmt: skip
"""Objects by these names are part of every object that may have them, said or not."""


def always_there(schema: shapes.Schema, name: str) -> bool:
    """Whether a field of a Kubernetes type exists even in an object that does not mention it.

    Making such a field is nobody's work, so nobody owns it; only what is in it.
    """
    field = schema.fields.get(name)
    if field is None:
        return False
    if not schema.name:
        return name == "metadata" and "kind" in schema.fields
    return name in schema.required or (name in STRUCTS and field.type is shapes.Type.OBJECT)


def is_named(schema: shapes.Schema, name: str) -> bool:
    """Whether a member is a field of its type, and not something that a user put into a map."""
    return schema.type is shapes.Type.OBJECT and name in schema.fields


def created(fields: dict[str, Any], schema: shapes.Schema) -> FieldSet:
    table = _root_tables.get(schema)
    if table is None:
        table = _root_tables[schema] = _root_table(schema)
    out: dict[str, Any] = {}
    for name, value in fields.items():
        known = table.get(name)
        if known is None:
            out["f:" + name] = _whole(value)
        elif known[1] is not None:
            node = known[1](value)
            if node is not None:
                out[known[0]] = node
    return out


def node_of(value: Any, schema: shapes.Schema) -> dict[str, Any]:
    """The node of one value that somebody made: itself, and all that is in it."""
    return MEMBER if schema.is_leaf else _extract(schema)(value)


_Entry = tuple[str, Callable[[Any], Any] | None]
_root_tables: WeakKeyDictionary[shapes.Schema, dict[str, _Entry]] = WeakKeyDictionary()


def _root_table(schema: shapes.Schema) -> dict[str, _Entry]:
    table: dict[str, _Entry] = {"apiVersion": ("", None), "kind": ("", None)}
    for name, field in schema.fields.items():
        if name not in table:
            hidden = SERVER_FIELDS if name == "metadata" else frozenset()
            table[name] = (f"f:{name}", _entered(schema, name, field, hidden))
    return table


def _entered(
    owner: shapes.Schema, name: str, field: shapes.Schema, hidden: frozenset[str] = frozenset()
) -> Callable[[Any], Any]:
    """How to extract a field that may be there even when it is not mentioned; None: nothing is owned."""
    if field.is_leaf:
        zero = ("", 0, False, None) if name in owner.required and owner.name else (None,)
        return lambda value: None if value in zero and type(value) in (str, int, bool, type(None)) else MEMBER
    if not always_there(owner, name):
        return _extract(field)
    if field.type is not shapes.Type.OBJECT:
        return _without_itself(_extract(field))
    inner = {
        member: (f"f:{member}", _entered(field, member, shape))
        for member, shape in field.fields.items()
        if member not in hidden
    }

    def extract(value: Any) -> dict[str, Any] | None:
        out: dict[str, Any] = {}
        for member, one in (value or EMPTY).items():
            known = inner.get(member)
            if known is not None:
                node = known[1](one) if known[1] is not None else MEMBER
                if node is not None:
                    out[known[0]] = node
            elif member not in hidden:
                out["f:" + member] = _whole(one)
        return out or None

    return extract


def _without_itself(extract: Extract) -> Callable[[Any], Any]:
    def inside(value: Any) -> dict[str, Any] | None:
        node = extract(value)
        if "." not in node:
            return node if node else None
        return {edge: below for edge, below in node.items() if edge != "."} or None

    return inside


_extractors: WeakKeyDictionary[shapes.Schema, Extract] = WeakKeyDictionary()


def _extract(schema: shapes.Schema) -> Extract:
    """How to extract a value that is new, itself included."""
    made = _extractors.get(schema)
    if made is None:
        made = _extractors[schema] = _make(schema)
    return made


def _make(schema: shapes.Schema) -> Extract:
    match schema.type:
        case shapes.Type.ANY:
            return _taken_apart if schema.is_free else _whole
        case shapes.Type.OBJECT if not schema.atomic:
            return _make_object(schema)
        case shapes.Type.MAP if not schema.atomic:
            assert schema.element is not None
            return _make_map(None if schema.element.is_leaf else _extract(schema.element))
        case shapes.Type.LIST if schema.list_type != shapes.ATOMIC:
            return _make_list(schema)
        case _:
            return _whole


@dataclass(frozen=True, slots=True)
class _Form:
    """All that the names in an object decide: its node but for what must be looked into."""

    node: dict[str, Any]
    inside: tuple[tuple[str, str, Extract], ...]  # (name, edge, how)


FORMS_MAX = 512
"""Forms are remembered by their names, up to so many for each shape. Clients choose the names."""


def _make_object(schema: shapes.Schema) -> Extract:
    forms: dict[tuple[str, ...], _Form] = {}
    form_of = _object_form(schema)

    def extract(value: Any) -> dict[str, Any]:
        if not value:
            return MEMBER
        names = tuple(value)
        form = forms.get(names)
        if form is None:
            if len(forms) >= FORMS_MAX:
                forms.clear()
            form = forms[names] = form_of(names)
        if not form.inside:
            return form.node
        out = form.node.copy()
        for name, edge, inner in form.inside:
            out[edge] = inner(value[name])
        return out

    return extract


def _object_form(schema: shapes.Schema) -> Callable[[tuple[str, ...]], _Form]:
    """Called seldom. Keeps the fields and not the schema, so that a shape can be forgotten."""
    fields = schema.fields
    unknown: Extract | None = _taken_apart if schema.preserves_unknown else None

    def form(names: tuple[str, ...]) -> _Form:
        inside = []
        for name in names:
            field = fields.get(name)
            inner = unknown if field is None else None if field.is_leaf else _extract(field)
            if inner is not None:
                inside.append((name, f"f:{name}", inner))
        return _Form({".": MEMBER, **{f"f:{name}": MEMBER for name in names}}, tuple(inside))

    return form


def _make_map(inner: Extract | None) -> Extract:
    def extract(value: Any) -> dict[str, Any]:
        if not value:
            return MEMBER
        out: dict[str, Any] = {".": MEMBER}
        for name, member in value.items():
            out["f:" + name] = MEMBER if inner is None else inner(member)
        return out

    return extract


def _make_list(schema: shapes.Schema) -> Extract:
    assert schema.element is not None
    edge = edge_maker(schema)
    inner = None if edge is value_edge or schema.element.is_leaf else _extract(schema.element)

    def extract(value: Any) -> dict[str, Any]:
        if not value:
            return MEMBER
        out: dict[str, Any] = {".": MEMBER}
        for element in value:
            out[edge(element)] = MEMBER if inner is None else inner(element)
        return out

    return extract


def _whole(value: Any) -> dict[str, Any]:
    return MEMBER


def _taken_apart(value: Any) -> dict[str, Any]:
    if type(value) is not dict or not value:
        return MEMBER
    return {".": MEMBER, **{"f:" + name: _taken_apart(member) for name, member in value.items()}}
