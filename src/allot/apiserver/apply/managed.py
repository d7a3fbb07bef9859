"""The entries of `metadata.managedFields`: who wrote which fields, when, and how.

An entry is known by its manager, operation and subresource, and when it was
written by an update also by the API version. Reading is forgiving (what cannot
be understood counts as absent), writing is exact.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from .fieldset import FieldSet, is_field_set, union

APPLY: Final = "Apply"
UPDATE: Final = "Update"

UPDATERS_MAX: Final = 10
"""With more updaters than this the oldest become one entry, ANCIENT."""

ANCIENT: Final = "ancient-changes"
BEFORE_FIRST_APPLY: Final = "before-first-apply"


Identity = tuple[str, str, str, str]
"""Manager, operation, API version and subresource. Appliers have no version here: they stay the same whatever
version they speak."""


class Entry(msgspec.Struct, frozen=True):
    manager: str
    operation: str
    api_version: str
    fields: FieldSet
    time: str = ""
    subresource: str = ""
    record: dict[str, Any] | None = None  # as it is stored: an entry that stays is not written anew

    @property
    def identity(self) -> Identity:
        version = "" if self.operation == APPLY else self.api_version
        return self.manager, self.operation, version, self.subresource

    def owning(self, fields: FieldSet) -> "Entry":
        return replace(self, fields=fields, record=None)

    def shown(self) -> dict[str, Any]:
        if self.record is not None:
            return self.record
        out: dict[str, Any] = {
            "manager": self.manager,
            "operation": self.operation,
            "apiVersion": self.api_version,
        }
        if self.time:
            out["time"] = self.time
        out["fieldsType"] = "FieldsV1"
        out["fieldsV1"] = self.fields
        if self.subresource:
            out["subresource"] = self.subresource
        return out


def stored(fields: Mapping[str, Any] | None) -> list[Entry]:
    """The entries of an object that this server has stored."""
    managed = ((fields or {}).get("metadata") or {}).get("managedFields") or ()
    return [_entry(one, one) for one in managed]


def claimed(managed: Any) -> list[Entry] | None:
    """The entries of a list that a client sent, or None when it makes no sense."""
    if type(managed) is not list:
        return None
    entries = [_entry(one) if type(one) is dict else None for one in managed]
    sound = [entry for entry in entries if entry is not None and _is_sound(entry)]
    return sound if len(sound) == len(managed) else None


def _is_sound(entry: Entry) -> bool:
    return entry.operation in (APPLY, UPDATE) and is_field_set(entry.fields)


def _entry(one: Mapping[str, Any], record: dict[str, Any] | None = None) -> Entry:
    get = one.get
    return Entry(
        get("manager") or "",
        get("operation") or "",
        get("apiVersion") or "",
        get("fieldsV1") or {},
        get("time") or "",
        get("subresource") or "",
        record,
    )


def is_reset(managed: Any) -> bool:
    """A client forgets all owners by sending a list with one empty entry."""
    return type(managed) is list and len(managed) == 1 and managed[0] in ({}, None)


def shown(entries: Iterable[Entry]) -> list[dict[str, Any]]:
    """Appliers first, then by time."""
    order = sorted(entries, key=_place)
    return [entry.shown() for entry in order]


def _place(entry: Entry) -> tuple[str, ...]:
    return entry.operation, entry.time, entry.manager, entry.api_version, entry.subresource


def by_identity(entries: Iterable[Entry]) -> dict[Identity, Entry]:
    found: dict[Identity, Entry] = {}
    for entry in entries:
        identity = entry.identity
        twin = found.get(identity)
        found[identity] = entry if twin is None else merged(entry, twin)
    return found


def merged(entry: Entry, other: Entry) -> Entry:
    return entry.owning(union(other.fields, entry.fields))


def with_ancients_merged(entries: Sequence[Entry]) -> Sequence[Entry]:
    """Few updaters: the oldest of one version are joined until UPDATERS_MAX are left."""
    if len(entries) <= UPDATERS_MAX:
        return entries
    updaters = sorted((e for e in entries if e.operation == UPDATE), key=lambda e: e.time)
    if len(updaters) <= UPDATERS_MAX:
        return entries
    ancient: dict[str, Entry] = {}
    too_many = len(updaters) - UPDATERS_MAX
    gone: list[Entry] = []
    for entry in updaters:
        if too_many <= 0:
            break
        first = ancient.get(entry.api_version)
        ancient[entry.api_version] = entry if first is None else _ancient(first, entry)
        gone.append(entry)
        too_many -= first is not None
    return [*(e for e in entries if not any(e is one for one in gone)), *ancient.values()]


def _ancient(older: Entry, newer: Entry) -> Entry:
    """Status fields of old writers lose the name of the subresource along with the writer's."""
    return Entry(ANCIENT, UPDATE, newer.api_version, union(older.fields, newer.fields), newer.time)


def author_of(field_manager: str, user_agent: str) -> str:
    """The manager of a request that may not say who it is: then the program's name is taken."""
    return field_manager or user_agent.partition("/")[0][:128] or "unknown"
