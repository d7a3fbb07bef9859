"""Watches of parameter objects, which begin when a class names their kind and end when none does any more.

One list and one watch a kind, however many pods are scheduled. A kind that is not served, or that the
scheduler may not read, is looked for again after a while; meanwhile pods are told why they wait. So is one
whose definition or rights go while it is watched. The role and the binding with which the scheduler may
read a vendor's kind come with the driver's deployment.

Nobody waits here for a list: a kind whose list never comes is no concern of the others.
"""

import asyncio
import logging
from collections.abc import Callable, Collection
from typing import NamedTuple

from allot.api import errors
from allot.base import Clock
from allot.client import Client
from allot.informers import (
    Again,
    Change,
    Informer,
    Informers,
    Reconciler,
    ResourceId,
    SyncState,
    Telemetry,
    discover,
)

from .parameters import NOT_READ_YET, ParameterKind, Standing

log = logging.getLogger(__name__)

RETRY_S = 5.0
"""Between two looks at a kind: at the server while it cannot be read, else at what its informer reports."""
VERBS = ("list", "watch")


class KindTold(NamedTuple):
    """How a kind of parameters stands now; None: no class names it."""

    kind: ParameterKind
    standing: Standing | None


class _Watch(NamedTuple):
    informer: Informer
    stop: Callable[[], None]
    read: asyncio.Task[None]  # ends when the first list is there


class ParameterWatches:
    def __init__(
        self,
        client: Client,
        informers: Informers,
        clock: Clock,
        telemetry: Telemetry,
        tell: Callable[[KindTold], None],
        hear: Callable[[ResourceId, Change], None],
    ) -> None:
        """`tell` is told how kinds stand, `hear` what happens to their objects."""
        self._client = client
        self._informers = informers
        self._report = tell
        self._hear = hear
        self._wanted: frozenset[ParameterKind] = frozenset()
        self._watches: dict[ParameterKind, _Watch] = {}
        self._told: dict[ParameterKind, Standing | None] = {}
        self._work: Reconciler[ParameterKind] = Reconciler(
            "scheduler_parameters", self._follow, clock, telemetry, workers=2
        )

    def want(self, kinds: Collection[ParameterKind]) -> None:
        """Classes name these, and no others."""
        before, self._wanted = self._wanted, frozenset(kinds)
        for kind in sorted(before ^ self._wanted):
            if kind in self._wanted and kind not in self._watches:
                self._tell(kind, NOT_READ_YET)
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
            self._tell(kind, None)
            return None
        watch = self._watches.get(kind)
        standing = await self._begin(kind) if watch is None else await self._state(kind, watch.informer)
        if kind in self._wanted:
            self._tell(kind, standing)
        return Again(RETRY_S)

    async def _begin(self, kind: ParameterKind) -> Standing:
        what = await resource_of(self._client, kind)
        if isinstance(what, Standing):
            return what
        if why := await self._refusal(what):
            return Standing(what, f"cannot be read: {why}")
        informer = self._informers.use(what)
        stop = informer.handle(lambda change: self._hear(what, change))
        read = asyncio.create_task(self._when_read(kind, informer), name=f"first list of {what}")
        self._watches[kind] = _Watch(informer, stop, read)
        return _standing(informer)

    async def _when_read(self, kind: ParameterKind, informer: Informer) -> None:
        await informer.wait_synced()
        self._work.add(kind)

    async def _state(self, kind: ParameterKind, informer: Informer) -> Standing:
        """Of a kind that is watched."""
        if informer.synced and not informer.served:
            self._end(kind)
            return await self._begin(kind)
        if informer.report.state is SyncState.FAILING and (why := await self._refusal(informer.what)):
            self._end(kind)
            self._tell(kind, None)  # what it had may change while nobody looks
            return Standing(informer.what, f"cannot be read: {why}")
        return _standing(informer)

    def _end(self, kind: ParameterKind) -> None:
        watch = self._watches.pop(kind)
        watch.read.cancel()
        watch.stop()
        self._informers.leave(watch.informer)

    def _tell(self, kind: ParameterKind, standing: Standing | None) -> None:
        if standing != self._told.get(kind):
            self._told[kind] = standing
            self._report(KindTold(kind, standing))
        if standing is None:
            self._told.pop(kind, None)

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
        objects = self._client.resource(what.group, what.version, what.plural, namespaced=what.namespaced)
        try:
            if verb == "list":
                await objects.list(limit=1)
            else:
                async for _ in objects.watch(timeout_s=1):
                    break
        except errors.Forbidden as refused:
            return str(refused)
        where = f"{what.plural}.{what.group}" if what.group else what.plural
        return f"it may not {verb} {where}"


def _standing(informer: Informer) -> Standing:
    if informer.synced:
        return Standing(informer.what)
    report, why = informer.report, NOT_READ_YET.why_not
    failing = f"{why}: {report.problem}" if report.state is SyncState.FAILING else why
    return Standing(informer.what, failing)


async def resource_of(client: Client, kind: ParameterKind) -> ResourceId | Standing:
    """Where its objects are, or why they are nowhere."""
    served = (await discover(client)).of_kind(f"{kind.group}/any", kind.kind)
    if served is None:
        return Standing(None, f"is not served: the custom resource definition of {kind} is not installed")
    if kind.version and kind.version not in served.versions:
        return Standing(None, f"is not served in version {kind.version}")
    what = served.what
    return ResourceId(what.group, kind.version or what.version, what.plural, what.namespaced)
