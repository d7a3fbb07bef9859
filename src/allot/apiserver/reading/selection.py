"""Which objects of a list or watch the client asked for."""

from collections.abc import Callable
from typing import Any, cast

from allot.api import Kind, Object, errors

from ..registry import Served
from ..requests.selectors import FieldSelector, LabelSelector, parse_fields, parse_labels


class Selection:
    """Labels, fields and namespace, as one question. Falsy when everything is wanted."""

    __slots__ = ("_fields", "_kind", "_labels", "_namespace")

    def __init__(self, kind: Kind, labels: LabelSelector, fields: FieldSelector, namespace: str = "") -> None:
        self._kind = kind
        self._labels = labels
        self._fields = fields
        self._namespace = namespace

    def __bool__(self) -> bool:
        return bool(self._labels or self._fields or self._namespace)

    def accepts(self, object: Object) -> bool:
        if self._namespace and object.namespace != self._namespace:
            return False
        if self._labels and not self._labels.accepts(object.metadata.labels):
            return False
        return not self._fields or self._fields.accepts(lambda field: self._read(object, field))

    def _read(self, object: Object, field: str) -> str:
        if field == "metadata.name":
            return object.name
        if field == "metadata.namespace":
            return object.namespace
        # The cache is shared and read-only; selectable fields only read.
        return self._kind.selectable[field](cast(dict[str, Any], object.fields))


def parse_selection(served: Served, query: Callable[[str], str], namespace: str = "") -> Selection:
    fields = parse_fields(query("fieldSelector"))
    for field in fields.fields:
        if not _is_selectable(served.kind, field):
            raise errors.BadRequest(_unknown_field(served, field))
    return Selection(served.kind, parse_labels(query("labelSelector")), fields, namespace)


def _is_selectable(kind: Kind, field: str) -> bool:
    if field in kind.selectable or field == "metadata.name":
        return True
    return field == "metadata.namespace" and kind.selects_namespace


def _unknown_field(served: Served, field: str) -> str:
    kind = served.kind
    if kind.selectable:
        return f"field label not supported for {served.api_version}, Kind={kind.kind}: {field}"
    return f'"{field}" is not a known field selector: only "metadata.name", "metadata.namespace"'
