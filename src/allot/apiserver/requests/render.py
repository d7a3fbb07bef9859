"""How stored objects look to a client: in its version, whole, as metadata, or as table rows."""

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from typing import Any

import msgspec

from allot.api import Fields, Object, Response, encode
from allot.base import Clock

from ..registry import Served
from .negotiate import Form

Headers = tuple[tuple[str, str], ...]


def in_version(object: Object, served: Served) -> Fields:
    """The object decoded in the version that the client speaks; the caller may change it."""
    fields = object.fresh()
    if not served.is_hub:
        fields = served.version.from_hub(fields)
        fields["apiVersion"] = served.api_version
        fields["kind"] = served.kind.kind
    return fields


class Renderer:
    """Renders objects of one kind in one version and form. `form_name` tells forms apart;
    `is_plain` is the form in which objects are stored."""

    def __init__(self, served: Served, form: Form, clock: Clock, include: str = "Metadata") -> None:
        self.served = served
        self.form = form
        self.is_plain = not form.shape and served.is_hub
        self._clock = clock
        self._include = include

    @property
    def form_name(self) -> str:
        return f"{self.served.api_version} {self.form.shape} {self.form.version} {self._include}"

    def one(self, object: Object) -> bytes:
        """An object as the answer to get, create or update."""
        if self.is_plain:
            return object.raw
        match self.form.shape:
            case "Table":
                return encode(self.table([object], object.resource_version))
            case "PartialObjectMetadata":
                return encode(self._partial(object.fresh()))
            case _:
                return encode(in_version(object, self.served))

    def answer(self, object: Object, status: int = 200, headers: Headers = ()) -> Response:
        """The whole answer; clients in the same process find the object in it as it is."""
        if self.is_plain:
            return Response(status, object.raw, headers=headers, object=object)
        return Response(status, self.one(object), headers=headers)

    def answer_made(
        self, object: Object, make: Callable[[Object], Fields], headers: Headers = ()
    ) -> Response:
        """An answer that is made from an object, and is in no version of it."""
        return Response(200, encode(make(object)), headers=headers)

    def item(self, object: Object) -> bytes:
        """An object as one item of a list, or of a watch."""
        return self.one(object)

    def items(self, objects: Sequence[Object]) -> bytes:
        return b",".join([self.one(object) for object in objects])

    def rows(self, objects: Sequence[Object]) -> bytes:
        now = self._clock.now()
        return b",".join([encode(self._row(object, now)) for object in objects])

    def _row(self, object: Object, now: datetime) -> Fields:
        fields = in_version(object, self.served)
        # Columns are read from the hub form: one table entry serves all versions.
        cells = self.served.kind.row(fields if self.served.is_hub else object.fresh(), now)
        return {"cells": list(cells), **self._row_object(fields)}

    def table(self, objects: Iterable[Object], revision: str, more: Fields | None = None) -> Fields:
        kind, now = self.served.kind, self._clock.now()
        rows = [self._row(object, now) for object in objects]
        return {
            "kind": "Table",
            "apiVersion": f"meta.k8s.io/{self.form.version}",
            "metadata": {"resourceVersion": revision, **(more or {})},
            "columnDefinitions": [
                {
                    "name": column.name,
                    "type": column.type,
                    "format": column.format,
                    "description": column.description,
                    "priority": column.priority,
                }
                for column in kind.columns
            ],
            "rows": rows,
        }

    def _row_object(self, fields: Fields) -> Fields:
        match self._include:
            case "None":
                return {}
            case "Object":
                return {"object": fields}
            case _:
                return {"object": self._partial(fields)}

    def _partial(self, fields: Fields) -> Fields:
        return {
            "kind": "PartialObjectMetadata",
            "apiVersion": f"meta.k8s.io/{self.form.version}",
            "metadata": fields["metadata"],
        }

    def list_head(self, revision: int, token: str, remaining: int) -> bytes:
        """Everything of a list before its first item."""
        metadata: dict[str, Any] = {"resourceVersion": str(revision)}
        if token:
            metadata["continue"] = token
            if remaining > 0:
                metadata["remainingItemCount"] = remaining
        if self.form.shape == "PartialObjectMetadata":
            kind, version = "PartialObjectMetadataList", f"meta.k8s.io/{self.form.version}"
        else:
            kind, version = self.served.kind.list_kind, self.served.api_version
        head = msgspec.json.encode({"kind": kind, "apiVersion": version, "metadata": metadata})
        return head[:-1] + b',"items":['
