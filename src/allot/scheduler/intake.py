"""What the informers and the bindings tell, brought into the snapshot and the queue.

Where it sits
    Handlers of informers and bindings put news into a box; the scheduling task empties it
    between two cycles. So one task alone changes the snapshot, in the order in which
    things became known, and no cycle sees half of a change. How news enter the snapshot is
    written in `mirror`; here is what follows for the pods that wait.

An object that cannot be read (MIRROR1) is logged once and counted in the metrics while it lasts.
"""

import logging
from collections.abc import Callable, Iterable
from typing import assert_never

from allot.allocation import BadSlice
from allot.api import Object
from allot.informers import Key, ResourceId, SetAside, Updated

from .cycle import Cycle
from .extended import owner_of
from .framework import Event
from .mirror import (
    CLAIMS,
    PARAMETERS_CHANGED,
    PODS,
    ROOM_FREED,
    Answered,
    Heard,
    Mirror,
    News,
    Noticed,
    PodMisread,
    PodTold,
    Stands,
    TalkedOut,
)
from .parameters import ParameterKind, Standing
from .pod import PodInfo
from .queue import Queue, Where
from .snapshot import Snapshot

log = logging.getLogger(__name__)


class Intake:
    def __init__(
        self,
        snapshot: Snapshot,
        queue: Queue,
        cycle: Cycle,
        names: Iterable[str],
        gated: Callable[[PodInfo, str | None], None] = lambda pod, why: None,
        misread: Callable[[Object, str], None] = lambda pod, why: None,
        talked_out: Callable[[Key], None] = lambda key: None,
    ) -> None:
        """`gated` is told why a pod cannot be tried, and with None that nothing is in its way any more;
        `misread` is told of a pod that cannot be read, `talked_out` of a talk that has lost its purpose."""
        self._tell_talked_out = talked_out
        self._tell_gated = gated
        self._tell_misread = misread
        self._snapshot = snapshot
        self._queue = queue
        self._cycle = cycle
        self._mirror = Mirror(snapshot, self, frozenset(names), queue.get)
        self.aside = SetAside("the scheduler")

    def hear(self, news: News, now_s: float) -> None:
        self._follow(self._mirror.hear(news), now_s)

    def claim(self, object: Object, now_s: float) -> None:
        """A claim as the server has it, from an answer to a write."""
        self.hear(News(CLAIMS, Updated(object, object)), now_s)

    def parameters(self, kind: ParameterKind, standing: Standing | None, now_s: float) -> None:
        """How a kind of parameter objects stands; None: no class names it any more."""
        if standing is None:
            self._snapshot.parameters.forget(kind)
            return
        self._snapshot.parameters.stand(kind, standing)
        self._follow(PARAMETERS_CHANGED, now_s)

    def room_is_free(self, now_s: float) -> None:
        self._follow(ROOM_FREED, now_s)

    def _follow(self, happened: Heard, now_s: float) -> None:
        for one in happened:
            match one:
                case Noticed(event, None):
                    self._queue.happened(event, now_s)
                case Noticed(event, about):
                    assert about is not None
                    self._concerns(about, event, now_s)
                case PodTold(pod, stands):
                    self._pod(pod, stands, now_s)
                case PodMisread(uid):
                    self._queue.remove(uid, now_s)
                case Answered(uid):
                    self._queue.happened_to(uid, Event.DRIVER_ANSWERED, now_s)
                case TalkedOut(key):
                    self._tell_talked_out(key)
                case _:
                    assert_never(one)

    # -- what cannot be read --------------------------------------------------------------------

    def misread(self, what: ResourceId, object: Object, why: Exception) -> None:
        if isinstance(why, BadSlice):  # it can be read, and says what cannot be
            log.warning("slice %s is not used: %s", object.name, why)
            return
        self.aside.add(what.plural, object, why)
        if what == PODS:
            self._tell_misread(object, repr(why))

    def well(self, what: ResourceId, object: Object) -> None:
        if self.aside:
            self.aside.well(what.plural, Key.of(object))

    # -- pods -----------------------------------------------------------------------------------

    def _pod(self, pod: PodInfo, stands: Stands, now_s: float) -> None:
        match stands:
            case Stands.WAITING:
                if pod.scheduler in self._mirror.names:
                    self._pending(pod, now_s)
                else:
                    self._queue.remove(pod.uid, now_s)
            case Stands.ON_ITS_WAY:
                self._queue.update(pod, now_s)
            case Stands.BOUND | Stands.OVER:
                self._queue.remove(pod.uid, now_s)
                self._tell_gated(pod, None)
            case _:
                assert_never(stands)

    def _pending(self, pod: PodInfo, now_s: float) -> None:
        if self._queue.where(pod.uid) is Where.TAKEN:
            self._queue.update(pod, now_s)
            return
        why = self._cycle.gate(pod, self._snapshot)
        if why is not None:
            if self._snapshot.unnominate(pod.uid):
                self.room_is_free(now_s)
            self._tell_gated(pod, why)
            self._queue.gate(pod, pod.claims, now_s)
            return
        self._nominated(pod)
        self._queue.add(pod, now_s)
        if self._queue.is_gated(pod.uid):
            self._tell_gated(pod, None)
            self._queue.release(pod.uid, now_s)

    def _nominated(self, pod: PodInfo) -> None:
        """Room was made for it before it came to us. What is decided then is newer than what we are told."""
        is_new = self._queue.where(pod.uid) is None or self._queue.is_gated(pod.uid)
        if is_new and pod.status.nominated_node_name:
            self._snapshot.nominate(pod, pod.status.nominated_node_name)

    # -- claims ---------------------------------------------------------------------------------

    def _concerns(self, key: Key, event: Event, now_s: float) -> None:
        self._queue.happened(event, now_s, about=key)
        for pod in self._queue.gated_by(key):
            self._pending(pod, now_s)
        claim = self._snapshot.claim(key)
        gated = self._queue.get(owner_of(claim.view.metadata) or "") if claim is not None else None
        if gated is not None and self._queue.is_gated(gated.uid):
            self._pending(gated, now_s)  # an earlier attempt left this for it (C5)
