"""Why a pod or a claim is where it is: the tree behind the one line of a condition. Values.

The same checks as in a cycle, put to every node, with the allocator's explanation of those
that lack devices; of nodes in the same situation one is explained. Nodes with the same story
are told together.
"""

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from allot.allocation import Explanation
from allot.api import age
from allot.base import RandomIds

from . import plugins
from .board import first_rejection
from .claim import ClaimInfo
from .cycle import Cycle, said
from .extended import in_words, owner_of, read_asked
from .framework import CycleState, Rejection
from .mirror import CAPACITY, CLAIMS, NODES, PODS
from .negotiating import overdue, refusals
from .pod import DEFAULT_SCHEDULER, PodInfo
from .reach import places
from .readiness import Readiness, awaited, readiness
from .reading import Reading
from .settings import Settings
from .snapshot import Snapshot
from .why_numeric import in_numbers, lost

DEFAULT = Settings()
GIVEN_UP = {Readiness.FAILED, Readiness.LATE}
NOBODY_ALLOCATES = "nobody allocates for a pod that was given its node without a scheduler"


@dataclass(frozen=True, slots=True)
class NodeStory:
    """What nodes say that say the same."""

    reason: str  # empty: they would take the pod
    plugin: str
    nodes: tuple[str, ...]
    devices: Explanation | None = None  # of the first of them

    def as_json(self) -> dict[str, Any]:
        told: dict[str, Any] = {"reason": self.reason, "plugin": self.plugin, "nodes": list(self.nodes)}
        if self.devices is not None:
            told["devices"] = self.devices.as_json()
        return told


@dataclass(frozen=True, slots=True)
class Why:
    about: str
    verdict: str
    claims: tuple[str, ...] = ()  # a line each
    devices: str = ""  # what is the matter with them over all nodes, as the pod's condition says it
    nodes: tuple[NodeStory, ...] = ()
    notes: tuple[str, ...] = ()
    is_certain: bool = True  # else it depends on what may not be read

    def as_json(self) -> dict[str, Any]:
        return {
            "about": self.about,
            "verdict": self.verdict,
            "certain": self.is_certain,
            "claims": list(self.claims),
            "devices": self.devices,
            "nodes": [one.as_json() for one in self.nodes],
            "notes": list(self.notes),
        }

    def text(self) -> str:
        lines = [f"{self.about}: {self.verdict}"]
        lines += [f"  {line}" for line in (*self.claims, self.devices) if line]
        for story in self.nodes:
            lines.append(f"  {_counted(story.nodes)}: {story.reason or 'would take it'}")
            if story.devices is not None:
                lines += [f"    {line}" for line in story.devices.text().splitlines()]
        return "\n".join([*lines, *(f"  note: {note}" for note in self.notes)])


@dataclass
class _Stories:
    found: dict[tuple[str, str, str], list[str]] = field(default_factory=dict)
    devices: dict[tuple[str, str, str], Explanation] = field(default_factory=dict)

    def add(self, node: str, rejection: Rejection | None, devices: Explanation | None) -> None:
        words = _alike(devices) if devices is not None else ""
        plugin = plugins.known_as(rejection.plugin) if rejection is not None else ""
        key = (rejection.reason, plugin, words) if rejection is not None else ("", "", "")
        self.found.setdefault(key, []).append(node)
        if devices is not None:
            self.devices.setdefault(key, devices)

    def grouped(self) -> tuple[NodeStory, ...]:
        ordered = sorted(self.found.items(), key=lambda one: (bool(one[0][0]), len(one[1]), one[0]))
        return tuple(NodeStory(key[0], key[1], tuple(nodes), self.devices.get(key)) for key, nodes in ordered)


