"""Server-side apply: one writer's complete opinion, merged with everybody else's.

Where it sits
    The server calls `apply` for a PATCH of type apply, with the live object and the
    configuration in the version of the request. The object that comes out takes the
    path of every update; its managedFields are already settled.

What it promises
    APPLY1  The applier owns exactly what its configuration says.
    APPLY2  A field that it owned and no longer mentions is removed, unless somebody else
            owns it too. Nobody else's field is removed.
    APPLY3  A field that another owns and that would change is a conflict; conflicts change
            nothing. With `force` the applier takes these fields.
    APPLY4  Two appliers that say the same share a field.
    APPLY5  Applying twice is applying once, down to the time of the entry.

Field paths are taken to mean the same in every version of a kind when it comes to
what others own; only values are compared version by version.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

import msgspec

from allot.api import errors
from allot.api import schema as shapes

from .compare import compare
from .configured import configured
from .conflicts import Conflict, Conflicts
from .extract import created
from .fieldset import (
    EMPTY,
    MEMBER,
    FieldSet,
    difference,
    intersection,
    only_subtrees,
    union,
    without_subtrees,
)
from .lastapplied import allowed_by_last_applied, with_last_applied
from .managed import APPLY, BEFORE_FIRST_APPLY, UPDATE, Entry, Identity, by_identity, shown, stored
from .merge import merged, pruned
from .update import Author, Fields, Versions, Views, given_up

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder().decode


@dataclass(frozen=True, slots=True)
class Applied:
    fields: Fields  # the object, with its managedFields
    changed: bool  # False: nothing is different, not even who owns what


Settle = Callable[[Fields], Fields]


@dataclass(frozen=True, slots=True)
class _Case:
    live: Fields
    config: Fields
    author: Author
    now: str
    schema: shapes.Schema
    versions: Versions | None


def apply(
    live: Fields | None,
    config: Fields,
    author: Author,
    now: str,
    schema: shapes.Schema,
    *,
    force: bool = False,
    versions: Versions | None = None,
    settle: Settle | None = None,
) -> Applied | Conflicts:
    """The object after `author` applied `config`. Nothing that is handed in is changed.

    `settle` fills in what the server assumes before the object is compared with the live one,
    so that a list without its defaults does not look like a change. Assumptions have no owner.
    It is handed a copy, and may change it; but where a status is applied, all else is the live object's own.
    """
    if (config.get("metadata") or {}).get("managedFields"):
        raise errors.BadRequest("metadata.managedFields must be nil")
    case = _Case(live or {}, config, author, now, schema, versions)
    mine = Entry(author.manager, APPLY, author.api_version, _said(case), now, author.subresource)
    entries = _entries_before(live, case)
    last = entries.get(mine.identity)
    fields = _wanted(case, entries, mine, last)
    if settle is not None:
        fields = settle(_copied(fields, case))

    changes = compare(case.live, fields, schema)
    others = {identity: entry for identity, entry in entries.items() if identity != mine.identity}
    views = Views(case.live, fields, author.api_version, changes, versions)
    if not force:
        conflicts = _disputed(_conflicts(others, views), case)
        if conflicts:
            return Conflicts(conflicts)
    kept = given_up(others, views)
    if (
        last is not None
        and not changes
        and (last.fields, last.api_version) == (mine.fields, mine.api_version)
    ):
        mine = last
    if mine.fields:
        kept[mine.identity] = mine
    fields = with_last_applied(fields, config) if author.manager == "kubectl" else fields
    return _result(live, fields, kept)


def _said(case: _Case) -> FieldSet:
    """APPLY1."""
    if case.author.subresource == "status" and "status" in case.schema.fields and _names_only(case.config):
        said = {name: case.config[name] for name in ("status",) if name in case.config}
        return configured(said, case.schema)
    return _writable(configured(case.config, case.schema), case)


_NAMES = frozenset(("name", "namespace", "uid", "resourceVersion"))


def _names_only(config: Fields) -> bool:
    """Whether metadata says which object is meant, and nothing that could be wrong or owned."""
    return config.keys() <= _TOP and _NAMES.issuperset(config.get("metadata") or ())


_TOP = frozenset(("apiVersion", "kind", "metadata", "status"))


def _writable(fields: FieldSet, case: _Case) -> FieldSet:
    """Less what this path cannot write: status belongs to its subresource, and nothing else does."""
    if "status" not in case.schema.fields:
        return fields
    if case.author.subresource == "status":
        return only_subtrees(fields, frozenset({"f:status"}))
    return without_subtrees(fields, {"f:status": MEMBER})


def _entries_before(live: Fields | None, case: _Case) -> dict[Identity, Entry]:
    entries = by_identity(stored(live))
    if live is None or entries:
        return entries
    unclaimed = _writable(created(live, case.schema), case)
    if not unclaimed:
        return {}
    entry = Entry(BEFORE_FIRST_APPLY, UPDATE, case.author.api_version, unclaimed, case.now)
    return {entry.identity: entry}


def _wanted(case: _Case, entries: Mapping[Identity, Entry], mine: Entry, last: Entry | None) -> Fields:
    """APPLY2."""
    fields: Fields = merged(_without_record(case.live), case.config, case.schema)
    if last is None or not last.fields:
        return fields
    owned = mine.fields
    for identity, entry in entries.items():
        if identity != mine.identity:
            owned = union(owned, entry.fields)
    return pruned(fields, last.fields, owned, case.schema)


def _copied(fields: Fields, case: _Case) -> Fields:
    """Written and read again: the quickest way to copy JSON."""
    if not case.author.subresource:
        return cast(Fields, _decode(_encode(fields)))
    live = case.live
    return {
        name: value if type(value) is str or value is live.get(name) else _decode(_encode(value))
        for name, value in fields.items()
    }


def _without_record(live: Fields) -> Fields:
    metadata = live.get("metadata") or {}
    if "managedFields" not in metadata:
        return live
    return {**live, "metadata": {name: value for name, value in metadata.items() if name != "managedFields"}}


def _conflicts(others: Mapping[Identity, Entry], views: Views) -> Sequence[Conflict]:
    """APPLY3."""
    found = []
    for entry in others.values():
        changes = views.of(entry)
        taken = intersection(entry.fields, changes.written) if changes is not None else EMPTY
        if taken:
            found.append(Conflict(entry, taken))
    return found


def _disputed(conflicts: Sequence[Conflict], case: _Case) -> Sequence[Conflict]:
    """kubectl may take over what kubectl wrote before there was server-side apply."""
    if not conflicts or case.author.manager != "kubectl":
        return conflicts
    allowed = allowed_by_last_applied(case.live, case.schema)
    left = [replace(conflict, fields=difference(conflict.fields, allowed)) for conflict in conflicts]
    return [conflict for conflict in left if conflict.fields]


def _result(live: Fields | None, fields: Fields, kept: Mapping[Identity, Entry]) -> Applied:
    managed = shown(kept.values())
    metadata: dict[str, Any] = dict(fields.get("metadata") or {})
    if managed:
        metadata["managedFields"] = managed
    new = {**fields, "metadata": metadata}
    return Applied(new, new != live)
