"""When a pod must leave, and why. Pure.

A pod must leave when a claim that it names and that is reserved for it holds a device
with a NoExecute taint that the claim does not tolerate, or not for long enough. What is
tolerated was written into the allocation, with the device.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Literal, NamedTuple

from allot.allocation import DeviceId
from allot.api import age, core, resource

from .views import NO_EXECUTE, claim_names, device_of, results

_LONG_AGO = datetime(1, 1, 1, tzinfo=UTC)


class Source(NamedTuple):
    """Who put a taint on a device."""

    kind: Literal["rule", "slice"]
    name: str


Taints = Callable[[DeviceId], Iterable[tuple[Source, resource.DeviceTaint]]]
"""The taints that a device has."""


@dataclass(frozen=True, slots=True)
class Cause:
    """One taint on one device of one claim, and when it drives the pod away."""

    due: datetime
    claim: str
    device: DeviceId
    source: Source
    taint: resource.DeviceTaint

    def __str__(self) -> str:
        taint = f"{self.taint.key}={self.taint.value}" if self.taint.value else self.taint.key
        by = f" by DeviceTaintRule {self.source.name}" if self.source.kind == "rule" else ""
        return f"device {self.device} of claim {self.claim} is tainted with {taint}:{self.taint.effect}{by}"


@dataclass(frozen=True, slots=True)
class Eviction:
    causes: tuple[Cause, ...]  # the most urgent first

    @property
    def due(self) -> datetime:
        return self.causes[0].due

    def rules(self, until: datetime | None = None) -> tuple[str, ...]:
        """The rules behind it, or those that want it by a moment."""
        wanted = [one for one in self.causes if until is None or one.due <= until]
        return tuple(dict.fromkeys(one.source.name for one in wanted if one.source.kind == "rule"))


def eviction(pod: core.Pod, claims: Sequence[resource.ResourceClaim], taints: Taints) -> Eviction | None:
    """None if the pod may stay. `claims` may hold more than the pod's own."""
    if not may_be_evicted(pod):
        return None
    named = claim_names(pod)
    causes = [
        cause
        for claim in claims
        if claim.metadata.name in named and is_reserved(claim, pod)
        for cause in causes_of(claim, taints)
    ]
    return Eviction(tuple(sorted(causes, key=lambda cause: cause.due))) if causes else None


def may_be_evicted(pod: core.Pod) -> bool:
    """It is on a node, still has something to do, and nobody has asked it to end."""
    return bool(pod.spec.node_name) and not pod.is_finished and not pod.metadata.deletion_timestamp


def is_reserved(claim: resource.ResourceClaim, pod: core.Pod) -> bool:
    return claim.metadata.namespace == pod.metadata.namespace and any(
        one.uid == pod.metadata.uid for one in claim.status.reserved_for
    )


def causes_of(claim: resource.ResourceClaim, taints: Taints) -> Iterator[Cause]:
    """Why the users of a claim must leave."""
    for result in results(claim):
        device = device_of(result)
        for source, taint in taints(device):
            due = due_at(taint, result.tolerations)
            if due is not None:
                yield Cause(due, claim.metadata.name, device, source, taint)


def due_at(taint: resource.DeviceTaint, tolerations: Iterable[resource.DeviceToleration]) -> datetime | None:
    """When a taint drives away whoever tolerates that much; None means never.

    Several tolerations may fit: the least patient one counts.
    """
    if taint.effect != NO_EXECUTE:
        return None
    since = age.moment(taint.time_added) or _LONG_AGO
    fitting = [one for one in tolerations if one.lets_stay_with(taint)]
    if not fitting:
        return since
    limits = [one.toleration_seconds for one in fitting if one.toleration_seconds is not None]
    if not limits:
        return None
    try:
        return since + timedelta(seconds=max(0, min(limits)))
    except OverflowError:  # later than any date
        return None