def why_pod(
    pod: PodInfo, reading: Reading, now: datetime, named: Callable[[str], str], settings: Settings = DEFAULT
) -> Why:
    """`settings` are those of the pod's scheduler."""
    snapshot, cycle = reading.snapshot, Cycle(plugins.default(RandomIds(random.Random(0)), settings))
    about = f"pod {pod.key}"
    words = in_words(read_asked(pod.spec))
    claims = tuple(_claim_line(one, words, snapshot) for one in _claims_of(pod, snapshot))
    settled = _settled(pod, reading)
    if settled:
        missing = _lost(_claims_of(pod, snapshot), reading) if _is_there(pod) else ()
        return Why(about, settled, claims, notes=(*_unserved(pod, snapshot), *missing))
    awaits = _awaits(pod, _claims_of(pod, snapshot), now, settings.binding_timeout_s)
    if awaits:
        return Why(about, awaits, claims)
    if hidden := reading.hidden(CLAIMS):
        return _untold(pod, about, claims, hidden)
    notes = tuple(_notes(pod, snapshot))
    gate = cycle.gate(pod, snapshot)
    if gate is not None:
        return Why(about, f"cannot be tried yet: {gate}", claims, notes=notes)
    if reading.hides_supply:
        return _untold(pod, about, claims, reading.hides_supply)
    state = CycleState(pod, now)
    signed = cycle.sign(state, snapshot)
    if isinstance(signed, Rejection):
        if reading.hides_parameters and signed.plugin == plugins.NUMERIC:
            return _untold(pod, about, claims, reading.hides_parameters)
        return Why(about, f"cannot be tried yet: {signed.reason}", claims, notes=notes)
    if talk := _negotiates(pod, state, snapshot, now):
        return Why(about, talk, claims, notes=notes)
    checks, only = cycle.checks(state, snapshot)
    veto = cycle.veto(state, snapshot)
    rejections = {
        node.name: first_rejection(checks, node) or (veto.refuses(node.name) if veto is not None else None)
        for node in sorted(snapshot.nodes(), key=lambda one: one.name)
    }
    turned_down = tuple((name, why) for name, why in rejections.items() if why is not None)
    devices = cycle.explain(state, snapshot, turned_down, named)
    stories = _Stories()
    for name, rejection in rejections.items():
        stories.add(name, rejection, devices.get(name))
    told = stories.grouped()
    if only is not None:
        left = f"{_counted(tuple(sorted(only)))} only" if only else "no node"
        notes = (f"its claims or its spec leave {left}", *notes)
    unsure = reading.hides_use if any(not story.reason for story in told) else ()
    verdict = _room(pod, snapshot) + _verdict(told) + (", as far as can be seen" if unsure else "")
    fits_nowhere = all(story.reason for story in told)
    sentences = cycle.tell(state, turned_down) if fits_nowhere else ()
    devices_told = said(sentences, snapshot)
    return Why(about, verdict, claims, devices_told, told, (*notes, *unsure), is_certain=not unsure)


def _untold(pod: PodInfo, about: str, claims: tuple[str, ...], hidden: tuple[str, ...]) -> Why:
    """Where it is hidden what the answer depends on, the scheduler's own word is the best there is."""
    told = (
        one.message for one in pod.status.conditions if one.type == "PodScheduled" and one.status == "False"
    )
    notes = tuple(f"its scheduler last said: {message}" for message in told if message)
    return Why(about, f"cannot be told: {'; '.join(hidden)}", claims, notes=notes, is_certain=False)


def _room(pod: PodInfo, snapshot: Snapshot) -> str:
    """Who must end so that the pod has its room, if it has been nominated to a node."""
    node = snapshot.node(pod.status.nominated_node_name)
    going = sorted(one.key for one in node.pods.values() if one.is_deleting) if node is not None else []
    if node is None or not going:
        return ""
    names = _counted(tuple(one.name if one.namespace == pod.key.namespace else str(one) for one in going))
    return f"room is being made on {node.name}: waits for {names} (being deleted) to end; until then "


def _verdict(stories: tuple[NodeStory, ...]) -> str:
    fitting = sum(len(one.nodes) for one in stories if not one.reason)
    total = sum(len(one.nodes) for one in stories)
    if fitting:
        return f"{fitting} of {total} nodes would take it now"
    return f"none of {total} nodes takes it" if total else "there are no nodes"


