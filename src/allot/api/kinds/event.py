"""Events, which are served in two groups and stored once.

The core group's form is the hub. `events.k8s.io` shows the same objects under
newer names; the two differ in nothing but the names, so nothing is lost between
them. What the newer group asks of an event when it is made is asked only there.
"""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any

from .. import names
from ..age import since
from ..field import FieldError, Path, invalid, required, unsupported
from ..kind import Column, Fields, Kind, Rules, Version, WriteContext
from .reading import obj, text

TYPES = ("Normal", "Warning")
WORD_MAX = 128
NOTE_BYTES_MAX = 1024

NEW_NAMES: Mapping[str, str] = {
    "involvedObject": "regarding",
    "message": "note",
    "reportingComponent": "reportingController",
    "source": "deprecatedSource",
    "firstTimestamp": "deprecatedFirstTimestamp",
    "lastTimestamp": "deprecatedLastTimestamp",
    "count": "deprecatedCount",
}
_OLD_NAMES = {new: old for old, new in NEW_NAMES.items()}
_TARGET_FIELDS = ("kind", "namespace", "name", "uid", "apiVersion", "resourceVersion", "fieldPath")


def to_core(event: Fields) -> Fields:
    return {_OLD_NAMES.get(key, key): value for key, value in event.items()}


def from_core(event: Fields) -> Fields:
    return {NEW_NAMES.get(key, key): value for key, value in event.items()}


def _validate_place(event: Fields) -> list[FieldError]:
    """An event is in the namespace of what it is about; about nodes and such, in `default`."""
    namespace = text(event, "metadata", "namespace")
    about = text(event, "involvedObject", "namespace")
    if about == namespace or (not about and namespace in ("", "default")):
        return []
    return [invalid(Path("involvedObject.namespace"), about, "does not match event.namespace")]


def _validate_reporter(event: Fields) -> list[FieldError]:
    """What an event with a time of its own must say; events of the old kind have none."""
    found: list[FieldError] = []
    controller = text(event, "reportingComponent")
    if not controller:
        found.append(required(Path("reportingController")))
    found += [invalid(Path("reportingController"), controller, w) for w in names.qualified(controller or "x")]
    for field in ("reportingInstance", "action"):
        value = text(event, field)
        if not value:
            found.append(required(Path(field)))
        elif len(value) > WORD_MAX:
            found.append(invalid(Path(field), "", f"can have at most {WORD_MAX} characters"))
    if len(text(event, "reason")) > WORD_MAX:
        found.append(invalid(Path("reason"), "", f"can have at most {WORD_MAX} characters"))
    if len(text(event, "message").encode()) > NOTE_BYTES_MAX:
        found.append(invalid(Path("message"), "", f"can have at most {NOTE_BYTES_MAX} bytes"))
    return found


def _validate_core(event: Fields, context: WriteContext) -> list[FieldError]:
    found = _validate_place(event)
    return found + _validate_reporter(event) if event.get("eventTime") else found


def _validate_new(event: Fields, context: WriteContext) -> list[FieldError]:
    found = _validate_place(event)
    if not event.get("eventTime"):
        found.append(required(Path("eventTime")))
    found += _validate_reporter(event)
    if not text(event, "reason"):
        found.append(required(Path("reason")))
    if text(event, "type") not in TYPES:
        found.append(unsupported(Path("type"), text(event, "type"), TYPES))
    return found


def _validate_new_update(new: Fields, old: Fields, context: WriteContext) -> list[FieldError]:
    """Only the series goes on; what happened does not change."""
    fixed = ("involvedObject", "reason", "message", "eventTime", "action", "related", "type",
             "reportingComponent", "reportingInstance")  # fmt: skip
    return [
        invalid(Path(NEW_NAMES.get(name, name)), new.get(name), "field is immutable")
        for name in fixed
        if (new.get(name) or None) != (old.get(name) or None)
    ]


COLUMNS = (
    Column("Last Seen", description="How long ago it was last seen."),
    Column("Type", description="Normal or Warning."),
    Column("Reason", description="In a word, why it happened."),
    Column("Object", description="What it is about."),
    Column("Subobject", priority=1, description="Which part of it."),
    Column("Source", priority=1, description="Who says so."),
    Column("Message", description="What happened."),
    Column("First Seen", priority=1, description="How long ago it was first seen."),
    Column("Count", priority=1, description="How often it was seen."),
    Column("Name", format="name", priority=1, description="The name of the event itself."),
)


def _cells(event: Fields, now: datetime) -> Sequence[Any]:
    series = event.get("series") or {}
    first = since(text(event, "firstTimestamp") or text(event, "eventTime"), now)
    last = text(series, "lastObservedTime") or text(event, "lastTimestamp")
    about = obj(event, "involvedObject")
    target = text(about, "kind").lower()
    return [
        since(last, now) if last else first,
        text(event, "type"),
        text(event, "reason"),
        f"{target}/{about['name']}" if about.get("name") else target,
        text(about, "fieldPath"),
        _source(event),
        text(event, "message").strip(),
        first,
        str(series.get("count") or event.get("count") or 1),
        event["metadata"]["name"],
    ]


def _source(event: Fields) -> str:
    component = text(event, "source", "component") or text(event, "reportingComponent")
    instance = text(event, "source", "host") or text(event, "reportingInstance")
    return f"{component}, {instance}" if instance else component


def _about(field: str) -> Callable[[Fields], str]:
    return lambda event: text(event, "involvedObject", field)


EVENT = Kind(
    group="",
    kind="Event",
    plural="events",
    singular="event",
    short_names=("ev",),
    versions=(Version("v1", "io.k8s.api.core.v1.Event"),),
    hub="v1",
    rules=Rules(
        validate_create=_validate_core,
        validate_update=lambda new, old, context: _validate_core(new, context),
    ),
    columns=COLUMNS,
    cells_at=_cells,
    selectable={
        **{f"involvedObject.{field}": _about(field) for field in _TARGET_FIELDS},
        "reason": lambda event: text(event, "reason"),
        "reportingComponent": lambda event: text(event, "reportingComponent"),
        "source": lambda event: text(event, "source", "component") or text(event, "reportingComponent"),
        "type": lambda event: text(event, "type"),
    },
)

NEW_EVENT = Kind(
    group="events.k8s.io",
    kind="Event",
    plural="events",
    singular="event",
    short_names=("ev",),
    versions=(Version("v1", "io.k8s.api.events.v1.Event", to_hub=to_core, from_hub=from_core),),
    hub="v1",
    stored_as=("", "events"),
    stored_version=EVENT.versions[0],
    rules=Rules(validate_create=_validate_new, validate_update=_validate_new_update),
    columns=COLUMNS,
    cells_at=_cells,
    selectable={
        **{f"regarding.{field}": _about(field) for field in _TARGET_FIELDS},
        "reason": lambda event: text(event, "reason"),
        "reportingController": lambda event: text(event, "reportingComponent"),
        "type": lambda event: text(event, "type"),
    },
)
