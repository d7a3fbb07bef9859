"""The objects of a list: from which state, which part of it, and how to ask for the rest.

Long lists are put together in pieces, so that nobody else waits for them (the
entries of a page never change, whatever happens in between).
"""

import asyncio
import base64
import binascii
from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from allot.api import Kind, Object, errors
from allot.store import Compacted, Entry, Page, Store

from ..requests.pieces import BYTES, pieces
from ..storing.repository import prefix_of
from ..storing.stored import readable
from .cache import Caches
from .listoptions import REVISION_MAX, ListOptions
from .selection import Selection

PIECE = 1000
_REVISION_WAIT_S = 3.0


class Listed(NamedTuple):
    objects: Sequence[Object]
    revision: int  # when this was the state
    token: str = ""  # asks for what follows
    remaining: int = 0  # how many follow, where that is known


class ContinueToken(msgspec.Struct, frozen=True):
    revision: int
    after: str


class Lister:
    def __init__(self, store: Store, caches: Caches) -> None:
        self._store = store
        self._caches = caches

    async def select(self, kind: Kind, namespace: str, selection: Selection, options: ListOptions) -> Listed:
        fresh_enough = options.revision == 0 and options.match != "Exact" and not options.limit
        if fresh_enough and not options.token:
            return await self._from_cache(kind, namespace, selection)
        if options.revision:
            await self.wait_for(options.revision)
        return await self._from_store(kind, namespace, selection, options)

    async def wait_for(self, revision: int) -> None:
        """Until the store has come as far; a client may have read from a server that is ahead."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + _REVISION_WAIT_S
        while (current := await self._store.revision()) < revision:
            if loop.time() > deadline:
                raise too_large(revision, current)
            await asyncio.sleep(0.05)

    async def _from_cache(self, kind: Kind, namespace: str, selection: Selection) -> Listed:
        cache = await self._caches.of(kind)
        prefix, revision = prefix_of(kind, namespace), cache.revision
        objects = [one for key, one in sorted(cache.objects.items()) if key.startswith(prefix)]
        if selection:
            objects = await _accepted(objects, selection)
        return Listed(objects, revision)

    async def _from_store(
        self, kind: Kind, namespace: str, selection: Selection, options: ListOptions
    ) -> Listed:
        prefix = prefix_of(kind, namespace)
        after, at = "", 0
        if options.token:
            token = _read_token(options.token)
            after, at = prefix + token.after, token.revision
        elif options.revision and (options.match == "Exact" or (options.limit and not options.match)):
            at = options.revision
        found: list[Object] = []
        while True:
            page = await self._page(prefix, after, options.limit, at)
            at = page.revision
            room = options.limit - len(found) if options.limit else len(page.entries)
            taken, used = await _take(page.entries, kind, selection, room)
            found += taken
            left = len(page.entries) - used + page.remaining
            if options.limit and len(found) == options.limit and left:
                after = page.entries[used - 1].key
                return Listed(found, at, _token(at, after, prefix), 0 if selection else left)
            if not page.more:
                return Listed(found, at)
            after = page.entries[-1].key

    async def _page(self, prefix: str, after: str, limit: int, at: int) -> Page:
        try:
            return await self._store.range(prefix, after=after, limit=limit, at=at)
        except Compacted:
            raise errors.Expired(
                "The provided continue parameter or resourceVersion is too old: "
                "that state is no longer kept; start the list over"
            ) from None
        except ValueError:
            raise too_large(at, await self._store.revision()) from None


async def _take(
    entries: Sequence[Entry], kind: Kind, selection: Selection, most: int
) -> tuple[list[Object], int]:
    """At most `most` of the entries that are wanted, and how many were looked at."""
    taken: list[Object] = []
    looked, looked_bytes = 0, 0  # since others had a turn
    for at, entry in enumerate(entries):
        if len(taken) == most:
            return taken, at
        looked, looked_bytes = looked + 1, looked_bytes + len(entry.value)
        object = readable(entry, kind)
        if object is not None and (not selection or selection.accepts(object)):
            taken.append(object)
        if looked == PIECE or looked_bytes > BYTES:
            looked = looked_bytes = 0
            await asyncio.sleep(0)
    return taken, len(entries)


async def _accepted(objects: Sequence[Object], selection: Selection) -> list[Object]:
    accepted: list[Object] = []
    for cut in pieces(objects, PIECE):
        accepted += [one for one in objects[cut] if selection.accepts(one)]
        await asyncio.sleep(0)
    return accepted


def _token(revision: int, after: str, prefix: str) -> str:
    token = ContinueToken(revision, after.removeprefix(prefix))
    return base64.urlsafe_b64encode(msgspec.json.encode(token)).decode().rstrip("=")


def _read_token(text: str) -> ContinueToken:
    try:
        decoded = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
        token = msgspec.json.decode(decoded, type=ContinueToken)
    except (binascii.Error, ValueError, msgspec.MsgspecError):
        raise errors.BadRequest("continue key is not valid: it does not come from this server") from None
    if not 0 < token.revision <= REVISION_MAX:
        raise errors.BadRequest("continue key is not valid: bad revision")
    return token


def too_large(asked: int, current: int) -> errors.Timeout:
    return errors.Timeout(
        f"Too large resource version: {asked}, current: {current}",
        causes=[errors.Cause("ResourceVersionTooLarge", "Too large resource version", "")],
        retry_after_s=1,
    )
