"""The annotation in which kubectl remembered its configuration before server-side apply.

`kubectl apply` without --server-side writes as an ordinary updater, so the first
server-side apply of the same file would conflict with itself. Where the live
object still is as the annotation says, the fields are kubectl's to take. The
annotation is kept up to date, so that people can go back.
"""

import json
from typing import Any

from allot.api import errors
from allot.api import schema as shapes

from .compare import compare
from .configured import configured
from .fieldset import EMPTY, FieldSet, difference
from .merge import merged

ANNOTATION = "kubectl.kubernetes.io/last-applied-configuration"

ANNOTATIONS_BYTES_MAX = 256 * 1024
"""What the annotations of an object may hold; a longer memory is not written."""


def allowed_by_last_applied(live: dict[str, Any], schema: shapes.Schema) -> FieldSet:
    """The fields that client-side apply wrote and that nobody changed since."""
    last = _remembered(live)
    if (
        last is None
        or shapes.check(last, schema).malformed
        or last.get("apiVersion") != live.get("apiVersion")
    ):
        return EMPTY  # the annotation is anybody's text
    try:
        said = configured(last, schema)
    except errors.BadRequest:
        return EMPTY
    again = merged(live, last, schema)
    return difference(said, compare(live, again, schema).written)


def _remembered(live: dict[str, Any]) -> dict[str, Any] | None:
    text = ((live.get("metadata") or {}).get("annotations") or {}).get(ANNOTATION)
    if not text:
        return None
    try:
        last = shapes.decode_value(text.encode())
    except errors.BadRequest:
        return None
    return last if type(last) is dict else None


def with_last_applied(fields: dict[str, Any], config: dict[str, Any]) -> dict[str, Any]:
    """`fields` with the annotation brought up to date, if it has one."""
    metadata = fields.get("metadata") or {}
    annotations = metadata.get("annotations") or {}
    if ANNOTATION not in annotations:
        return fields
    text = json.dumps(_memorable(config), separators=(",", ":"), ensure_ascii=False) + "\n"
    rest = sum(len(name) + len(value) for name, value in annotations.items() if name != ANNOTATION)
    if rest + len(text.encode()) > ANNOTATIONS_BYTES_MAX:
        return fields
    return {**fields, "metadata": {**metadata, "annotations": {**annotations, ANNOTATION: text}}}


def _memorable(config: dict[str, Any]) -> dict[str, Any]:
    metadata = dict(config.get("metadata") or {})
    annotations = metadata.get("annotations")
    if annotations:
        metadata["annotations"] = {name: text for name, text in annotations.items() if name != ANNOTATION}
    return {**config, "metadata": metadata}