def _settled(pod: PodInfo, reading: Reading) -> str:
    """Where it is, if nothing is to be decided any more."""
    snapshot = reading.snapshot
    name = pod.spec.node_name or snapshot.place_of(pod.uid)
    if pod.view.is_finished:
        said = ": ".join(filter(None, (pod.status.reason, pod.status.message)))
        where = f", on node {name}" if name else ""
        return f"has ended ({pod.status.phase}){where}" + (f": {said}" if said else "")
    if name:
        is_gone = snapshot.node(name) is None and not reading.hidden(NODES)
        return f"on node {name}" + (", which is not there" if is_gone else "")
    return "is being deleted" if pod.is_deleting else ""


def _is_there(pod: PodInfo) -> bool:
    """It has its node, and is to run on it or does."""
    return bool(pod.spec.node_name) and not pod.view.is_finished and not pod.is_deleting


def _unserved(pod: PodInfo, snapshot: Snapshot) -> Iterator[str]:
    """A scheduler allocates before it binds, so a pod that has its node and no devices never met one."""
    if _is_there(pod) and any(one.allocation is None for one in _claims_of(pod, snapshot)):
        yield NOBODY_ALLOCATES


def _awaits(pod: PodInfo, claims: Sequence[ClaimInfo], now: datetime, timeout_s: float) -> str:
    """What the devices lack that were chosen for the pod and are being made ready, if so."""
    chosen = tuple(one for one in claims if one.allocation is not None and one.is_reserved_for(pod.uid))
    states = {readiness(one, now, timeout_s) for one in chosen}
    if len(chosen) < len(claims) or Readiness.WAITING not in states or states & GIVEN_UP:
        return ""
    nodes = places(chosen)
    where = f" on {next(iter(nodes))}" if nodes is not None and len(nodes) == 1 else ""
    return f"waits{where} for {awaited(chosen)}"


def _negotiates(pod: PodInfo, state: CycleState, snapshot: Snapshot, now: datetime) -> str:
    """Which drivers are to allocate for a chosen node, if so."""
    ask, talk = plugins.classic_ask(state), snapshot.talk_of(pod)
    if ask is None or talk is None or not talk.selected:
        return ""
    if talk.selected in refusals(talk, ask.wants):
        return ""  # it looks for another
    since = age.moment(talk.object.metadata.creation_timestamp or "")
    waited_s = max(0.0, (now - since).total_seconds()) if since is not None else 0.0
    return f"waits on {talk.selected}: {overdue(ask.wants, waited_s)}"


def _notes(pod: PodInfo, snapshot: Snapshot) -> Iterator[str]:
    if pod.scheduler != DEFAULT_SCHEDULER:
        yield f"it is for the scheduler {pod.scheduler}, which may see it differently"
    for name in read_asked(pod.spec).names:
        offered = any(name in node.allocatable for node in snapshot.nodes())
        if not offered and snapshot.extended.class_for(name) is None:
            yield f"no node offers {name} and no DeviceClass serves it"


def why_claim(claim: ClaimInfo, reading: Reading) -> Why:
    """What a claim has and who of the pods uses it; whether it waits, and for whom."""
    about, snapshot = f"claim {claim.key}", reading.snapshot
    if claim.allocation is not None:
        users = ", ".join(one.name for one in claim.reserved_for) or "nobody"
        line = _claim_line(claim, {}, snapshot)
        return Why(about, f"has its devices, used by {users}", (line,), notes=tuple(_lost([claim], reading)))
    if hidden := reading.hidden(PODS):
        verdict = f"has no devices; who waits for it cannot be told: {'; '.join(hidden)}"
        return Why(about, verdict, is_certain=False)
    uses = [
        pod for pod in reading.pods.values() if claim.key in {one.key for one in _claims_of(pod, snapshot)}
    ]
    waiting = [pod.key.name for pod in uses if not pod.spec.node_name and not pod.view.is_finished]
    if not waiting:
        return Why(about, f"has no devices: {_unplanned([pod for pod in uses if _is_there(pod)])}")
    return Why(
        about,
        f"has no devices yet; it waits with {', '.join(waiting)}",
        notes=(f"`allot explain pod/{waiting[0]}` says why",),
    )


