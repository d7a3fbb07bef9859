"""Who owns what after an ordinary write.

Where it sits
    The server calls `track_update` on every create, update and patch that is not
    an apply, with the object as it was and as it will be, both in the version that
    the request came in. What it returns becomes `metadata.managedFields`.

What it promises
    UPDATE1  The writer owns every field that it added or changed, and nobody else does.
    UPDATE2  Fields that are gone have no owner.
    UPDATE3  Fields that stayed as they were keep their owners.
    UPDATE4  The time of an entry moves only when its writer took a field.

A client that sends managedFields of its own is believed, except through a
subresource; one that sends none, or nonsense, does not delete them.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

from allot.api import schema as shapes

from .compare import Changes, compare
from .extract import created
from .fieldset import FieldSet, difference, union
from .managed import (
    UPDATE,
    Entry,
    Identity,
    by_identity,
    claimed,
    is_reset,
    shown,
    stored,
    with_ancients_merged,
)

Fields = dict[str, Any]


class Versions(Protocol):
    """The other API versions of an object."""

    def convert(self, fields: Fields, api_version: str) -> tuple[Fields, shapes.Schema] | None:
        """The object there, with its schema; None when that version is not served."""

    def keep_parts(self, api_version: str) -> bool:
        """Whether spec there follows from spec alone, status from status, and metadata is the same."""


class Author(NamedTuple):
    manager: str
    api_version: str  # of the request, e.g. "apps/v1"
    subresource: str = ""


def track_update(
    live: Fields | None,
    new: Fields,
    author: Author,
    now: str,
    schema: shapes.Schema,
    versions: Versions | None = None,
) -> list[Fields]:
    """managedFields of `new`, which replaces `live`. Neither is changed."""
    sent = (new.get("metadata") or {}).get("managedFields")
    if live is None and not sent:
        fields = created(new, schema)
        return [_entry(author, fields, now).shown()] if fields else []
    if is_reset(sent) and not author.subresource:
        return []
    entries = _believed(live, sent, author)
    if not entries and live is not None:
        return []  # whoever forgot all owners did so on purpose; the next apply begins anew
    return shown(_tracked(live or {}, new, entries, author, now, schema, versions))


def _believed(live: Fields | None, sent: Any, author: Author) -> Sequence[Entry]:
    before = ((live or {}).get("metadata") or {}).get("managedFields")
    if author.subresource or sent == before:
        return stored(live)
    return claimed(sent) or stored(live)


def _tracked(
    live: Fields,
    new: Fields,
    entries: Sequence[Entry],
    author: Author,
    now: str,
    schema: shapes.Schema,
    versions: Versions | None,
) -> Sequence[Entry]:
    changes = compare(live, new, schema)
    if not changes:
        return entries
    views = Views(live, new, author.api_version, changes, versions)
    found = by_identity(entries)
    left = given_up(found, views)
    taken = changes.written
    if taken:
        mine = _entry(author, taken, now)
        identity = mine.identity
        before = left.get(identity)
        left[identity] = mine if before is None else mine.owning(union(before.fields, taken))
    return with_ancients_merged(list(left.values()))


def _entry(author: Author, fields: FieldSet, now: str) -> Entry:
    return Entry(author.manager, UPDATE, author.api_version, fields, now, author.subresource)


class Views:
    """One change as each API version sees it."""

    def __init__(
        self, old: Fields, new: Fields, version: str, changes: Changes, versions: Versions | None
    ) -> None:
        self._old = old
        self._new = new
        self._changes = changes
        self._versions = versions
        self._seen: dict[str, Changes | None] = {version: changes}

    def of(self, entry: Entry) -> Changes | None:
        """As far as it may touch what the entry has. None when its version is no longer served, and it means
        nothing any more."""
        version = entry.api_version
        if version not in self._seen:
            if (seen := self._at_a_glance(entry)) is not None:
                return seen
            self._seen[version] = self._look(version)
        return self._seen[version]

    def _at_a_glance(self, entry: Entry) -> Changes | None:
        """Without a conversion, where the parts that changed are others than the entry has, or metadata."""
        if self._versions is None or not self._versions.keep_parts(entry.api_version):
            return None
        old, new = self._old, self._new
        for edge in entry.fields:
            if edge != _METADATA and old.get(edge[2:]) != new.get(edge[2:]):
                return None
        return self._changes.below(_METADATA)

    def _look(self, version: str) -> Changes | None:
        if self._versions is None:
            return None
        old, new = self._versions.convert(self._old, version), self._versions.convert(self._new, version)
        return None if old is None or new is None else compare(old[0], new[0], new[1])


_METADATA = "f:metadata"


def given_up(entries: dict[Identity, Entry], views: Views) -> dict[Identity, Entry]:
    """What everybody still owns after somebody else's change."""
    left: dict[Identity, Entry] = {}
    for identity, entry in entries.items():
        changes = views.of(entry)
        if changes is None:
            continue
        fields = difference(difference(entry.fields, changes.written), changes.removed)
        if fields:
            left[identity] = entry if fields is entry.fields else entry.owning(fields)
    return left
