"""The rules that every list of conditions keeps."""

import re
from collections.abc import Sequence

from .. import field, names
from ..field import Path
from ..kind import Fields
from .found import Found

_REASON = re.compile("[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?")
_STATUSES = ("False", "True", "Unknown")
_REASON_MAX = 1024
_MESSAGE_MAX = 32 * 1024


def check(found: Found, conditions: Sequence[Fields], path: Path) -> None:
    seen = set()
    for at, condition in enumerate(conditions):
        _condition(found, condition, path[at])
        kind = condition.get("type") or ""
        if kind and kind in seen:
            found.add(field.duplicate(path[at] / "type", kind))
        seen.add(kind)


def _condition(found: Found, condition: Fields, path: Path) -> None:
    kind, status, reason, message = (
        condition.get(name) or "" for name in ("type", "status", "reason", "message")
    )
    if kind:
        found.texts(path / "type", kind, names.qualified(kind))
    else:
        found.add(field.required(path / "type", "must be set"))
    if status not in _STATUSES:
        found.add(field.unsupported(path / "status", status, _STATUSES))
    generation = condition.get("observedGeneration") or 0
    if generation < 0:
        text = "must be greater than or equal to zero"
        found.add(field.invalid(path / "observedGeneration", generation, text))
    if not condition.get("lastTransitionTime"):
        found.add(field.required(path / "lastTransitionTime", "must be set"))
    if not reason:
        found.add(field.required(path / "reason", "must be set"))
    elif not _REASON.fullmatch(reason):
        text = "a condition reason must start with a letter, and consist of letters, digits, '_', ',' or ':'"
        found.add(field.invalid(path / "reason", reason, text))
    if len(reason.encode()) > _REASON_MAX:
        found.add(field.too_long(path / "reason", _REASON_MAX))
    if len(message.encode()) > _MESSAGE_MAX:
        found.add(field.too_long(path / "message", _MESSAGE_MAX))