def _unplanned(pods: Sequence[PodInfo]) -> str:
    """Why no devices are looked for: nobody is to be placed with them."""
    if not pods:
        return "they are found when a pod that uses it is placed, and none waits"
    names = _counted(tuple(f"{pod.key.name} on node {pod.spec.node_name}" for pod in pods))
    told = f"pod {names} waits" if len(pods) == 1 else f"pods {names} wait"
    return f"{told} for it, and {NOBODY_ALLOCATES}"


def _claims_of(pod: PodInfo, snapshot: Snapshot) -> list[ClaimInfo]:
    found = {claim.uid: claim for key in pod.claims if (claim := snapshot.claim(key)) is not None}
    extended = snapshot.extended_claim_of(pod.uid)
    if extended is not None:
        found.setdefault(extended.uid, extended)
    return list(found.values())


def _lost(claims: Sequence[ClaimInfo], reading: Reading) -> Iterator[str]:
    """Nothing is, as far as whoever asks can see, where nodes and what they publish may not be read."""
    for claim in claims if not reading.hidden(NODES, CAPACITY) else ():
        yield from lost(claim, reading.snapshot)


def _claim_line(claim: ClaimInfo, words: Mapping[str, str], snapshot: Snapshot) -> str:
    """`words` are for the requests of a claim that stands for extended resources."""
    if owner_of(claim.view.metadata) is None:
        words = {}
    if claim.is_held_numerically or (claim.is_classic and snapshot.is_numeric(claim)):
        return f"claim {claim.key.name}: {in_numbers(claim)}"
    if claim.is_classic:
        return _classic_line(claim)
    if claim.allocation is None:
        return f"claim {claim.key.name}: no devices yet"
    got = [
        f"{words.get(one.request, one.request)} = {one.driver}/{one.pool}/{one.device}"
        for one in claim.allocation.devices.results
    ]
    return f"claim {claim.key.name}: {', '.join(got) or 'asks for none'}"


def _classic_line(claim: ClaimInfo) -> str:
    name, status = claim.key.name, claim.view.status
    if claim.allocation is None:
        return f"claim {name}: not allocated yet by the driver of class {claim.view.spec.resource_class_name}"
    where = places((claim,))
    usable = f"usable on {_counted(tuple(sorted(where)))}" if where else "usable where its driver says"
    if claim.allocation.node_selector is None:
        usable = "usable on every node"
    going = ", being deallocated" if claim.is_to_be_deallocated else ""
    return f"claim {name}: allocated by driver {status.driver_name}, {usable}{going}"


def _alike(devices: Explanation) -> str:
    """The story of a node without names of devices and holders, so that equal ones are told together."""
    requests = [
        (
            one.claim,
            one.request,
            one.wanted,
            [(group.reason, group.devices, group.detail) for group in one.groups],
        )
        for one in devices.requests
    ]
    changes = [one.kind for one in devices.changes]
    return repr((devices.verdict, devices.error, requests, len(devices.pools), devices.conflicts, changes))


def _counted(nodes: tuple[str, ...]) -> str:
    shown = ", ".join(nodes[:4])
    return f"{shown} and {len(nodes) - 4} more" if len(nodes) > 4 else shown


def names_of(snapshot: Snapshot, namespace: str) -> Callable[[str], str]:
    """How holders are said: by name, with the namespace where it is another."""

    def named(uid: str) -> str:
        claim = snapshot.claim_with(uid)
        if claim is None:
            return "a claim that cannot be read"
        return claim.key.name if claim.key.namespace == namespace else str(claim.key)

    return named
