"""Which nodes get a pod, which pods go, and how the set stands. Pure.

A node has one pod of the set. While it is updated it may have none for a moment
(maxUnavailable), or two (maxSurge), and never is more than the limit of nodes without
an available pod because of the update (DSET2).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from allot.api import Object

from ..workloads import POD_LABEL, is_active, is_available, is_ready, view_of, wait_s
from .suiting import Suits, node_of, suits
from .views import DaemonSet, set_of

BURST = 250


@dataclass(frozen=True, slots=True)
class DaemonSetPlan:
    create: tuple[str, ...] = ()  # nodes
    delete: tuple[Object, ...] = ()


@dataclass(frozen=True, slots=True)
class Situation:
    """What there is: the set's pods by node, and which nodes it is for."""

    wish: DaemonSet
    hash: str
    fits: Mapping[str, Suits]
    pods: Mapping[str, Sequence[Object]]  # those that are not told to end; oldest first
    now: datetime

    def is_new(self, pod: Object) -> bool:
        return (pod.metadata.labels or {}).get(POD_LABEL) == self.hash

    def is_available(self, pod: Object) -> bool:
        return is_available(pod, self.wish.spec.min_ready_seconds, self.now)


def situation(
    daemon_set: Object, hash: str, pods: Sequence[Object], nodes: Sequence[Object], now: datetime
) -> Situation:
    wish = set_of(daemon_set)
    template = daemon_set.fields["spec"].get("template") or {}
    on_host = bool((template.get("spec") or {}).get("hostNetwork"))
    fits = {node.name: suits(wish.spec.template.spec, on_host, node) for node in nodes}
    by_node: dict[str, list[Object]] = {}
    for pod in sorted(pods, key=lambda one: (one.metadata.creation_timestamp or "", one.name)):
        if pod.metadata.deletion_timestamp is None:
            by_node.setdefault(node_of(pod), []).append(pod)
    return Situation(wish, hash, fits, by_node, now)


def plan(here: Situation, leaving: Sequence[Object]) -> DaemonSetPlan:
    """`leaving` are pods that are told to end: a node waits for its old pod before it gets the next."""
    if here.wish.metadata.deletion_timestamp:
        return DaemonSetPlan()
    busy = {node_of(pod) for pod in leaving}
    create, delete = [], []
    for node, fit in here.fits.items():
        pods = here.pods.get(node, ())
        failed = [pod for pod in pods if view_of(pod).is_finished]
        running = [pod for pod in pods if not view_of(pod).is_finished]
        delete += failed
        if fit is Suits.NO:
            delete += running
        elif not running:
            if fit is Suits.YES and not failed and node not in busy:
                create.append(node)
        else:
            delete += _doubles(here, running)
    delete += [pod for node, pods in here.pods.items() if node not in here.fits for pod in pods]
    if here.wish.spec.update_strategy.type == "RollingUpdate":
        more = _update(here, {pod.uid for pod in delete}, busy)
        create, delete = create + list(more.create), delete + list(more.delete)
    return DaemonSetPlan(tuple(create[:BURST]), tuple(delete[:BURST]))


def _doubles(here: Situation, running: Sequence[Object]) -> list[Object]:
    """One pod a node; during an update with surge one old and one new."""
    new = [pod for pod in running if here.is_new(pod)]
    old = [pod for pod in running if not here.is_new(pod)]
    may_surge = here.wish.surge(len(here.fits)) > 0
    kept = [*new[:1], *old[:1]] if may_surge else (new[:1] or old[:1])
    return [pod for pod in running if pod not in kept]


def _update(here: Situation, going: set[str], busy: set[str]) -> DaemonSetPlan:
    """The next old pods to replace."""
    nodes = [node for node, fit in here.fits.items() if fit is not Suits.NO]
    surge, unavailable = here.wish.surge(len(nodes)), here.wish.unavailable(len(nodes))
    standing = {n: [p for p in here.pods.get(n, ()) if p.uid not in going and is_active(p)] for n in nodes}
    outdated = [n for n in nodes if any(not here.is_new(pod) for pod in standing[n])]
    if surge:
        return _surged(here, outdated, standing, surge, busy)
    down = sum(not any(map(here.is_available, standing[n])) for n in nodes if here.fits[n] is Suits.YES)
    sick = [n for n in outdated if not any(map(here.is_available, standing[n]))]
    well = [n for n in outdated if n not in sick][: max(0, unavailable - down)]
    return DaemonSetPlan(
        delete=tuple(pod for n in (*sick, *well) for pod in standing[n] if not here.is_new(pod))
    )


def _surged(
    here: Situation,
    outdated: Sequence[str],
    standing: Mapping[str, Sequence[Object]],
    surge: int,
    busy: set[str],
) -> DaemonSetPlan:
    """The new pod comes beside the old one, which goes once the new one is available."""
    create, delete, doubled = [], [], 0
    for node in outdated:
        new = [pod for pod in standing[node] if here.is_new(pod)]
        old = [pod for pod in standing[node] if not here.is_new(pod)]
        if any(map(here.is_available, new)) or (new and not any(map(here.is_available, old))):
            delete += old
        elif new:
            doubled += 1
    for node in outdated:
        if doubled >= surge:
            break
        if len(standing[node]) == 1 and here.fits[node] is Suits.YES and node not in busy:
            create.append(node)
            doubled += 1
    return DaemonSetPlan(tuple(create), tuple(delete))


def status(daemon_set: Object, here: Situation) -> dict[str, Any] | None:
    """The status as it should be, or None when it already is."""
    meant = [node for node, fit in here.fits.items() if fit is Suits.YES or _has_pod(here, node, fit)]
    running = {n: [p for p in here.pods.get(n, ()) if is_active(p)] for n in here.fits}
    available = sum(any(map(here.is_available, running[node])) for node in meant)
    wanted = {
        "desiredNumberScheduled": len(meant),
        "currentNumberScheduled": sum(bool(running[node]) for node in meant),
        "numberMisscheduled": sum(bool(running[n]) for n, fit in here.fits.items() if n not in meant),
        "numberReady": sum(any(map(is_ready, running[node])) for node in meant),
        "updatedNumberScheduled": sum(any(map(here.is_new, running[node])) for node in meant),
        "numberAvailable": available,
        "numberUnavailable": len(meant) - available,
        "observedGeneration": here.wish.metadata.generation,
    }
    before = daemon_set.fields.get("status") or {}
    same = "desiredNumberScheduled" in before
    same = same and all((before.get(name) or 0) == value for name, value in wanted.items())
    return None if same else wanted


def _has_pod(here: Situation, node: str, fit: Suits) -> bool:
    return fit is Suits.KEEPS and any(map(is_active, here.pods.get(node, ())))


def look_again_s(here: Situation) -> float | None:
    """When the next ready pod has been ready for long enough, if one waits for that."""
    pods = [pod for some in here.pods.values() for pod in some if is_active(pod) and is_ready(pod)]
    waits = [wait_s(pod, here.wish.spec.min_ready_seconds, here.now) for pod in pods]
    return min((one for one in waits if one > 0), default=None)
