"""Puts the parts of the API server together."""

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping

from allot.api import (
    Kind,
    Request,
    Response,
    User,
    classic,
    compute,
    custom,
    encode,
    kinds,
    numeric,
    rbac,
    resource,
    transaction,
)
from allot.base import LoopWatch, Metrics
from allot.numeric import load_models
from allot.store import Store

from .admission import Admission, Plugin, podsecurity, policies
from .admission import pods as pod_rules
from .admission.accounts import born_with_account, service_account
from .admission.claimnames import names_of_classic_claims
from .admission.classnames import class_names_of_pods, class_names_of_quotas
from .admission.limitranges import LimitRanges
from .admission.limits import limits_of_pods, limits_of_volume_claims
from .admission.policies import Policies
from .admission.rights import no_escalation, node_restriction, own_pools
from .audit import Auditor
from .deciding.contexts import WriteContexts
from .deciding.expressions import CelExpressions
from .definitions import Definitions
from .discovery import Discovery
from .fairness.traffic import Traffic
from .health import checks
from .housekeeping import keep_house
from .lookups import Lookups
from .metering import METERED, Metering
from .observing import observed, revocation_observer, rights_observer, until_known
from .openapi import OpenApi
from .options import Options
from .pages import KUBERNETES_VERSION, Pages
from .reading.cache import Caches
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
from .server import Page, Server, Show, Verb
from .storing.pending import FrontStore
from .storing.repository import Repository, prefix_of
from .subresources.debugging import ephemeral_containers
from .subresources.finalizing import Finalizer
from .subresources.inside import Inside
from .subresources.logs import Logs
from .subresources.minting import Minter
from .subresources.podverbs import Binder, Evictor
from .subresources.reaching import Forward, Reaching
from .subresources.scaling import Scaling
from .telemetry import Telemetry
from .transactions import Transactions
from .writing.applying import Applier
from .writing.claims_of_pods import ClaimsOfPods
from .writing.collection import CollectionDeleter
from .writing.deleting import Deleter
from .writing.guard import Guards
from .writing.ownership import Ownership
from .writing.patching import Patcher
from .writing.quotas import Quotas
from .writing.writer import Writer

