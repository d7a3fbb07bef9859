"""get, list and watch.

Which state a read sees (S2)
    no resourceVersion       the newest, linearizable: from the store
    "0"                      any state the cache has
    N, NotOlderThan          at least as new as N
    N, Exact                 as it was at N, or 410 once that is compacted
A continue token carries the revision of its first page, so that all pages of
one list show one moment.
"""

from allot.api import Fields, Kind, Request, Response, encode, errors
from allot.base import Clock

from ..registry import Served
from ..requests.negotiate import wanted_form
from ..requests.pieces import Render, list_response
from ..requests.render import Renderer
from ..requests.target import Target
from ..requests.turns import LONG_BYTES
from ..storing.repository import Repository
from .cache import Caches
from .listing import Listed, Lister, too_large
from .listoptions import WATCH_S_MAX, read_list_options, read_revision, read_watch_options
from .rights import WatchRights
from .selection import parse_selection
from .watching import Laggards, Sight, stream

_REVISION_WAIT_S = 3.0
_GOLDEN_RATIO = 0.618034
"""Its multiples, modulo one, lie as far apart as can be."""
_ROW_OBJECTS = ("None", "Metadata", "Object")


class Reader:
    def __init__(self, repository: Repository, caches: Caches, laggards: Laggards) -> None:
        self._repository = repository
        self._store = repository.store
        self._caches = caches
        self._laggards = laggards
        self._watches = 0
        self._lister = Lister(repository.store, caches)

    async def get(self, target: Target, served: Served, request: Request, renderer: Renderer) -> Response:
        asked = read_revision(request.query.get("resourceVersion", ""))
        found = await self._repository.find(served.kind, target.namespace, target.name)
        if asked and (found.object is None or found.object.revision < asked):
            await self._lister.wait_for(asked)
            found = await self._repository.find(served.kind, target.namespace, target.name)
        if found.object is None:
            raise not_found(served.kind, target.name)
        if len(found.object.stored) > LONG_BYTES:
            await self._laggards.turns.take()
        return renderer.answer(found.object)

    async def list(self, target: Target, served: Served, request: Request, renderer: Renderer) -> Response:
        query = request.query
        selection = parse_selection(served, lambda name: query.get(name, ""))
        options = read_list_options(request)
        listed = await self._lister.select(served.kind, target.namespace, selection, options)
        if renderer.form.shape == "Table":
            head, tail, render = _table_frame(listed, renderer)
        else:
            head, tail = renderer.list_head(listed.revision, listed.token, listed.remaining), b"]}"
            render = renderer.items
        return await list_response(head, listed.objects, render, tail, self._laggards.turns)

    async def watch(
        self, target: Target, served: Served, request: Request, renderer: Renderer, rights: WatchRights
    ) -> Response:
        query = request.query
        selection = parse_selection(served, lambda name: query.get(name, ""), target.namespace)
        if target.name:
            raise errors.BadRequest("watch one object with fieldSelector=metadata.name=NAME")
        options, at_least = read_watch_options(request)
        cache = await self._caches.of(served.kind)
        if at_least is None:
            at_least = await self._store.revision()
        if at_least > cache.revision and not await cache.reach(at_least, _REVISION_WAIT_S):
            raise too_large(at_least, cache.revision)
        sight = Sight(renderer, selection, self._repository.recent)
        if not options.timeout_s:
            options = options._replace(timeout_s=self._lifetime_s())
        body = stream(cache, self._store, sight, options, rights, self._laggards)
        return Response(200, stream=body)

    def _lifetime_s(self) -> float:
        """Of a watch that names none. Those that began together do not end together: else all of them
        would be back at once."""
        self._watches += 1
        return WATCH_S_MAX * (0.5 + 0.5 * (self._watches * _GOLDEN_RATIO % 1.0))


def _table_frame(listed: Listed, renderer: Renderer) -> tuple[bytes, bytes, Render]:
    more: Fields = {"continue": listed.token} if listed.token else {}
    if listed.token and listed.remaining > 0:
        more["remainingItemCount"] = listed.remaining
    empty = encode(renderer.table([], str(listed.revision), more))
    return empty.removesuffix(b"]}"), b"]}", renderer.rows


def not_found(kind: Kind, name: str) -> errors.NotFound:
    return errors.NotFound(
        f'{kind.resource} "{name}" not found', group=kind.group, kind=kind.plural, name=name
    )


def renderer_of(served: Served, request: Request, clock: Clock) -> Renderer:
    include = request.query.get("includeObject") or "Metadata"
    if include not in _ROW_OBJECTS:
        # Forms are remembered by name: only those that exist.
        raise errors.BadRequest(f"includeObject is None, Metadata or Object, not {include[:64]!r}")
    return Renderer(served, wanted_form(request), clock, include)
