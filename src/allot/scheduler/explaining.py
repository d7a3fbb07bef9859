"""Why a pod waits, where its owner looks: the condition PodScheduled.

A pod that cannot be placed is told at once, and then again when the answer changes, at
most every few seconds. A pod that cannot even be tried, most often because its claim is
still being made, is told only when that has lasted.
"""

from collections import Counter
from dataclasses import dataclass
from typing import Any

from allot.api import age, errors
from allot.base import Clock
from allot.client import Client, Patch
from allot.informers import Again, Reconciler, Telemetry

from .cycle import Unplaced
from .framework import Rejection
from .pod import PodInfo
from .snapshot import Snapshot

EVERY_S = 5.0
PATIENCE_S = 2.0
REASONS_MAX = 12
MESSAGE_MAX = 1024
UNSCHEDULABLE = "Unschedulable"


@dataclass(slots=True)
class _Said:
    pod: PodInfo
    reason: str
    message: str
    written: tuple[str, str] | None = None
    written_s: float = float("-inf")


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


class Explainer:
    def __init__(self, client: Client, clock: Clock, telemetry: Telemetry, name: str) -> None:
        self._pods = client.resource("", "v1", "pods")
        self._clock = clock
        self._said: dict[str, _Said] = {}
        self._writing = Reconciler(f"{name}_explanations", self._write, clock, telemetry, workers=4)

    def explain(self, outcome: Unplaced, snapshot: Snapshot) -> str:
        message = summary(outcome)[:MESSAGE_MAX]
        self.say(outcome.state.pod, UNSCHEDULABLE, message)
        return message

    def say(self, pod: PodInfo, reason: str, message: str) -> None:
        self._say(pod, reason, message, 0.0)

    def say_if_it_lasts(self, pod: PodInfo, reason: str, message: str) -> None:
        self._say(pod, reason, message, PATIENCE_S)

    def forget(self, uid: str) -> None:
        self._said.pop(uid, None)

    async def run(self) -> None:
        await self._writing.run()

    def _say(self, pod: PodInfo, reason: str, message: str, after_s: float) -> None:
        said = self._said.get(pod.uid)
        if said is None:
            said = self._said[pod.uid] = _Said(pod, reason, message)
        said.pod, said.reason, said.message = pod, reason, message
        if said.written != (reason, message):
            now_s = self._clock.monotonic_s()
            self._writing.add_after(pod.uid, max(after_s, said.written_s + EVERY_S - now_s))

    async def _write(self, uid: str) -> Again | None:
        said = self._said.get(uid)
        if said is None or said.written == (said.reason, said.message):
            return None
        saying = said.reason, said.message
        try:
            await self._pods.patch(
                said.pod.key.name,
                self._patch(said),
                said.pod.key.namespace,
                type=Patch.STRATEGIC,
                subresource="status",
            )
        except (errors.NotFound, errors.Conflict):
            self._said.pop(uid, None)  # gone, or another pod by now
            return None
        said.written, said.written_s = saying, self._clock.monotonic_s()
        if saying != (said.reason, said.message):
            return Again(EVERY_S)
        return None

    def _patch(self, said: _Said) -> dict[str, Any]:
        condition = {
            "type": "PodScheduled",
            "status": "False",
            "reason": said.reason,
            "message": said.message,
            "lastTransitionTime": age.timestamp(self._clock.now()),
        }
        return {"metadata": {"uid": said.pod.uid}, "status": {"conditions": [condition]}}
