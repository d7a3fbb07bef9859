"""get, list and watch.

Which state a read sees (S2)
    no resourceVersion       the newest, linearizable: from the store
    "0"                      any state the cache has
    N, NotOlderThan          at least as new as N
    N, Exact                 as it was at N, or 410 once that is compacted
A continue token carries the revision of its first page, so that all pages of
one list show one moment.
"""

import asyncio
import base64
import binascii
from collections.abc import AsyncIterator, Sequence
from datetime import datetime
from typing import NamedTuple

import msgspec

from allot.api import Fields, Kind, Object, Request, Response, encode, errors, field
from allot.store import Compacted

from .cache import Caches
from .negotiate import wanted_form
from .registry import Served
from .render import Renderer, joined
from .repository import Repository, object_of, prefix_of
from .selection import Selection, parse_selection
from .target import Target
from .watching import Laggards, Sight, WatchOptions, stream

_LIST_CHUNK = 500
_TIMEOUT_DEFAULT_S = 1800.0
_REVISION_WAIT_S = 3.0
_REVISION_MAX = (1 << 63) - 1


class ListOptions(NamedTuple):
    limit: int
    token: str
    revision: int | None  # None: not given
    match: str  # "", Exact or NotOlderThan


class ContinueToken(msgspec.Struct, frozen=True):
    revision: int
    after: str


class Reader:
    def __init__(self, repository: Repository, caches: Caches, laggards: Laggards) -> None:
        self._repository = repository
        self._store = repository.store
        self._caches = caches
        self._laggards = laggards

    async def get(self, target: Target, served: Served, request: Request, renderer: Renderer) -> Response:
        asked = _revision(request.query.get("resourceVersion", ""))
        found = await self._repository.find(served.kind, target.namespace, target.name)
        if asked and (found.object is None or found.object.revision < asked):
            await self._wait_for(asked)
            found = await self._repository.find(served.kind, target.namespace, target.name)
        if found.object is None:
            raise not_found(served.kind, target.name)
        return Response(200, renderer.one(found.object))

    async def list(self, target: Target, served: Served, request: Request, renderer: Renderer) -> Response:
        query = request.query
        selection = parse_selection(served, lambda name: query.get(name, ""))
        options = _list_options(request)
        objects, revision, token, remaining = await self._select(
            served.kind, target.namespace, selection, options
        )
        if renderer.form.shape == "Table":
            more: Fields = {"continue": token} if token else {}
            if token and remaining > 0:
                more["remainingItemCount"] = remaining
            table = renderer.table(objects, str(revision), more)
            return Response(200, encode(table))
        head = renderer.list_head(revision, token, remaining)
        if len(objects) <= _LIST_CHUNK:
            items = [renderer.item(object) for object in objects]
            return Response(200, head + joined(items) + b"]}")
        return Response(200, stream=_list_body(head, objects, renderer))

    async def watch(self, target: Target, served: Served, request: Request, renderer: Renderer) -> Response:
        query = request.query
        selection = parse_selection(served, lambda name: query.get(name, ""), target.namespace)
        if target.name:
            raise errors.BadRequest("watch one object with fieldSelector=metadata.name=NAME")
        options, at_least = _watch_options(request)
        cache = await self._caches.of(served.kind)
        if at_least is None:
            at_least = await self._store.revision()
        if at_least > cache.revision and not await cache.reach(at_least, _REVISION_WAIT_S):
            raise _too_large(at_least, cache.revision)
        body = stream(cache, self._store, Sight(renderer, selection), options, self._laggards)
        return Response(200, stream=body)

    async def _select(
        self, kind: Kind, namespace: str, selection: Selection, options: ListOptions
    ) -> tuple[Sequence[Object], int, str, int]:
        """The objects, the revision they were read at, the token for more, and how many remain."""
        if options.token:
            return await self._page(kind, namespace, selection, options)
        if options.revision == 0 and options.match != "Exact" and not options.limit:
            return await self._from_cache(kind, namespace, selection)
        if options.revision:
            await self._wait_for(options.revision)
        return await self._page(kind, namespace, selection, options)

    async def _from_cache(
        self, kind: Kind, namespace: str, selection: Selection
    ) -> tuple[Sequence[Object], int, str, int]:
        cache = await self._caches.of(kind)
        prefix, revision = prefix_of(kind, namespace), cache.revision
        keys = sorted(key for key in cache.objects if key.startswith(prefix))
        objects = [cache.objects[key] for key in keys]
        return [o for o in objects if selection.accepts(o)] if selection else objects, revision, "", 0

    async def _page(
        self, kind: Kind, namespace: str, selection: Selection, options: ListOptions
    ) -> tuple[Sequence[Object], int, str, int]:
        prefix = prefix_of(kind, namespace)
        after, at = "", 0
        if options.token:
            token = _read_token(options.token)
            after, at = prefix + token.after, token.revision
        elif options.revision and (options.match == "Exact" or (options.limit and not options.match)):
            at = options.revision
        found: list[Object] = []
        while True:
            try:
                page = await self._store.range(prefix, after=after, limit=options.limit, at=at)
            except Compacted:
                raise errors.Expired(
                    "The provided continue parameter or resourceVersion is too old: "
                    "that state is no longer kept; start the list over"
                ) from None
            except ValueError:
                raise _too_large(at, await self._store.revision()) from None
            at = page.revision
            for count, entry in enumerate(page.entries, 1):
                object = object_of(entry)
                after = entry.key
                if not selection or selection.accepts(object):
                    found.append(object)
                    if options.limit and len(found) == options.limit:
                        more = page.more or count < len(page.entries)
                        left = page.remaining + len(page.entries) - count
                        if not more:
                            return found, at, "", 0
                        return found, at, _token(at, after, prefix), 0 if selection else left
            if not page.more:
                return found, at, "", 0
            await asyncio.sleep(0)

    async def _wait_for(self, revision: int) -> None:
        loop = asyncio.get_running_loop()
        deadline = loop.time() + _REVISION_WAIT_S
        while (current := await self._store.revision()) < revision:
            if loop.time() > deadline:
                raise _too_large(revision, current)
            await asyncio.sleep(0.05)


