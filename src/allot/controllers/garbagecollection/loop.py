"""Asks the server how things stand, then deletes, disowns or lets go."""

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Coroutine, Iterable, Sequence
from typing import Any, NamedTuple

from allot.api import Object, errors, meta
from allot.client import Resource
from allot.informers import WARNING, Again, Reconciler, ResourceId

from ..controller import Loop, World
from .graph import FOREGROUND, ORPHAN, Graph, Member
from .monitors import Monitors
from .plan import Delete, Disown, OwnerState, decide, unblocked, without_finalizer, without_owners

_NOT_SYNCED_S = 0.5
_UNSEEN_OWNER_S = 30.0
"""An owner that is there and that no cache shows is asked for again: its end might be missed."""
_AT_ONCE = 16
_GONE_MAX = 10_000


class Owner(NamedTuple):
    """Where a reference says that its owner is. What was not there with that uid never will be."""

    what: ResourceId
    namespace: str
    name: str
    uid: str


def make(world: World) -> Sequence[Loop]:
    collector = Collector(world)
    return [collector.monitors, collector.loop]


class Collector:
    def __init__(self, world: World) -> None:
        self._world = world
        self.graph = Graph()
        self.monitors = Monitors(world, self.graph, self._look_at)
        self.loop: Reconciler[str] = Reconciler(
            "garbage_collector_graph_changes", self.reconcile, world.clock, world.telemetry
        )
        self._gone: OrderedDict[Owner, None] = OrderedDict()

    def _look_at(self, uids: Iterable[str]) -> None:
        for uid in uids:
            self.loop.add(uid)

    async def reconcile(self, uid: str) -> Again | None:
        member = self.graph.get(uid)
        if member is None:
            return None
        if member.is_orphaning:
            return await self._orphan(member)
        if member.is_waiting:
            return await self._wait(member)
        if member.is_deleting or self.graph.is_settled(member):
            return None  # the caches may be behind, and then they will say so
        return await self._collect(member)

    # -- garbage --------------------------------------------------------------------------------

    async def _collect(self, member: Member) -> Again | None:
        live = await self._read(member)
        if live is None or self.monitors.catalogue is None:
            return None
        now = Member.of(live, member.what, member.kind)
        states = [await self._state(now, owner, live) for owner in now.owners]
        action = decide(now, states, self.graph.dependents(now.uid))
        match action:
            case Disown(uids):
                await self._patch(now, without_owners(live, uids))
            case Delete(propagation, unblocks):
                if unblocks:
                    live = await self._patch(now, unblocked(live)) or live
                await self._resource(now.what).delete(
                    now.name,
                    now.namespace,
                    uid=now.uid,
                    resource_version=live.resource_version,
                    propagation=propagation,
                )
        unseen = any(
            state is OwnerState.THERE and self.graph.owner(owner, now) is None
            for owner, state in zip(now.owners, states, strict=True)
        )
        return Again(_UNSEEN_OWNER_S) if unseen else None

    async def _state(self, member: Member, reference: meta.OwnerReference, live: Object) -> OwnerState:
        """How an owner stands: by the caches if it is there, by the server's word if it is not."""
        known = self.graph.owner(reference, member)
        if known is not None and not known.is_waiting:
            return OwnerState.THERE
        assert self.monitors.catalogue is not None
        served = self.monitors.catalogue.of_kind(reference.api_version, reference.kind)
        if served is None:
            return OwnerState.UNKNOWN
        if served.what.namespaced and not member.namespace:
            self._complain(live, reference, "is in a namespace, and this object is not")
            return OwnerState.UNKNOWN
        namespace = member.namespace if served.what.namespaced else ""
        owner = Owner(served.what, namespace, reference.name, reference.uid)
        state = await self._ask(owner)
        elsewhere = self.graph.get(reference.uid)
        if state is OwnerState.GONE and elsewhere is not None and elsewhere.namespace != namespace:
            self._complain(live, reference, f"does not exist in namespace {namespace!r}")
        return state

    async def _ask(self, owner: Owner) -> OwnerState:
        if owner in self._gone:
            return OwnerState.GONE
        try:
            live = await self._resource(owner.what).get(owner.name, owner.namespace)
        except errors.NotFound as missing:
            if missing.name != owner.name:  # not the object is missing but the resource
                self.monitors.ask()
                return OwnerState.UNKNOWN
            return self._note_gone(owner)
        if live.uid != owner.uid:
            return self._note_gone(owner)
        is_waiting = Member.of(live, owner.what, live.kind).is_waiting
        return OwnerState.WAITING if is_waiting else OwnerState.THERE

    def _note_gone(self, owner: Owner) -> OwnerState:
        self._gone[owner] = None
        while len(self._gone) > _GONE_MAX:
            self._gone.popitem(last=False)
        return OwnerState.GONE

    def _complain(self, about: Object, reference: meta.OwnerReference, why: str) -> None:
        named = f"{reference.api_version} {reference.kind} {reference.name} (uid {reference.uid})"
        self._world.events.record(about, WARNING, "OwnerRefInvalidNamespace", f"the owner {named} {why}")

    # -- owners that are leaving ----------------------------------------------------------------

    async def _orphan(self, owner: Member) -> Again | None:
        """First nobody names the owner any more, then it may go: a dependent that still names it
        when it is gone would be taken for garbage."""
        if not self.monitors.synced:
            return Again(_NOT_SYNCED_S)

        async def disown(dependent: Member) -> None:
            live = await self._read(dependent)
            if live is not None:
                await self._patch(dependent, without_owners(live, (owner.uid,)))

        await _each(disown, self.graph.dependents(owner.uid))
        await self._let_go(owner, ORPHAN)
        return None

    async def _wait(self, owner: Member) -> Again | None:
        """An owner that is deleted in the foreground goes when nothing holds it back."""
        if not self.monitors.synced:
            return Again(_NOT_SYNCED_S)
        self._look_at(one.uid for one in self.graph.dependents(owner.uid) if not one.is_deleting)
        if not self.graph.blocking(owner.uid):
            await self._let_go(owner, FOREGROUND)
        return None

    async def _let_go(self, owner: Member, finalizer: str) -> None:
        live = await self._read(owner)
        if live is not None:
            await self._patch(owner, without_finalizer(live, finalizer))

    # -- the server -----------------------------------------------------------------------------

    def _resource(self, what: ResourceId) -> Resource:
        return self._world.client.resource(what.group, what.version, what.plural, namespaced=what.namespaced)

    async def _read(self, member: Member) -> Object | None:
        """The object as it is now; None if it is gone or another has its name."""
        try:
            live = await self._resource(member.what).get(member.name, member.namespace)
        except errors.NotFound:
            return None
        return live if live.uid == member.uid else None

    async def _patch(self, member: Member, patch: dict[str, Any] | None) -> Object | None:
        if patch is None:
            return None
        try:
            return await self._resource(member.what).patch(member.name, patch, member.namespace)
        except errors.NotFound:
            return None


async def _each(do: Callable[[Member], Coroutine[Any, Any, None]], members: Sequence[Member]) -> None:
    """For every one of them, a few at a time. All are tried before the first failure is told."""
    for start in range(0, len(members), _AT_ONCE):
        batch = members[start : start + _AT_ONCE]
        for outcome in await asyncio.gather(*map(do, batch), return_exceptions=True):
            if outcome is not None:
                raise outcome
