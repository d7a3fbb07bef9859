"""What the informers and the bindings tell, brought into the snapshot and the queue.

Where it sits
    Handlers of informers and bindings put news into a box; the scheduling task empties it
    between two cycles. So one task alone changes the snapshot, in the order in which
    things became known, and no cycle sees half of a change.

What it promises
    I1  An object that cannot be read is set aside: logged once, counted in the metrics, taken in
        again when it changes. Meanwhile nobody is given it, and what it held stays held.
"""

import logging
from collections.abc import Callable, Iterable
from typing import NamedTuple

from allot.allocation import BadSlice
from allot.api import Object, core, resource
from allot.base import InvariantBroken
from allot.informers import Added, Change, Deleted, Key, ResourceId, SetAside, Updated

from .cycle import Cycle
from .extended import owner_of
from .framework import Event
from .node import NodeInfo
from .pod import PodInfo, claims_of
from .queue import Queue, Where
from .snapshot import Snapshot

log = logging.getLogger(__name__)

GROUP = resource.limits.GROUP
PODS = ResourceId("", "v1", "pods")
NODES = ResourceId("", "v1", "nodes", namespaced=False)
CLAIMS = ResourceId(GROUP, "v1", "resourceclaims")
SLICES = ResourceId(GROUP, "v1", "resourceslices", namespaced=False)
CLASSES = ResourceId(GROUP, "v1", "deviceclasses", namespaced=False)
TAINT_RULES = ResourceId(GROUP, "v1", "devicetaintrules", namespaced=False)
BUDGETS = ResourceId("policy", "v1", "poddisruptionbudgets")

NEEDS = (PODS, NODES, CLAIMS, SLICES, CLASSES, TAINT_RULES, BUDGETS)


class News(NamedTuple):
    what: ResourceId
    change: Change


