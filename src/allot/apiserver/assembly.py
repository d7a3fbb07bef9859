"""Puts the parts of the API server together."""

import asyncio
import contextlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from allot.api import (
    Fields,
    Gates,
    Kind,
    Request,
    Response,
    User,
    custom,
    encode,
    kinds,
    rbac,
    resource,
)
from allot.base import Clock, Ids, LoopWatch, Metrics, RandomIds, SystemClock
from allot.store import Store, StoreError

from .admission import Admission, Plugin, podsecurity, policies
from .admission import pods as pod_rules
from .admission.accounts import born_with_account, service_account
from .admission.limitranges import LimitRanges
from .admission.limits import limits_of_pods, limits_of_volume_claims
from .admission.policies import Policies
from .admission.rights import no_escalation, node_restriction, own_pools
from .audit import Auditor
from .deciding.contexts import Occasions
from .deciding.expressions import CelExpressions
from .definitions import Definitions
from .discovery import Discovery
from .fairness.traffic import Traffic
from .openapi import OpenApi
from .pages import KUBERNETES_VERSION, Check, Pages
from .reading.cache import Caches
from .reading.history import Change
from .reading.reader import Reader
from .reading.watching import Laggards
from .registry import Registry
from .requests.aside import Aside
from .requests.call import Call
from .reviewing import REVIEWS, reviews
from .security import (
    Authority,
    Authorizer,
    Revocations,
    Tokens,
    bootstrap_objects,
    openid_document,
)
from .security.openid import PATHS as OPENID_PATHS
from .seeding import SERVER, Seeder, accounts, namespaces, priority_classes
from .server import Page, Server, Verb
from .storing.repository import Repository, key_of, prefix_of
from .storing.stored import object_of
from .subresources.finalizing import Finalizer
from .subresources.inside import Inside
from .subresources.logs import Forward, Logs
from .subresources.minting import Minter
from .subresources.podverbs import Binder, Evictor
from .subresources.scaling import Scaling
from .telemetry import Telemetry
from .writing.applying import Applier
from .writing.collection import CollectionDeleter
from .writing.deleting import Deleter
from .writing.guard import Guards
from .writing.ownership import Ownership
from .writing.patching import Patcher
from .writing.quotas import Quotas
from .writing.writer import Writer

_HOUSEKEEPING_S = 1.0
_COMPACT_EVERY_S = 300.0
_KNOWN_WITHIN_S = 10.0
_LOOK_EVERY_S = 0.05
_TROUBLES_SHOWN_MAX = 8
_TROUBLE_LENGTH_MAX = 200


@dataclass(frozen=True, slots=True)
class Options:
    gates: Gates = field(default_factory=Gates)
    clock: Clock = field(default_factory=SystemClock)
    ids: Ids = field(default_factory=RandomIds)
    anonymous_health: bool = False  # let strangers see /healthz, /livez and /readyz
    watch_loop: bool = True  # measure how long the event loop is held
    threads: bool = True  # work on large requests aside


