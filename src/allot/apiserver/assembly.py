"""Puts the parts of the API server together."""

import asyncio
import contextlib
from collections.abc import Mapping
from dataclasses import dataclass, field

from allot.api import Gates, Kind, Request, Response, User, kinds, rbac, resource
from allot.base import Clock, Ids, Metrics, RandomIds, SystemClock
from allot.store import Store, StoreError

from .admission import Admission
from .cache import Caches
from .call import Call
from .collection import CollectionDeleter
from .deleting import Deleter
from .discovery import Discovery
from .expressions import CelExpressions
from .history import Change
from .occasions import Occasions
from .ownership import Ownership
from .pages import Pages
from .podverbs import Binder, Evictor
from .reading import Reader
from .registry import Registry
from .repository import Repository
from .security import bootstrap
from .security.authorizer import Authorizer
from .seeding import Seeder, namespaces
from .server import Server, Verb
from .watching import Laggards
from .writing import Writer

_HOUSEKEEPING_S = 1.0
_COMPACT_EVERY_S = 300.0


@dataclass(frozen=True, slots=True)
class Options:
    gates: Gates = field(default_factory=Gates)
    clock: Clock = field(default_factory=SystemClock)
    ids: Ids = field(default_factory=RandomIds)


class ApiServer:
    """A server on a store: `start`, then `handle`; `close` lets everything go but the store."""

    def __init__(self, store: Store, options: Options | None = None) -> None:
        options = options or Options()
        self.store = store
        self.clock = options.clock
        self.registry = Registry((*kinds.ALL, *rbac.KINDS, *getattr(resource, "KINDS", ())))
        self.caches = Caches(store)
        self.authorizer = Authorizer()
        self.metrics = Metrics()
        self.laggards = Laggards()
        self.ready = False
        repository = Repository(store)
        occasions = Occasions(
            repository,
            self.caches,
            self._kind("", "namespaces"),
            options.clock,
            options.ids,
            options.gates,
            self.authorizer.authorize,
            CelExpressions(options.gates),
        )
        admission = Admission([], {})
        self.writer = Writer(repository, occasions, admission, Ownership())
        self.deleter = Deleter(repository, occasions, admission)
        self._seeder = Seeder(self.registry, repository, self.writer, options.clock)
        self._tasks: list[asyncio.Task[None]] = []
        self._server = Server(
            self.registry,
            self.authorizer,
            Reader(repository, self.caches, self.laggards),
            options.clock,
            self._verbs(repository),
            self._subresources(repository),
            {},
            Pages(Discovery(self.registry, ()), self.metrics, self._checks(), lambda request: None).answer,
        )

    async def start(self) -> None:
        """Load what decisions need, plant what every cluster starts with, and begin housekeeping."""
        await self._seeder.plant(namespaces())
        for kind in self._observed():
            self.caches.made(kind).listeners.append(self._observer(kind))
        await asyncio.gather(*(self.caches.of(kind) for kind in self._observed()))
        await self._seeder.plant(bootstrap.objects())
        self._tasks.append(asyncio.create_task(self._keep_house(), name="housekeeping"))
        self.ready = True

    async def handle(self, request: Request, user: User) -> Response:
        return await self._server.handle(request, user)

    async def close(self) -> None:
        for task in self._tasks:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task
        await self.caches.close()

    def _kind(self, group: str, plural: str) -> Kind:
        kind = self.registry.kind(group, plural)
        if kind is None:
            raise LookupError(f"{plural}.{group} is not served")
        return kind

    def _observed(self) -> list[Kind]:
        """Whose objects decide what callers may do."""
        wanted = [(rbac.GROUP, kind.plural) for kind in rbac.KINDS]
        wanted += [("", "pods"), ("", "persistentvolumes"), ("resource.k8s.io", "resourceslices")]
        return [kind for key in wanted if (kind := self.registry.kind(*key))]

    def _observer(self, kind: Kind):  # type: ignore[no-untyped-def]
        def observe(change: Change) -> None:
            fields = None if change.type == "DELETED" else change.object.fields
            self.authorizer.observe(
                kind.group, kind.plural, change.object.namespace, change.object.name, fields
            )

        return observe

    def _verbs(self, repository: Repository) -> Mapping[str, Verb]:
        async def create(call: Call) -> Response:
            return (await self.writer.create(call)).response(call)

        async def update(call: Call) -> Response:
            return (await self.writer.update(call)).response(call)

        collection = CollectionDeleter(repository, self.deleter)
        return {
            "create": create,
            "update": update,
            "delete": self.deleter.delete,
            "deletecollection": collection.delete,
        }

    def _subresources(self, repository: Repository) -> Mapping[str, Mapping[str, Verb]]:
        async def update(call: Call) -> Response:
            return (await self.writer.update(call)).response(call)

        async def get(call: Call) -> Response:
            return await reader.get(call.target, call.served, call.request, call.renderer)

        reader = Reader(repository, self.caches, self.laggards)
        binder = Binder(self.writer, self.clock)
        evictor = Evictor(
            repository, self.deleter, self.registry.kind("policy", "poddisruptionbudgets"), self.clock
        )
        return {
            "status": {"get": get, "update": update},
            "binding": {"create": binder.bind},
            "eviction": {"create": evictor.evict},
        }

    def _checks(self):  # type: ignore[no-untyped-def]
        async def ping() -> str | None:
            return None

        async def store() -> str | None:
            try:
                await self.store.revision()
            except StoreError as away:
                return str(away)
            return None

        async def started() -> str | None:
            return None if self.ready else "still starting"

        return {"ping": ping, "store": store, "started": started}

    async def _keep_house(self) -> None:
        """Cut off watchers that do not read; compact history older than a few minutes."""
        loop = asyncio.get_running_loop()
        old_revision, compact_at = await self.store.revision(), loop.time() + _COMPACT_EVERY_S
        while True:
            await asyncio.sleep(_HOUSEKEEPING_S)
            self.laggards.cut_off()
            if loop.time() >= compact_at:
                with contextlib.suppress(StoreError):
                    await self.store.compact(old_revision)
                    old_revision = await self.store.revision()
                compact_at = loop.time() + _COMPACT_EVERY_S
