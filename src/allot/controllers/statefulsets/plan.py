"""Which pod comes or goes next, and how the set stands. Pure.

An ordered set does one thing at a time, and the order is that of the ordinals: first those that are
missing, from the first on; then those that are too many, from the last on; then those of an old template,
from the last on. It goes on to the next only when all before are available. A parallel set waits for nobody,
except that an update never takes more pods away than it may.

A pod that is not available and would be replaced anyway is replaced at once: nobody waits for a template
that cannot become ready to become ready.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from heapq import merge
from itertools import islice
from typing import Any

from allot.api import Object

from ..workloads import is_available, is_ready, view_of, wait_s
from .identity import ordinal_of, revision_of
from .views import StatefulSet, set_of

BURST = 250


@dataclass(frozen=True, slots=True)
class StatefulSetPlan:
    create: tuple[int, ...] = ()  # ordinals
    delete: tuple[Object, ...] = ()


@dataclass(frozen=True, slots=True)
class Situation:
    """What there is: the set's pods by ordinal, and which of them were told to end."""

    wish: StatefulSet
    current: str  # the names of the revisions before and after the update
    update: str
    pods: Mapping[int, Object]  # in the order of the ordinals
    leaving: frozenset[str]  # uids
    now: datetime

    def is_leaving(self, pod: Object) -> bool:
        return pod.uid in self.leaving

    def is_available(self, pod: Object) -> bool:
        return not self.is_leaving(pod) and is_available(pod, self.wish.spec.min_ready_seconds, self.now)

    def is_outdated(self, ordinal: int, pod: Object) -> bool:
        """The update will replace it."""
        wish = self.wish
        return wish.is_rolling and ordinal >= wish.first_updated and revision_of(pod) != self.update

    def revision_for(self, ordinal: int) -> str:
        """The revision that a new pod is made of."""
        return self.current if ordinal < self.wish.first_updated else self.update


def situation(
    stateful_set: Object,
    current: str,
    update: str,
    pods: Sequence[Object],
    leaving: frozenset[str],
    now: datetime,
) -> Situation:
    known = {ordinal_of(stateful_set, pod): pod for pod in pods}
    by_ordinal = {ordinal: known[ordinal] for ordinal in sorted(o for o in known if o is not None)}
    ending = {pod.uid for pod in pods if pod.metadata.deletion_timestamp is not None}
    return Situation(set_of(stateful_set), current, update, by_ordinal, leaving | ending, now)


def plan(here: Situation) -> StatefulSetPlan:
    steps = [*islice(_steps(here), 1 if here.wish.is_ordered else None)]
    create = [ordinal for ordinal in steps if isinstance(ordinal, int)]
    delete = [pod for pod in steps if isinstance(pod, Object)]
    if not steps or not here.wish.is_ordered:
        delete += _update(here, {pod.uid for pod in delete})
    return StatefulSetPlan(tuple(create[:BURST]), tuple(delete[:BURST]))


_WAIT = None

Step = int | Object | None
"""Make the pod of an ordinal, delete a pod, or wait for one."""


def _steps(here: Situation) -> Iterator[Step]:
    """All that is to be done or waited for, in order, but for the update of pods that serve."""
    for ordinal in _places(here):
        pod = here.pods.get(ordinal)
        if pod is None:
            yield ordinal
        elif here.is_leaving(pod):
            yield _WAIT
        elif view_of(pod).is_finished:
            yield pod
        elif not here.is_available(pod):
            yield pod if here.is_outdated(ordinal, pod) else _WAIT
    for ordinal in sorted((o for o in here.pods if o not in here.wish.ordinals), reverse=True):
        pod = here.pods[ordinal]
        yield _WAIT if here.is_leaving(pod) else pod


def _places(here: Situation) -> Iterator[int]:
    """In order, the ordinals that have a pod and the first of those that have none. More are not made
    in one turn, and a set may wish for billions."""
    wanted = here.wish.ordinals
    missing = islice((ordinal for ordinal in wanted if ordinal not in here.pods), BURST)
    return merge(missing, (ordinal for ordinal in here.pods if ordinal in wanted))


def _update(here: Situation, going: set[str]) -> Iterator[Object]:
    """The next pods of an old template that serve, from the last one on, as many as may be away."""
    wanted = here.wish.ordinals
    serving = {o: pod for o, pod in here.pods.items() if o in wanted and here.is_available(pod)}
    room = here.wish.unavailable - (len(wanted) - len(serving))
    for ordinal in sorted(serving, reverse=True):
        pod = serving[ordinal]
        if room > 0 and here.is_outdated(ordinal, pod) and pod.uid not in going:
            room -= 1
            yield pod


def status(stateful_set: Object, here: Situation) -> dict[str, Any] | None:
    """The status as it should be, or None when it already is."""
    pods = [*here.pods.values()]
    staying = [pod for pod in pods if not here.is_leaving(pod)]
    ready = sum(map(is_ready, staying))
    updated = sum(revision_of(pod) == here.update for pod in staying)
    replicas = here.wish.spec.replicas
    is_done = here.wish.is_rolling and replicas == updated == ready == len(pods)
    current = here.update if is_done else here.current
    wanted = {
        "replicas": len(pods),
        "readyReplicas": ready,
        "availableReplicas": sum(map(here.is_available, pods)),
        "currentReplicas": sum(revision_of(pod) == current for pod in staying),
        "updatedReplicas": updated,
        "currentRevision": current,
        "updateRevision": here.update,
        "observedGeneration": here.wish.metadata.generation,
    }
    before = stateful_set.fields.get("status") or {}
    same = "replicas" in before and all((before.get(name) or 0) == value for name, value in wanted.items())
    return None if same else wanted


def look_again_s(here: Situation) -> float | None:
    """When the next ready pod has been ready for long enough, if one waits for that."""
    ready = [pod for pod in here.pods.values() if not here.is_leaving(pod) and is_ready(pod)]
    waits = [wait_s(pod, here.wish.spec.min_ready_seconds, here.now) for pod in ready]
    return min((one for one in waits if one > 0), default=None)
