"""A pod at a time: which nodes do not suit its claims, and the allocation once a node is selected.

    the pod is gone, or the PodScheduling is not its own      nothing
    no claim of ours is pending                               nothing
    a node is selected, and suits every claim of ours         allocate them together, for that node
    else                                                      say which nodes do not suit, and again later

A pod's claims of this driver are judged together. An allocation is answered by the claim itself; where it
was refused, the node joins those that do not suit.
"""

from collections.abc import Mapping

from allot.api import Object, errors
from allot.base import Clock
from allot.client import Client
from allot.informers import (
    Added,
    Again,
    Change,
    Deleted,
    Index,
    Informer,
    Key,
    Reconciler,
    Telemetry,
    Updated,
)

from . import answers
from .allocating import Allocating
from .answers import Pending
from .asking import Asking
from .calling import Calls
from .claims import Claims
from .refreshing import LIMITS, WORKERS, Refreshing
from .values import NotUsable
from .views import SCHEDULINGS, Pod, claim_of, class_of, is_as_new, pod_uid, scheduling_of


class SchedulingLoop:
    def __init__(
        self,
        driver: str,
        client: Client,
        claims: Claims,
        classes: Informer,
        schedulings: Informer,
        asking: Asking,
        calls: Calls,
        allocating: Allocating,
        refreshing: Refreshing,
        clock: Clock,
        telemetry: Telemetry,
    ) -> None:
        self._driver, self._claims, self._classes, self._schedulings = driver, claims, classes, schedulings
        self._asking, self._calls = asking, calls
        self._allocating, self._refreshing = allocating, refreshing
        self._pods = client.resource("", "v1", "pods")
        self._write = client.resource(SCHEDULINGS.group, SCHEDULINGS.version, SCHEDULINGS.plural)
        self._answered: dict[Key, Object] = {}  # PodSchedulings as written here
        self._known: dict[Key, Pod] = {}  # pods by their PodScheduling: what they ask for never changes
        self._named: dict[Key, set[Key]] = {}  # claims that pods name -> those pods
        self.loop = Reconciler(
            "driver pods", self.reconcile, clock, telemetry, workers=WORKERS, limits=LIMITS
        )

    def heard(self, change: Change) -> None:
        key = Key.of(change.object)
        if isinstance(change, Deleted):
            self._forget(key)
            self._refreshing.settled(self.loop, key)
        elif not self._is_own_news(key, change.object):
            self.loop.add(key)

    def claim_heard(self, change: Change) -> None:
        """A claim that came, or that is pending again, may be what a pod waits for. One that was pending
        before is no news: its finalizer comes and goes with each attempt."""
        if isinstance(change, Deleted) or not self._is_ours(change.object):
            return
        if isinstance(change, Updated) and self._is_ours(change.old):
            return
        owner = claim_of(change.object).metadata.controlling_pod
        if owner is not None:
            self.loop.add(Key(change.object.namespace, owner.name))
        for key in self._named.get(Key.of(change.object), ()):
            self.loop.add(key)

    def class_heard(self, change: Change, claims_of: Index) -> None:
        for claim in claims_of[change.object.name]:
            self.claim_heard(Added(claim))

    async def reconcile(self, key: Key) -> Again | None:
        scheduling = self._scheduling(key)
        if scheduling is None:
            return None
        pod = self._known.get(key)
        is_known = pod is not None and pod.metadata.uid == pod_uid(scheduling_of(scheduling))
        if not is_known:
            pod = await self._pod_of(scheduling)
        if pod is None or not self._pending(pod):
            self._refreshing.settled(self.loop, key)
            return None
        async with self._claims.turn(one.claim.uid for one in self._pending(pod)):
            if is_known and scheduling_of(scheduling).spec.selected_node:
                pod = await self._pod_of(scheduling)  # for one that is gone nothing is allocated (P5)
            pending = self._pending(pod) if pod is not None else []  # as they are now that nobody has them
            if pod is None or not pending:
                self._refreshing.settled(self.loop, key)
                return None
            return await self._negotiate(key, scheduling, pod, pending)

    async def _negotiate(self, key: Key, found: Object, pod: Pod, pending: list[Pending]) -> Again | None:
        scheduling = scheduling_of(found)
        selected = scheduling.spec.selected_node
        try:
            claims = list({one.claim.uid: one.claim for one in pending}.values())
            asks = [await self._asking.ask(claim) for claim in claims]
            nodes = answers.asked_about(scheduling, {one.entry for one in pending})
            bad = answers.unsuitable(
                await self._calls.unsuitable_nodes(asks, nodes) if nodes else {}, pending
            )
            if selected and not any(selected in nodes for nodes in bad.values()):
                refused = await self._allocating.allocate(claims, asks, selected, pod)
                if not refused:
                    self._refreshing.settled(self.loop, key)
                    self._refreshing.changed()
                    return None
                for one in pending:
                    if one.claim.uid in refused:
                        bad[one.entry].add(selected)
        except NotUsable as why:
            for claim in claims:
                self._allocating.tell(claim, "NotUsable", str(why))
            return self._refreshing.patience(self.loop, key)
        await self._answer(key, found, bad)
        return self._refreshing.waits(self.loop, key)

    async def _answer(self, key: Key, found: Object, bad: Mapping[str, set[str]]) -> None:
        """Others write to it too: only on top of what was read, and else again."""
        entries = answers.status_with(scheduling_of(found), bad)
        if entries is None:
            return
        metadata = {"uid": found.uid, "resourceVersion": found.resource_version}
        patch = {"metadata": metadata, "status": {"resourceClaims": entries}}
        try:
            self._answered[key] = await self._write.patch(
                found.name, patch, found.namespace, subresource="status"
            )
        except errors.NotFound:
            return  # the pod needs no answer any more

    # -- what is there --------------------------------------------------------------------------

    def _scheduling(self, key: Key) -> Object | None:
        """Of what was heard and what was written here, the newer."""
        heard, mine = self._schedulings.cache.get(key.name, key.namespace), self._answered.get(key)
        if heard is None or mine is None or heard.uid != mine.uid or is_as_new(heard, mine):
            return heard
        return mine

    def _is_own_news(self, key: Key, heard: Object) -> bool:
        """Nothing but what was written here: there is nothing to answer."""
        mine = self._answered.get(key)
        return mine is not None and mine.resource_version == heard.resource_version

    async def _pod_of(self, found: Object) -> Pod | None:
        """As the server has it now. None: the PodScheduling is not this pod's, or the pod is going."""
        key, uid = Key.of(found), pod_uid(scheduling_of(found))
        try:
            pod = (await self._pods.get(key.name, key.namespace)).view(Pod) if uid else None
        except errors.NotFound:
            pod = None
        if pod is None or pod.metadata.uid != uid or pod.metadata.deletion_timestamp:
            self._forget(key)
            return None
        self._known[key] = pod
        for entry in pod.spec.resource_claims:
            if entry.resource_claim_name:
                self._named.setdefault(Key(key.namespace, entry.resource_claim_name), set()).add(key)
        return pod

    def _forget(self, key: Key) -> None:
        self._answered.pop(key, None)
        pod = self._known.pop(key, None)
        for entry in pod.spec.resource_claims if pod is not None else ():
            claim = Key(key.namespace, entry.resource_claim_name)
            pods = self._named.get(claim, set())
            pods.discard(key)
            if not pods:
                self._named.pop(claim, None)

    def _pending(self, pod: Pod) -> list[Pending]:
        found = []
        for entry in pod.spec.resource_claims:
            name = entry.claim_of(pod.metadata.name)
            claim = self._claims.get(Key(pod.metadata.namespace, name)) if name else None
            if claim is None or not self._is_ours(claim):
                continue
            if entry.resource_claim_name or claim_of(claim).is_of(pod):
                found.append(Pending(entry.name, claim))
        return found

    def _is_ours(self, claim: Object) -> bool:
        """To be allocated by this driver, once a node is selected."""
        view = claim_of(claim)
        found = self._classes.cache.get(view.spec.resource_class_name)
        return answers.is_pending(view, class_of(found) if found is not None else None, self._driver)