async def _list_body(head: bytes, objects: Sequence[Object], renderer: Renderer) -> AsyncIterator[bytes]:
    """In pieces, so that a long list neither holds the loop nor stands twice in memory."""
    yield head
    for start in range(0, len(objects), _LIST_CHUNK):
        chunk = joined([renderer.item(object) for object in objects[start : start + _LIST_CHUNK]])
        yield b"," + chunk if start else chunk
        await asyncio.sleep(0)
    yield b"]}"


def _list_options(request: Request) -> ListOptions:
    query = request.query
    limit, token = _number(query.get("limit", ""), "limit"), query.get("continue", "")
    text, match = query.get("resourceVersion", ""), query.get("resourceVersionMatch", "")
    revision = _revision(text) if text else None
    problem = _match_problem(match, revision, token, query.get("sendInitialEvents", ""), watching=False)
    if problem is not None:
        raise field.refusal("meta.k8s.io", "ListOptions", "", [problem])
    if token and revision:
        raise errors.BadRequest("specifying resource version is not allowed when using continue")
    return ListOptions(limit, token, revision, match)


def _watch_options(request: Request) -> tuple[WatchOptions, int | None]:
    """The options, and the revision the cache must have reached (None: the newest)."""
    query = request.query
    text, match = query.get("resourceVersion", ""), query.get("resourceVersionMatch", "")
    revision = _revision(text) if text else None
    initial = query.get("sendInitialEvents", "")
    problem = _match_problem(match, revision, "", initial, watching=True)
    if problem is not None:
        raise field.refusal("meta.k8s.io", "ListOptions", "", [problem])
    seconds = _number(query.get("timeoutSeconds", ""), "timeoutSeconds")
    bookmarks = query.get("allowWatchBookmarks") in ("true", "1")
    begins_with_state = initial == "true" or (initial == "" and not revision)
    options = WatchOptions(
        None if begins_with_state else (revision or None),
        bookmarks,
        initial == "true" and bookmarks,
        float(seconds) or _TIMEOUT_DEFAULT_S,
    )
    return options, revision if text else None


def _match_problem(
    match: str, revision: int | None, token: str, initial: str, *, watching: bool
) -> field.FieldError | None:
    path = field.Path("resourceVersionMatch")
    if initial and not watching:
        return field.forbidden(field.Path("sendInitialEvents"), "sendInitialEvents is forbidden for list")
    if initial and match != "NotOlderThan":
        return field.forbidden(
            path, "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan"
        )
    if not match:
        return None
    if match not in ("Exact", "NotOlderThan"):
        return field.unsupported(path, match, ["Exact", "NotOlderThan"])
    if watching:
        return None if initial else field.forbidden(path, "resourceVersionMatch is forbidden for watch")
    if token:
        return field.forbidden(path, "resourceVersionMatch is forbidden when continue is provided")
    if revision is None:
        return field.forbidden(path, "resourceVersionMatch is forbidden unless resourceVersion is provided")
    if match == "Exact" and revision == 0:
        return field.forbidden(path, 'resourceVersionMatch "exact" is forbidden for resourceVersion "0"')
    return None


def _revision(text: str) -> int:
    if not text:
        return 0
    if not text.isascii() or not text.isdigit() or len(text) > 19 or int(text) > _REVISION_MAX:
        raise field.refusal(
            "meta.k8s.io",
            "ListOptions",
            "",
            [field.invalid(field.Path("resourceVersion"), text[:64], "not a resource version")],
        )
    return int(text)


def _number(text: str, name: str) -> int:
    if not text:
        return 0
    if not text.lstrip("-").isdigit() or not text.isascii() or len(text) > 19:
        raise errors.BadRequest(f"{name} must be a whole number, not {text[:64]!r}")
    return max(0, int(text))


def _token(revision: int, after: str, prefix: str) -> str:
    token = ContinueToken(revision, after.removeprefix(prefix))
    return base64.urlsafe_b64encode(msgspec.json.encode(token)).decode().rstrip("=")


def _read_token(text: str) -> ContinueToken:
    try:
        decoded = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
        token = msgspec.json.decode(decoded, type=ContinueToken)
    except (binascii.Error, ValueError, msgspec.MsgspecError):
        raise errors.BadRequest("continue key is not valid: it does not come from this server") from None
    if not 0 < token.revision <= _REVISION_MAX:
        raise errors.BadRequest("continue key is not valid: bad revision")
    return token


def _too_large(asked: int, current: int) -> errors.Timeout:
    return errors.Timeout(
        f"Too large resource version: {asked}, current: {current}",
        causes=[errors.Cause("ResourceVersionTooLarge", "Too large resource version", "")],
        retry_after_s=1,
    )


def not_found(kind: Kind, name: str) -> errors.NotFound:
    return errors.NotFound(
        f'{kind.resource} "{name}" not found', group=kind.group, kind=kind.plural, name=name
    )


def renderer_of(served: Served, request: Request, now: datetime) -> Renderer:
    return Renderer(served, wanted_form(request), now, request.query.get("includeObject", "Metadata"))