log = logging.getLogger(__name__)


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
        devices = (*classic.served(self.options.gates), *compute.served(self.options.gates))
        own = (transaction.TRANSACTION,) if self.options.transactions else ()
        self.registry = Registry((*kinds.ALL, *rbac.KINDS, *devices, *custom.KINDS, *own))
        self.caches = Caches(store)
        self._front = FrontStore(store)
        self.lookups = Lookups(self._front, self.caches, self.registry)
        self.authorizer = Authorizer()
        self.revocations = Revocations()
        self.metrics = Metrics()
        self.metrics_beside: Callable[[], Awaitable[str]] | None = None
        """What /metrics shows besides: of parts of the cluster that count in another process."""
        self.aside = Aside(self.metrics, threads=self.options.threads)
        self.traffic = Traffic(self.metrics)
        self.laggards = Laggards(self.options.bookmark_s)
        self._loop_watch = LoopWatch()
        self.ready = False
        self._authority = authority
        self._tokens: Tokens | None = None
        self._definitions: Definitions | None = None
        self._tasks: list[asyncio.Task[None]] = []
        self._repository = Repository(self._front)
        self._guard = Guards(self.lookups.node, load_models(self.options.gates, log.warning))
        contexts = WriteContexts(
            self._repository,
            self.caches,
            self.lookups.kind("", "namespaces"),
            self.clock,
            self.options.ids,
            self.options.gates,
            self.authorizer.authorize,
            CelExpressions(self.options.gates),
            self.lookups.resource_class,
        )
        policy, binding = (self.lookups.kind(policies.GROUP, kind.plural) for kind in kinds.POLICIES)
        judges = Policies(self._front, self.caches, self.registry, policy, binding, SERVER, self.aside)
        admission = self._admission(judges, policy)
        self._ownership = Ownership(self.registry)
        quotas = Quotas(self._repository, self.caches, self.lookups.kind, self.options.gates)
        self._claims_of_pods = ClaimsOfPods(
            self.lookups.kind("", "pods"),
            self.lookups.kind(*resource.RESOURCE_CLAIM_TEMPLATE.storage),
            self._front,
            self.registry,
            self.caches,
            contexts,
            self._ownership,
            quotas,
            self.lookups.resource_class,
            judges.are_none,
        )
        self.writer = Writer(
            self._repository,
            contexts,
            admission,
            self._ownership,
            self._guard,
            quotas,
            self._claims_of_pods if self.options.claims_with_pods else None,
        )
        self.deleter = Deleter(self._repository, contexts, admission, self._guard)
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
            self._shown(),
            self._pages(),
            Telemetry(self.metrics, self.laggards, self._loop_watch),
            self.aside,
            audit,
            Transactions(self._front, self._repository, self.registry, self._guard),
        )
        if audit is not None:
            audit.show(self.metrics)

    async def start(self) -> None:
        """Load what decisions need, plant what every cluster starts with, and begin housekeeping."""
        await self._seeder.plant([*namespaces(), *priority_classes()])
        await self._seeder.plant(accounts())
        followed = observed(self.registry)
        for kind in followed:
            if (kind.group, kind.plural) in Authorizer.OBSERVED:
                self.caches.made(kind).listeners.append(
                    rights_observer(kind, self.authorizer, self._repository.recent)
                )
        slices = self.lookups.kind("resource.k8s.io", "resourceslices")
        self._guard.pools.follow(self.caches.made(slices))
        capacities = [self.registry.kind(*numeric.NODE_RESOURCE_CAPACITY.storage)]
        for kind in (offered := [kind for kind in capacities if kind is not None]):
            self._guard.capacities.follow(self.caches.made(kind))
        definitions = Definitions(self.registry, self.caches, self._repository, self.deleter, self.writer)
        self.caches.made(custom.DEFINITION).listeners.append(definitions.observe)
        revoked = kinds.CREDENTIAL_REVOCATION
        self.caches.made(revoked).listeners.append(revocation_observer(self.revocations))
        classes = (*self.lookups.classes, *compute.served(self.options.gates), self.lookups.kind("", "nodes"))
        made_from = (self._claims_of_pods.templates,) if self.options.claims_with_pods else ()
        loaded = (*followed, custom.DEFINITION, revoked, *classes, *offered, *made_from)
        await asyncio.gather(*(self.caches.of(kind) for kind in loaded))
        self._definitions = definitions
        rights = bootstrap_objects()
        await self._seeder.plant(rights)
        await until_known(rights, self.registry, self.caches)
        policy = self.authorizer.policy
        house = keep_house(self.store, self.laggards, lambda: policy.revision, self.options.housekeeping_s)
        self._tasks.append(asyncio.create_task(house, name="housekeeping"))
        if self.options.watch_loop:
            self._tasks.append(asyncio.create_task(self._loop_watch.run(), name="loop watch"))
        self.ready = True

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
            self._tokens = Tokens(Keys(authority.token_keys), self.lookups.core)
        return self._tokens

    async def close(self) -> None:
        for task in self._tasks:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task
        if self._definitions is not None:
            await self._definitions.close()
        await self.caches.close()
        self.aside.close()

    def _admission(self, judges: Policies, policy: Kind) -> Admission:
        escalation = [no_escalation(self.authorizer, SERVER)]
        ranges = LimitRanges(self._front, self.caches, self.lookups.kind("", "limitranges"))
        accounts = self.lookups.kind("", "serviceaccounts")
        for_kind: dict[tuple[str, str], list[Plugin]] = {
            (rbac.GROUP, kind.plural): escalation for kind in rbac.KINDS
        }
        knows_classes = self.options.gates[compute.limits.GATE]
        find_class = self.lookups.compute_class if knows_classes else None
        class_names = class_names_of_pods(find_class, podsecurity.template_of)
        for_kind |= {kind: [class_names, podsecurity.pod_security] for kind in podsecurity.KINDS}
        for_kind["", "resourcequotas"] = [class_names_of_quotas(find_class)]
        for_kind["", "pods"] = [
            service_account(self.lookups.known_account, self.lookups.service_account),
            pod_rules.tolerations,
            pod_rules.priority(self.lookups.default_priority_class, self.lookups.priority_class),
            limits_of_pods(ranges.are_none, ranges.of),
            names_of_classic_claims(self.lookups.claim_template),
            class_names,
            podsecurity.pod_security,
        ]
        for_kind["", "persistentvolumeclaims"] = [limits_of_volume_claims(ranges.of)]
        for_kind["", "limitranges"] = [ranges.announce]
        for_kind[resource.RESOURCE_SLICE.storage] = [own_pools(self._guard.pools, self.lookups.core)]
        for_kind["", "namespaces"] = [
            born_with_account(accounts, self.options.ids),
            podsecurity.labels_of_namespaces(self.lookups.pods_of),
        ]
        for_kind[policies.GROUP, policy.plural] = [judges.check_policy]
        return Admission([node_restriction(self.lookups.core)], for_kind, [judges.judge])

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
        reaching = self._reaching()
        unserved = classic.unserved(self.options.gates)
        return {
            "status": {"get": get, "update": self._update, "patch": self._patcher.patch},
            "scale": {"get": scaling.get, "update": scaling.update, "patch": scaling.patch},
            "binding": {"create": binder.bind},
            "eviction": {"create": evictor.evict},
            "log": {"get": Logs(reaching).get},
            **Inside(reaching, self.authorizer.authorize, self.metrics).verbs(),
            "ephemeralcontainers": ephemeral_containers(reaching, get, self._update, self._patcher.patch),
            "finalize": {"update": Finalizer(self.writer, self._repository, unserved).finalize},
            "token": {"create": Minter(self.tokens, self.lookups.core, self.clock, self.options.ids).mint},
        }

    def _reaching(self) -> Reaching:
        return Reaching(self._repository, self.lookups.kind("", "nodes"), self._forward)

    def _shown(self) -> Mapping[tuple[str, str, str], Show]:
        nodes, pods = self.lookups.kind("", "nodes"), self.lookups.kind("", "pods")
        metering = Metering(self.caches, nodes, pods, self._reaching().ask, self.clock)
        return {(group, version, plural): metering.answer for group, version, plural, _, _ in METERED}

    def _pages(self) -> Page:
        openapi = OpenApi(self.registry, REVIEWS, KUBERNETES_VERSION)
        health = checks(self.store, self.caches, lambda: self.ready)
        pages = Pages(Discovery(self.registry, REVIEWS, METERED), self._shown_metrics, health, openapi.answer)

        async def answer(request: Request) -> Response | None:
            wanted = request.path in OPENID_PATHS and request.method in ("GET", "HEAD")
            document = openid_document(self.tokens(), request) if wanted else None
            return Response(200, encode(document)) if document else await pages.answer(request)

        return answer

    async def _shown_metrics(self) -> str:
        ours = self.metrics.text()
        return ours if self.metrics_beside is None else ours + await self.metrics_beside()
