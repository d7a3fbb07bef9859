"""Why a pod waits, where its owner looks: the condition PodScheduled and an event.

A pod that cannot be placed is told in the blink of an eye (by then it may have found a place
after all), and then again when the answer changes, at most every few seconds. A pod that
cannot even be tried, most often because its claim is still being made, is told only when that
has lasted. One whose devices are being made ready is told what they lack. One that is bound is
not told anything any more.

Of pods that are alike only one is tried when something changes (`waiting`). What it is told then
holds for the others, so they are told the same, a moment later and one after the other (P3).
"""

from collections import Counter
from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Any

from allot.api import Object, age, core, errors
from allot.base import Clock
from allot.client import Client, Patch
from allot.informers import WARNING, Again, Events, Reconciler, Telemetry

from .cycle import Unplaced, said
from .framework import Rejection
from .pod import PodInfo
from .snapshot import Snapshot

EVERY_S = 5.0
BLINK_S = 0.25
PATIENCE_S = 2.0
ALIKE_AFTER_S = 1.0
ALIKE_WITHIN_S = 3.0
"""With the two waits before it: less than the ten seconds of P3."""
ALIKE_EVERY_S, ALIKE_EVERY_S_MIN = 0.01, 0.002
CHANGES_MAX = 8
"""How often a pod may change while it is told something, before that waits a moment."""
REASONS_MAX = 12
MESSAGE_MAX = 1024
UNSCHEDULABLE, FAILED, AWAITED = "Unschedulable", "SchedulerError", "BindingConditionsPending"


@dataclass(slots=True, eq=False, repr=False)
class _Alike:
    """Pods that fit in the same places, by uid, and what one of them was told last."""

    group: Hashable
    pods: dict[str, None] = field(default_factory=dict)
    told: str = ""
    heard: int = 0


@dataclass(slots=True)
class _Known:
    pod: PodInfo
    reason: str
    why: Unplaced | str | None  # None: nothing to say at present
    heard: int = 0  # what came later is truer
    alike: _Alike | None = None
    written: tuple[str, str] | None = None
    written_s: float = float("-inf")


def moments_s(count: int) -> list[float]:
    """When each of so many pods is told the same: the more there are the closer, within reason."""
    every_s = max(ALIKE_EVERY_S_MIN, min(ALIKE_EVERY_S, ALIKE_WITHIN_S / max(count, 1)))
    return [number * every_s for number in range(1, count + 1)]


def summary(outcome: Unplaced) -> str:
    """One line in kubectl's manner: how many nodes say no, and why."""
    alone = [one for one, count in outcome.reasons.items() if not count]
    if alone:
        return f"0/{outcome.nodes} nodes are available: {alone[0].reason}."
    told = _counted(outcome.reasons)
    return f"0/{outcome.nodes} nodes are available: {told or 'there are no nodes'}."


def _counted(reasons: Counter[Rejection]) -> str:
    by_words: Counter[str] = Counter()
    for rejection, count in reasons.items():
        by_words[rejection.reason] += count
    ordered = sorted(by_words.items(), key=lambda one: (-one[1], one[0]))
    told = [f"{count} {words}" for words, count in ordered[:REASONS_MAX]]
    if len(ordered) > REASONS_MAX:
        told.append(f"and {len(ordered) - REASONS_MAX} more reasons")
    return ", ".join(told)


def explained(outcome: Unplaced, snapshot: Snapshot) -> str:
    """The summary, and what plugins have to say: what is the matter with the devices, say."""
    return f"{summary(outcome)} {said(outcome.sentences, snapshot)}".rstrip()[:MESSAGE_MAX]


def _waits_since(pod: Object) -> str:
    """When it was first told that it has no place: words change, and it waits all the same."""
    told = (one for one in pod.view(core.Pod).status.conditions if one.type == "PodScheduled")
    return next((one.last_transition_time for one in told if one.status == "False"), "")


