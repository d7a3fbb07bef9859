"""Which keys are in use in a store, and how the latest comes to be the only one.

Both look at the store behind: at values as they lie there.
"""

import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..contract import Compare, Entry, Put, Refused, Store
from .keys import BadKeys
from .mark import CannotOpen, key_id_of

if TYPE_CHECKING:
    from .envelope import Seals

log = logging.getLogger(__name__)

_PAGE = 500


async def require_keys(store: Store, known: Sequence[str], prefixes: Sequence[str]) -> None:
    """Raises BadKeys if something is encrypted with a key whose id is not known."""
    for entry in await _below(store, prefixes):
        id = key_id_of(entry.value)
        if id and id not in known:
            have = f"the key file has {', '.join(known)}" if known else "no --encryption-key was given"
            raise BadKeys(f"{entry.key} is encrypted with key {id}, and {have}")


async def rewrite(store: Store, seals: "Seals", prefixes: Sequence[str]) -> int:
    """Encrypt with the first key whatever is not, and let the store forget how it was. Returns how many."""
    rewritten = 0
    for found in await _below(store, prefixes):
        entry: Entry | None = found
        while entry is not None and key_id_of(entry.value) != seals.current:
            try:
                value = seals.seal(entry.key, seals.open(entry.key, entry.value))
            except CannotOpen as why:
                log.error("left as it is: %s", why)
                break
            answer = await store.transact([Compare(entry.key, entry.revision)], [Put(entry.key, value)])
            if not isinstance(answer, Refused):
                rewritten += 1
                break
            entry = answer.current.get(entry.key)  # another server wrote it meanwhile
    await store.compact(await store.revision())  # also of what others wrote anew or deleted before
    await store.scrub()
    return rewritten


async def _below(store: Store, prefixes: Sequence[str]) -> list[Entry]:
    """Page by page, all as they were at one revision."""
    entries: list[Entry] = []
    for prefix in prefixes:
        page = await store.range(prefix, limit=_PAGE)
        entries += page.entries
        while page.more:
            page = await store.range(prefix, after=page.entries[-1].key, limit=_PAGE, at=page.revision)
            entries += page.entries
    return entries
