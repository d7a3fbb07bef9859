"""Where objects lie in the store.

    /objects/<group>/<plural>/<namespace>/<name>     (core group: "core")
    /objects/<group>/<plural>/<name>                 cluster-scoped

Everything that a write read from elsewhere joins its transaction as a compare,
so that what was checked is still true when the write commits.
"""

from collections.abc import Awaitable, Iterable

import msgspec

from allot.api import OBJECT_BYTES_MAX, Fields, Kind, Object, errors
from allot.store import Change, Committed, Compare, Put, Refused, Revise, Store

from .pending import FIRST_REVISION, pending
from .recent import Recent
from .stored import object_of

ROOT = "/objects/"


def prefix_of(kind: Kind, namespace: str = "") -> str:
    group, plural = kind.storage
    base = f"{ROOT}{group or 'core'}/{plural}/"
    return f"{base}{namespace}/" if namespace and kind.namespaced else base


def key_of(kind: Kind, namespace: str, name: str) -> str:
    group, plural = kind.storage
    if namespace and kind.namespaced:
        return f"{ROOT}{group or 'core'}/{plural}/{namespace}/{name}"
    return f"{ROOT}{group or 'core'}/{plural}/{name}"


class Found(msgspec.Struct, frozen=True):
    key: str
    object: Object | None

    @property
    def compare(self) -> Compare:
        return Compare(self.key, self.object.revision if self.object else 0)


def most_bytes_of(stored: Object) -> int:
    """How large an object may become: one of an earlier version that is larger already may not grow."""
    return max(OBJECT_BYTES_MAX, len(stored.stored))


def require_storable(key: str, size: int, most_bytes: int = OBJECT_BYTES_MAX) -> None:
    if size > most_bytes:
        what = key.removeprefix(ROOT)
        raise errors.TooLarge(f"{what} is too large to be stored: {size} bytes, the limit is {most_bytes}")


class Repository:
    """Reads and writes of whole objects; knows no rules."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.recent = Recent()

    def find(self, kind: Kind, namespace: str, name: str) -> Awaitable[Found]:
        return self.find_key(key_of(kind, namespace, name), kind)

    async def find_key(self, key: str, kind: Kind) -> Found:
        entry = await self.store.get(key)
        if entry is None:
            return Found(key, None)
        written = None
        if not kind.is_custom:
            kept = self.recent if entry.revision < FIRST_REVISION else (pending() or self.recent)
            written = kept.at(key, entry.revision)
        return Found(key, written or object_of(entry, kind))

    def written(self, key: str, stored: bytes, revision: int, fields: Fields) -> Object:
        """What has just been committed. `fields` belong to the object from now on: nobody changes them."""
        return (pending() or self.recent).written(key, stored, revision, fields)

    async def commit(
        self, compares: Iterable[Compare], changes: Iterable[Change], most_bytes: int = OBJECT_BYTES_MAX
    ) -> Committed | Refused:
        """No object of more than `most_bytes` is written; see `most_bytes_of`."""
        changes = list(changes)
        for change in changes:
            if type(change) is Put:
                require_storable(change.key, len(change.value), most_bytes)
        return await self.store.transact(list(compares), changes)

    async def rehearse(self, changes: Iterable[Change]) -> None:
        """Raises what a change that revises would raise now, and writes nothing."""
        for change in changes:
            if isinstance(change, Revise):
                entry = await self.store.get(change.key)
                change.make(entry.value if entry is not None else None)
