"""Watches of parameter objects, which begin when a class names their kind and end when none does any more.

One list and one watch a kind, however many pods are scheduled. A kind that is not served, or that the
scheduler may not read, is looked for again after a while; meanwhile pods are told why they wait. The role and
the binding with which the scheduler may read a vendor's kind come with the driver's deployment.
"""

import logging
from collections.abc import Callable, Collection
from typing import NamedTuple

from allot.api import errors
from allot.base import Clock
from allot.client import Client
from allot.informers import Again, Handler, Informer, Informers, Reconciler, ResourceId, Telemetry, discover

from .parameters import NOT_READ_YET, ParameterKind, Standing

log = logging.getLogger(__name__)

RETRY_S = 5.0
VERBS = ("list", "watch")


class KindTold(NamedTuple):
    """How a kind of parameters stands now; None: no class names it."""

    kind: ParameterKind
    standing: Standing | None


class _Watch(NamedTuple):
    informer: Informer
    stop: Callable[[], None]


class ParameterWatches:
    def __init__(
        self,
        client: Client,
        informers: Informers,
        clock: Clock,
        telemetry: Telemetry,
        tell: Callable[[KindTold], None],
        listener: Callable[[ResourceId], Handler],
    ) -> None:
        """`tell` hears how kinds stand, `listener` makes a handler of a resource's changes."""
        self._client = client
        self._informers = informers
        self._tell = tell
        self._listener = listener
        self._wanted: frozenset[ParameterKind] = frozenset()
        self._watches: dict[ParameterKind, _Watch] = {}
        self._work: Reconciler[ParameterKind] = Reconciler(
            "scheduler_parameters", self._follow, clock, telemetry, workers=2
        )

    def want(self, kinds: Collection[ParameterKind]) -> None:
        """Classes name these, and no others."""
        before, self._wanted = self._wanted, frozenset(kinds)
        for kind in sorted(before ^ self._wanted):
            if kind in self._wanted:
                self._tell(KindTold(kind, NOT_READ_YET))
            self._work.add(kind)

    async def run(self) -> None:
        try:
            await self._work.run()
        finally:
            for kind in list(self._watches):
                self._end(kind)

    async def _follow(self, kind: ParameterKind) -> Again | None:
        if kind not in self._wanted:
            if kind in self._watches:
                self._end(kind)
            self._tell(KindTold(kind, None))
            return None
        if kind in self._watches:
            return None
        what = await self._resource(kind)
        if what is None:
            why = f"is not served: the custom resource definition of {kind} is not installed"
            self._tell(KindTold(kind, Standing(None, why)))
            return Again(RETRY_S)
        if why := await self._refusal(what):
            self._tell(KindTold(kind, Standing(what, f"cannot be read: {why}")))
            return Again(RETRY_S)
        informer = self._informers.use(what)
        self._watches[kind] = _Watch(informer, informer.handle(self._listener(what)))
        await self._informers.synced(informer)
        if kind in self._watches:
            self._tell(KindTold(kind, Standing(what)))
        return None

    def _end(self, kind: ParameterKind) -> None:
        watch = self._watches.pop(kind)
        watch.stop()
        self._informers.leave(watch.informer)

    async def _resource(self, kind: ParameterKind) -> ResourceId | None:
        served = (await discover(self._client)).of_kind(f"{kind.group}/any", kind.kind)
        if served is None:
            return None
        what = served.what
        return ResourceId(what.group, kind.version or what.version, what.plural, what.namespaced)

    async def _refusal(self, what: ResourceId) -> str:
        """Why its objects may not be read, as the server says it, with who, which verb and which resource."""
        reviews = self._client.resource(
            "authorization.k8s.io", "v1", "selfsubjectaccessreviews", namespaced=False
        )
        for verb in VERBS:
            wanted = {"group": what.group, "version": what.version, "resource": what.plural, "verb": verb}
            kind = {"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview"}
            answer = await reviews.create({**kind, "spec": {"resourceAttributes": wanted}})
            if not (answer.fields.get("status") or {}).get("allowed"):
                return await self._in_words(what, verb)
        return ""

    async def _in_words(self, what: ResourceId, verb: str) -> str:
        if verb == "list":
            listing = self._client.resource(what.group, what.version, what.plural, namespaced=what.namespaced)
            try:
                await listing.list(limit=1)
            except errors.Forbidden as refused:
                return str(refused)
        where = f"{what.plural}.{what.group}" if what.group else what.plural
        return f"the scheduler may not {verb} {where}"