class Intake:
    def __init__(
        self,
        snapshot: Snapshot,
        queue: Queue,
        cycle: Cycle,
        names: Iterable[str],
        gated: Callable[[PodInfo, str | None], None] = lambda pod, why: None,
        misread: Callable[[Object, str], None] = lambda pod, why: None,
    ) -> None:
        """`gated` is told why a pod cannot be tried, and with None that nothing is in its way any more;
        `misread` is told of a pod that cannot be read."""
        self._tell_gated = gated
        self._tell_misread = misread
        self._snapshot = snapshot
        self._queue = queue
        self._cycle = cycle
        self._names = frozenset(names)
        self._take: dict[ResourceId, Callable[[Change, float], None]] = {
            PODS: self._pod,
            NODES: self._node,
            CLAIMS: self._claim,
            SLICES: self._slice,
            CLASSES: self._class,
            TAINT_RULES: self._taint_rule,
            BUDGETS: self._budget,
        }
        self._omit: dict[ResourceId, Callable[[Object, bool, float], None]] = {
            PODS: self._omit_pod,
            NODES: self._omit_node,
            CLAIMS: self._omit_claim,
            SLICES: self._omit_slice,
            CLASSES: self._omit_class,
        }
        self.aside = SetAside("the scheduler")

    def hear(self, news: News, now_s: float) -> None:
        """I1: an object that cannot be read stops neither the scheduler nor the news of the others."""
        try:
            self._take[news.what](news.change, now_s)
        except InvariantBroken:
            raise
        except Exception as bug:
            self._set_aside(news, bug, now_s)
        else:
            if self.aside:
                self.aside.well(news.what.plural, Key.of(news.change.object))

    def _set_aside(self, news: News, bug: Exception, now_s: float) -> None:
        """What cannot be read is used by nobody, and what it held stays held; of taint rules and budgets,
        which forbid, the last that was understood stays in force."""
        object, is_gone = news.change.object, isinstance(news.change, Deleted)
        if is_gone:
            self.aside.well(news.what.plural, Key.of(object))
        else:
            self.aside.add(news.what.plural, object, bug)
            if news.what == PODS:
                self._tell_misread(object, repr(bug))
        omit = self._omit.get(news.what)
        if omit is not None:
            omit(object, is_gone, now_s)

    def _omit_pod(self, pod: Object, is_gone: bool, now_s: float) -> None:
        """It is not tried. Where it is known to be on a node it stays counted there."""
        self._queue.remove(pod.uid, now_s)
        if is_gone and self._snapshot.remove(pod.uid):
            self._queue.happened(Event.POD_GONE, now_s)

    def _omit_node(self, node: Object, is_gone: bool, now_s: float) -> None:
        self._snapshot.drop_node(node.name)
        self._queue.happened(Event.NODE_GONE, now_s)

    def _omit_claim(self, claim: Object, is_gone: bool, now_s: float) -> None:
        if not is_gone:
            self._snapshot.put_unreadable(claim)
            self._concerns(Key.of(claim), Event.CLAIM_CHANGED, now_s)

    def _omit_slice(self, slice_: Object, is_gone: bool, now_s: float) -> None:
        self._snapshot.inventory.remove(slice_.name)
        self._queue.happened(Event.SLICE_CHANGED, now_s)

    def _omit_class(self, class_: Object, is_gone: bool, now_s: float) -> None:
        self._snapshot.drop_class(class_.name)
        self._queue.happened(Event.CLASS_CHANGED, now_s)

    # -- pods -----------------------------------------------------------------------------------

    def _pod(self, change: Change, now_s: float) -> None:
        uid = change.object.uid
        pod = PodInfo.of(change.object, self._queue.get(uid) or self._snapshot.pod(uid))
        if isinstance(change, Deleted) or pod.view.is_finished:
            self._forget(pod, now_s)
            if self._snapshot.remove(pod.uid) or (pod.spec.node_name and pod.is_deleting):
                self._snapshot.prospects.leave(pod.uid, claims_of(pod))
                self._queue.happened(Event.POD_GONE, now_s)
        elif pod.spec.node_name:
            self._forget(pod, now_s)
            self._snapshot.place(pod, pod.spec.node_name)
        elif self._snapshot.place_of(pod.uid) is not None:
            self._queue.update(pod, now_s)  # on its way to a node: this was said before that was known (P4)
        elif pod.is_deleting:
            self._forget(pod, now_s)
        else:
            if pod.scheduler in self._names:
                self._pending(pod, now_s)
            else:
                self._queue.remove(pod.uid, now_s)
                self._nominated_by_others(pod, now_s)

    def _forget(self, pod: PodInfo, now_s: float) -> None:
        self._queue.remove(pod.uid, now_s)
        self._tell_gated(pod, None)
        self._keep_no_room(pod, now_s)

    def _keep_no_room(self, pod: PodInfo, now_s: float) -> None:
        if self._snapshot.unnominate(pod.uid):
            self.room_is_free(now_s)

    def room_is_free(self, now_s: float) -> None:
        """Room that was meant for one pod is there for the others, and so are the devices in it."""
        for event in (Event.DEVICES_FREED, Event.POD_GONE):
            self._queue.happened(event, now_s)

    def _nominated_by_others(self, pod: PodInfo, now_s: float) -> None:
        """Another scheduler makes room for it, and says where."""
        node = pod.status.nominated_node_name or None
        if node != self._snapshot.prospects.nomination(pod.uid):
            self._keep_no_room(pod, now_s)
            if node is not None:
                self._snapshot.nominate(pod, node)

    def _nominated(self, pod: PodInfo) -> None:
        """Room was made for it before it came to us. What is decided then is newer than what we are told."""
        is_new = self._queue.where(pod.uid) is None or self._queue.is_gated(pod.uid)
        if is_new and pod.status.nominated_node_name:
            self._snapshot.nominate(pod, pod.status.nominated_node_name)

    def _pending(self, pod: PodInfo, now_s: float) -> None:
        if self._queue.where(pod.uid) is Where.TAKEN:
            self._queue.update(pod, now_s)
            return
        why = self._cycle.gate(pod, self._snapshot)
        if why is not None:
            self._keep_no_room(pod, now_s)
            self._tell_gated(pod, why)
            self._queue.gate(pod, claims_of(pod), now_s)
            return
        self._nominated(pod)
        self._queue.add(pod, now_s)
        if self._queue.is_gated(pod.uid):
            self._tell_gated(pod, None)
            self._queue.release(pod.uid, now_s)

    # -- nodes ----------------------------------------------------------------------------------

    def _node(self, change: Change, now_s: float) -> None:
        if isinstance(change, Deleted):
            self._snapshot.drop_node(change.object.name)
            self._queue.happened(Event.NODE_GONE, now_s)
            return
        is_new = self._snapshot.node(change.object.name) is None
        if self._snapshot.put_node(NodeInfo.of(change.object)):
            self._queue.happened(Event.NODE_ADDED if is_new else Event.NODE_CHANGED, now_s)

    # -- claims ---------------------------------------------------------------------------------

    def _claim(self, change: Change, now_s: float) -> None:
        if isinstance(change, Deleted):
            key = Key.of(change.object)
            if self._snapshot.drop_claim(key, change.object.uid):
                self._queue.happened(Event.DEVICES_FREED, now_s)
                self._concerns(key, Event.CLAIM_CHANGED, now_s)
            return
        event = Event.CLAIM_ADDED if isinstance(change, Added) else Event.CLAIM_CHANGED
        self._put_claim(change.object, now_s, event)

    def claim(self, object: Object, now_s: float) -> None:
        """A claim as the server has it, from an answer to a write."""
        self.hear(News(CLAIMS, Updated(object, object)), now_s)

    def _put_claim(self, object: Object, now_s: float, event: Event) -> None:
        held, before = self._snapshot.ledger.hold(object.uid), self._snapshot.claim_with(object.uid)
        claim = self._snapshot.put_claim(object)
        if claim is None:
            return
        if held is not None and held.settled and claim.allocation is None:
            self._queue.happened(Event.DEVICES_FREED, now_s)
        elif before is not None and len(claim.reserved_for) < len(before.reserved_for):
            self._queue.happened(Event.USERS_LEFT, now_s)
        self._concerns(claim.key, event, now_s)
        gated = self._queue.get(owner_of(claim.view.metadata) or "")
        if gated is not None and self._queue.is_gated(gated.uid):
            self._pending(gated, now_s)  # an earlier attempt left this for it (C5)

    def _concerns(self, key: Key, event: Event, now_s: float) -> None:
        self._queue.happened(event, now_s, about=key)
        for pod in self._queue.gated_by(key):
            self._pending(pod, now_s)

    # -- devices --------------------------------------------------------------------------------

    def _slice(self, change: Change, now_s: float) -> None:
        name = change.object.name
        if isinstance(change, Deleted):
            self._snapshot.inventory.remove(name)
        else:
            try:
                self._snapshot.inventory.apply(change.object.view(resource.ResourceSlice))
            except BadSlice as bad:
                log.warning("slice %s is not used: %s", name, bad)
                self._snapshot.inventory.remove(name)
        self._queue.happened(Event.SLICE_CHANGED, now_s)

    def _class(self, change: Change, now_s: float) -> None:
        if isinstance(change, Deleted):
            self._snapshot.drop_class(change.object.name)
        else:
            self._snapshot.put_class(change.object.view(resource.DeviceClass))
        self._queue.happened(Event.CLASS_CHANGED, now_s)

    def _taint_rule(self, change: Change, now_s: float) -> None:
        if isinstance(change, Deleted):
            self._snapshot.inventory.remove_taint_rule(change.object.name)
        else:
            self._snapshot.inventory.apply_taint_rule(change.object.view(resource.DeviceTaintRule))
        self._queue.happened(Event.TAINT_RULE_CHANGED, now_s)

    # -- budgets --------------------------------------------------------------------------------

    def _budget(self, change: Change, now_s: float) -> None:
        """They protect pods from preemption; no pod fits because of one."""
        budgets, key = self._snapshot.prospects.budgets, Key.of(change.object)
        if isinstance(change, Deleted):
            budgets.drop(key)
        else:
            budgets.set(key, change.object.view(core.PodDisruptionBudget))