class Explainer:
    """Nothing is worked out before it is written: a pod that is tried often is not explained often."""

    def __init__(
        self, client: Client, clock: Clock, telemetry: Telemetry, events: Events, snapshot: Snapshot
    ) -> None:
        self._pods = client.resource("", "v1", "pods")
        self._clock = clock
        self._events = events
        self._snapshot = snapshot
        self._known: dict[str, _Known] = {}
        self._alike: dict[Hashable, _Alike] = {}
        self._heard = 0
        self._writing: Reconciler[str | _Alike] = Reconciler(
            "scheduler_explanations", self._tell, clock, telemetry, workers=4
        )

    def unplaced(self, outcome: Unplaced) -> None:
        """No node takes the pod now."""
        self._say(outcome.state.pod, UNSCHEDULABLE, outcome, BLINK_S)

    def failed(self, pod: PodInfo, error: str) -> None:
        """A node was found, and then something went wrong."""
        self._say(pod, FAILED, error, 0.0)

    def refused(self, pod: PodInfo, why: str) -> None:
        """A node was found, and a driver would not have it or did not answer. Most often the next one is
        found in a moment."""
        self._say(pod, UNSCHEDULABLE, why, BLINK_S)

    def awaits(self, pod: PodInfo, what: str, after_s: float = 0.0) -> None:
        """A node was found, and a driver has something to do first. No event says that it failed."""
        self._say(pod, AWAITED, what, after_s)

    def gated(self, pod: PodInfo, why: str) -> None:
        """The pod cannot be tried yet. Most often that is over in a moment."""
        self._say(pod, UNSCHEDULABLE, why, PATIENCE_S)

    def withdraw(self, uid: str) -> None:
        """A node was found: what was to be said is not true any more."""
        known = self._known.get(uid)
        if known is not None:
            known.why = None

    def forget(self, uid: str) -> None:
        known = self._known.pop(uid, None)
        if known is not None:
            self._part(known)

    async def run(self) -> None:
        await self._writing.run()

    def _say(self, pod: PodInfo, reason: str, why: Unplaced | str, after_s: float) -> None:
        known = self._known.get(pod.uid)
        if known is None:
            known = self._known[pod.uid] = _Known(pod, reason, why)
        self._heard += 1
        known.pod, known.reason, known.why, known.heard = pod, reason, why, self._heard
        self._part(known)
        if isinstance(why, Unplaced):
            known.alike = self._alike.setdefault(why.group, _Alike(why.group))
            known.alike.pods[pod.uid] = None
        self._writing.add_after(pod.uid, max(after_s, self._due_s(known)))

    def _due_s(self, known: _Known) -> float:
        """How long from now until it may be told again."""
        return known.written_s + EVERY_S - self._clock.monotonic_s()

    def _part(self, known: _Known) -> None:
        alike, known.alike = known.alike, None
        if alike is not None:
            del alike.pods[known.pod.uid]
            if not alike.pods:
                del self._alike[alike.group]

    async def _tell(self, key: str | _Alike) -> Again | None:
        if isinstance(key, str):
            return await self._write(key)
        self._spread(key)
        return None

    def _spread(self, alike: _Alike) -> None:
        """Those who were not tried are told what the one was told who was."""
        untold: list[str] = []
        for uid in alike.pods:
            known = self._known[uid]
            if known.heard < alike.heard and known.why is not None:
                known.reason, known.why, known.heard = UNSCHEDULABLE, alike.told, alike.heard
                if known.written != (known.reason, known.why):
                    untold.append(uid)
        for uid, after_s in zip(untold, moments_s(len(untold)), strict=True):
            self._writing.add_after(uid, max(after_s, self._due_s(self._known[uid])))

    async def _write(self, uid: str) -> Again | None:
        known = self._known.get(uid)
        if known is None or known.why is None:
            return None
        why = known.why
        message = explained(why, self._snapshot) if isinstance(why, Unplaced) else why[:MESSAGE_MAX]
        if isinstance(why, Unplaced) and known.alike is not None:
            self._learn(known.alike, message, known.heard)
        if known.written == (known.reason, message):
            return None
        pod, reason = known.pod, known.reason
        patched = await self._patch(pod, reason, message)
        if patched is None:
            if self._known.get(uid) is known:
                self.forget(uid)
            return None
        known.written = (reason, message)
        if reason != AWAITED:  # what comes of the waiting is told at once
            self._events.record(pod.object, WARNING, "FailedScheduling", message)
            known.written_s = self._clock.monotonic_s()
        if known.why is why:
            known.pod = PodInfo.of(patched)
            return None
        return Again(EVERY_S)

    def _learn(self, alike: _Alike, message: str, heard: int) -> None:
        if heard > alike.heard:
            alike.heard = heard
            if message != alike.told:
                alike.told = message
                self._writing.add_after(alike, ALIKE_AFTER_S)

    async def _patch(self, pod: PodInfo, reason: str, message: str) -> Object | None:
        """None when the pod is gone, another, or bound by now: a binding must not be denied afterwards.

        What is refused for another reason than that the pod changed is an error, and is tried again after
        a wait that grows: the same words would be refused again.
        """
        now = pod.object
        for _ in range(CHANGES_MAX):
            if now.uid != pod.uid or now.view(core.Pod).spec.node_name:
                return None
            try:
                return await self._pods.patch(
                    now.name,
                    self._condition(now, reason, message),
                    now.namespace,
                    type=Patch.STRATEGIC,
                    subresource="status",
                )
            except errors.NotFound:
                return None
            except (errors.Conflict, errors.Invalid) as refused:  # it changed since, or is another
                try:
                    read = await self._pods.get(pod.key.name, pod.key.namespace)
                except errors.NotFound:
                    return None
                if isinstance(refused, errors.Invalid) and read.resource_version == now.resource_version:
                    raise
                now = read
        raise errors.Conflict(f"pod {pod.key} changes faster than it can be told why it waits")

    def _condition(self, pod: Object, reason: str, message: str) -> dict[str, Any]:
        condition = {
            "type": "PodScheduled",
            "status": "False",
            "reason": reason,
            "message": message,
            "lastTransitionTime": _waits_since(pod) or age.timestamp(self._clock.now()),
        }
        known = {"uid": pod.uid, "resourceVersion": pod.resource_version}
        return {"metadata": known, "status": {"conditions": [condition]}}