class ApiServer:
    """A server on a store: `start`, then `handle`; `close` lets everything go but the store."""

    def __init__(
        self,
        store: Store,
        options: Options | None = None,
        authority: Authority | None = None,
        forward: Forward | None = None,
        audit: Auditor | None = None,
    ) -> None:
        """`forward` is the way to the agents on the nodes, if there is one."""
        self.options = options or Options()
        self._forward = forward
        self.store = store
        self.clock = self.options.clock
        devices = resource.served(self.options.gates)
        self.registry = Registry((*kinds.ALL, *rbac.KINDS, *devices, *custom.KINDS))
        self.caches = Caches(store)
        self.authorizer = Authorizer()
        self.revocations = Revocations()
        self.metrics = Metrics()
        self.aside = Aside(self.metrics, threads=self.options.threads)
        self.traffic = Traffic(self.metrics)
        self.laggards = Laggards()
        self._loop_watch = LoopWatch()
        self.ready = False
        self._authority = authority
        self._tokens: Tokens | None = None
        self._definitions: Definitions | None = None
        self._tasks: list[asyncio.Task[None]] = []
        self._repository = Repository(store)
        self._guard = Guards()
        occasions = Occasions(
            self._repository,
            self.caches,
            self._kind("", "namespaces"),
            self.clock,
            self.options.ids,
            self.options.gates,
            self.authorizer.authorize,
            CelExpressions(self.options.gates),
        )
        admission = self._admission()
        self._ownership = Ownership(self.registry)
        quotas = Quotas(self._repository, self.caches, self._kind, self.options.gates)
        self.writer = Writer(self._repository, occasions, admission, self._ownership, self._guard, quotas)
        self.deleter = Deleter(self._repository, occasions, admission, self._guard)
        self._patcher = Patcher(self.writer, Applier(self.writer, self._ownership))
        self._reader = Reader(self._repository, self.caches, self.laggards)
        self._seeder = Seeder(self.registry, self._repository, self.writer, self.clock)
        self._server = Server(
            self.registry,
            self.authorizer,
            self._reader,
            self.clock,
            self._verbs(),
            self._subresources(),
            reviews(self.authorizer, self.tokens, self.clock),
            self._pages(),
            Telemetry(self.metrics, self.laggards, self._loop_watch),
            self.aside,
            audit,
        )
        if audit is not None:
            audit.show(self.metrics)

    async def start(self) -> None:
        """Load what decisions need, plant what every cluster starts with, and begin housekeeping."""
        await self._seeder.plant([*namespaces(), *priority_classes()])
        await self._seeder.plant(accounts())
        observed = self._observed()
        for kind in observed:
            if (kind.group, kind.plural) in Authorizer.OBSERVED:
                self.caches.made(kind).listeners.append(self._observer(kind))
        slices = self._kind("resource.k8s.io", "resourceslices")
        self._guard.pools.follow(self.caches.made(slices))
        definitions = Definitions(self.registry, self.caches, self._repository, self.deleter, self.writer)
        self.caches.made(custom.DEFINITION).listeners.append(definitions.observe)
        revoked = kinds.CREDENTIAL_REVOCATION
        self.caches.made(revoked).listeners.append(self._observe_revocation)
        await asyncio.gather(*(self.caches.of(kind) for kind in (*observed, custom.DEFINITION, revoked)))
        self._definitions = definitions
        rights = bootstrap_objects()
        await self._seeder.plant(rights)
        await self._until_known(rights)
        self._tasks.append(asyncio.create_task(self._keep_house(), name="housekeeping"))
        if self.options.watch_loop:
            self._tasks.append(asyncio.create_task(self._loop_watch.run(), name="loop watch"))
        self.ready = True

    async def _until_known(self, rights: Iterable[Fields]) -> None:
        """Who is told that the server is ready must not be refused because it has not heard of its own
        roles yet."""
        loop = asyncio.get_running_loop()
        end_s = loop.time() + _KNOWN_WITHIN_S
        for fields in rights:
            group, _, _ = fields["apiVersion"].rpartition("/")
            kind = self.registry.by_kind(group, fields["kind"])
            if kind is None:
                continue
            cache, metadata = self.caches.made(kind), fields["metadata"]
            key = key_of(kind, metadata.get("namespace", ""), metadata["name"])
            while key not in cache.objects and key not in cache.troubles and loop.time() < end_s:
                await cache.moved(_LOOK_EVERY_S)

    async def look_at(self, keys: Iterable[str]) -> None:
        """Load the kinds of these records, so that /readyz names those that cannot be read."""
        wanted = {key.rsplit("/", 1)[0] + "/" for key in keys}
        for kind in self.registry.kinds():
            if any(folder.startswith(prefix_of(kind)) for folder in wanted):
                await self.caches.of(kind)

    async def handle(self, request: Request, user: User) -> Response:
        return await self._server.handle(request, user)

    def tokens(self) -> Tokens:
        """What signs and verifies service account tokens.

        A server that was given no authority makes keys that live as long as it does.
        """
        if self._tokens is None:
            from .security.jwt import Keys  # dear to import, and many servers never see a token

            authority = self._authority or Authority.create(self.clock.now())
            self._tokens = Tokens(Keys(authority.token_keys), self.look_up)
        return self._tokens

    def look_up(self, resource: str, namespace: str, name: str) -> Mapping[str, Any] | None:
        """A core object as this process knows it: from the store if it is embedded, else the cache."""
        kind = self._kind("", resource)
        key = key_of(kind, namespace, name)
        entry = self.store.peek(key)
        found = object_of(entry, kind) if entry else self.caches.made(kind).objects.get(key)
        return found.fields if found else None

    async def close(self) -> None:
        for task in self._tasks:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task
        if self._definitions is not None:
            await self._definitions.close()
        await self.caches.close()
        self.aside.close()

    def _kind(self, group: str, plural: str) -> Kind:
        kind = self.registry.kind(group, plural)
        if kind is None:
            raise LookupError(f"{plural}.{group} is not served")
        return kind

    def _admission(self) -> Admission:
        escalation = [no_escalation(self.authorizer, SERVER)]
        ranges = LimitRanges(self.caches, self._kind("", "limitranges"))
        accounts = self._kind("", "serviceaccounts")
        for_kind: dict[tuple[str, str], list[Plugin]] = {
            (rbac.GROUP, kind.plural): escalation for kind in rbac.KINDS
        }
        for_kind |= {kind: [podsecurity.pod_security] for kind in podsecurity.KINDS}
        for_kind["", "pods"] = [
            service_account(self._service_account),
            pod_rules.tolerations,
            pod_rules.priority(self._priority_class),
            limits_of_pods(ranges.of),
            podsecurity.pod_security,
        ]
        for_kind["", "persistentvolumeclaims"] = [limits_of_volume_claims(ranges.of)]
        for_kind["", "limitranges"] = [ranges.announce]
        for_kind[resource.RESOURCE_SLICE.storage] = [own_pools(self._guard.pools, self.look_up)]
        for_kind["", "namespaces"] = [
            born_with_account(accounts, self.options.ids),
            podsecurity.labels_of_namespaces(self._pods_of),
        ]
        policy, binding = (self._kind(policies.GROUP, kind.plural) for kind in kinds.POLICIES)
        judges = Policies(self.caches, self.registry, policy, binding, SERVER)
        for_kind[policies.GROUP, policy.plural] = [judges.check_policy]
        return Admission([node_restriction(self.look_up)], for_kind, [judges.judge])

    async def _service_account(self, namespace: str, name: str) -> Mapping[str, Any] | None:
        """One that was created a moment ago may not have come round yet: the store is asked before no."""
        kind = self._kind("", "serviceaccounts")
        key = key_of(kind, namespace, name)
        found = self.caches.made(kind).objects.get(key)
        if found is None:
            entry = await self.store.get(key)
            found = object_of(entry, kind) if entry else None
        return found.fields if found is not None else None

    async def _pods_of(self, namespace: str) -> Sequence[Mapping[str, Any]]:
        kind = self._kind("", "pods")
        page = await self.store.range(prefix_of(kind, namespace))
        return [object_of(entry, kind).fields for entry in page.entries]

    async def _priority_class(self, name: str) -> Mapping[str, Any] | None:
        """The class of that name or, with none, the one for pods that name none.

        A class that was created a moment ago may not have come round yet, so the store is asked
        before a pod is refused for want of it.
        """
        kind = self._kind("scheduling.k8s.io", "priorityclasses")
        known = self.caches.made(kind).objects
        if not name:
            return pod_rules.global_default(one.fields for one in known.values())
        key = key_of(kind, "", name)
        found = known.get(key)
        if found is None:
            entry = await self.store.get(key)
            found = object_of(entry, kind) if entry else None
        return found.fields if found is not None else None

    def _observed(self) -> list[Kind]:
        """Whose objects decide what callers may do, or what tokens are good for."""
        wanted = [*sorted(Authorizer.OBSERVED), ("scheduling.k8s.io", "priorityclasses")]
        core = ("limitranges", "nodes", "resourcequotas", "secrets", "serviceaccounts")
        wanted += [("", name) for name in core]
        wanted += [(kind.group, kind.plural) for kind in kinds.POLICIES]
        return [kind for key in wanted if (kind := self.registry.kind(*key))]

    def _observer(self, kind: Kind) -> Callable[[Change], None]:
        def observe(change: Change) -> None:
            if kind.plural == "pods" and not _was_or_is_bound(change):
                return
            fields: Mapping[str, Any] | None = None
            if change.type != "DELETED":
                # What is decoded anew is so for the moment only: kept, all pods would fill the memory.
                written = self._repository.recent.at(change.key, change.revision)
                fields = written.fields if written is not None else change.object.fresh()
            who = kind.group, kind.plural, change.object.namespace, change.object.name
            try:
                self.authorizer.observe(*who, fields)
            except Exception:
                self.authorizer.observe(*who, None)  # what cannot be read gives nobody any rights
                raise

        return observe

    def _observe_revocation(self, change: Change) -> None:
        fields = None if change.type == "DELETED" else change.object.fields
        self.revocations.observe(change.object.name, fields)

    def _verbs(self) -> Mapping[str, Verb]:
        async def create(call: Call) -> Response:
            return (await self.writer.create(call)).response(call)

        return {
            "create": create,
            "update": self._update,
            "patch": self._patcher.patch,
            "delete": self.deleter.delete,
            "deletecollection": CollectionDeleter(self._repository, self.deleter).delete,
        }

    async def _update(self, call: Call) -> Response:
        return (await self.writer.update(call)).response(call)

    def _subresources(self) -> Mapping[str, Mapping[str, Verb]]:
        async def get(call: Call) -> Response:
            return await self._reader.get(call.target, call.served, call.request, call.renderer)

        binder = Binder(self.writer, self.clock)
        scaling = Scaling(self._repository, self.writer)
        budgets = self.registry.kind("policy", "poddisruptionbudgets")
        evictor = Evictor(self._repository, self.deleter, budgets, self.clock)
        return {
            "status": {"get": get, "update": self._update, "patch": self._patcher.patch},
            "scale": {"get": scaling.get, "update": scaling.update, "patch": scaling.patch},
            "binding": {"create": binder.bind},
            "eviction": {"create": evictor.evict},
            "log": {"get": Logs(self._repository, self._kind("", "nodes"), self._forward).get},
            **Inside(self._repository, self._kind("", "nodes")).verbs(),
            "finalize": {"update": Finalizer(self.writer).finalize},
            "token": {"create": Minter(self.tokens, self.look_up, self.clock, self.options.ids).mint},
        }

    def _pages(self) -> Page:
        openapi = OpenApi(self.registry, REVIEWS, KUBERNETES_VERSION)
        pages = Pages(Discovery(self.registry, REVIEWS), self.metrics, self._checks(), openapi.answer)

        async def answer(request: Request) -> Response | None:
            wanted = request.path in OPENID_PATHS and request.method in ("GET", "HEAD")
            document = openid_document(self.tokens(), request) if wanted else None
            return Response(200, encode(document)) if document else await pages.answer(request)

        return answer

    def _checks(self) -> Mapping[str, Check]:
        async def ping() -> str | None:
            return None

        async def store() -> str | None:
            if trouble := self.store.trouble():
                return trouble
            try:
                await self.store.revision()
            except StoreError as away:
                return str(away)
            return None

        async def started() -> str | None:
            return None if self.ready else "still starting"

        async def objects() -> str | None:
            troubles = self.caches.troubles()
            shown = [f"{key} is passed over: {why[:_TROUBLE_LENGTH_MAX]}" for key, why in troubles.items()]
            more = len(shown) - _TROUBLES_SHOWN_MAX
            return "; ".join(shown[:_TROUBLES_SHOWN_MAX]) + (f"; and {more} more" if more > 0 else "") or None

        return {"ping": ping, "store": store, "started": started, "objects": objects}

    async def _keep_house(self) -> None:
        """Cut off watchers that do not read or may no longer watch; compact history of some minutes ago."""
        loop = asyncio.get_running_loop()
        old_revision, compact_at = 0, loop.time()
        while True:
            self.laggards.cut_off()
            await self.laggards.show_out(loop.time())
            if loop.time() >= compact_at:
                with contextlib.suppress(StoreError):  # it is away: next time
                    if old_revision:
                        await self.store.compact(old_revision)
                    old_revision = await self.store.revision()
                compact_at = loop.time() + _COMPACT_EVERY_S
            await asyncio.sleep(_HOUSEKEEPING_S)


def _was_or_is_bound(change: Change) -> bool:
    """Pods without a node give nobody any rights, and most changes are about them."""
    previous = change.previous.stored if change.previous else b""
    return b'"nodeName"' in change.object.stored or b'"nodeName"' in previous
