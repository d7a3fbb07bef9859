"""What is written into a DeviceTaintRule. Pure."""

from dataclasses import dataclass
from typing import Any

from allot.api import meta, resource

from .agenda import Progress
from .views import NO_EXECUTE

TYPE = "EvictionInProgress"
NO_EFFECT = "None"  # the effect of a rule that only asks


@dataclass(frozen=True, slots=True)
class Prospect:
    """What a rule would do."""

    published: int  # devices
    allocated: int
    pods: int
    namespaces: int


def wants_prospect(rule: resource.DeviceTaintRule) -> bool:
    """A rule without effect is answered once, and again only when its spec has changed."""
    known = condition_of(rule)
    is_answered = (
        known is not None
        and known.reason == "NoEffect"
        and known.observed_generation == rule.metadata.generation
    )
    return rule.spec.taint.effect == NO_EFFECT and not is_answered


def condition_of(rule: resource.DeviceTaintRule) -> meta.Condition | None:
    return next((one for one in rule.status.conditions if one.type == TYPE), None)


def condition(
    rule: resource.DeviceTaintRule, progress: Progress, prospect: Prospect | None, now: str
) -> dict[str, Any] | None:
    """The condition to write, or None when the rule has it. `prospect` is needed for effect None alone."""
    if rule.spec.taint.effect == NO_EFFECT and prospect is None:
        return None
    reason, sentences = _reason_and_sentences(rule.spec.taint.effect, progress, prospect)
    if progress.evicted:
        sentences.append(f"{_pods(progress.evicted)} evicted since starting the controller.")
    status = "True" if reason == "PodsPendingEviction" else "False"
    message, generation = " ".join(sentences), rule.metadata.generation
    known = condition_of(rule)
    if known is not None:
        same = (known.status, known.reason, known.message, known.observed_generation)
        if same == (status, reason, message, generation):
            return None
        now = known.last_transition_time if known.status == status else now
    return {
        "type": TYPE,
        "status": status,
        "reason": reason,
        "message": message,
        "observedGeneration": generation,
        "lastTransitionTime": now,
    }


def _reason_and_sentences(
    effect: str, progress: Progress, prospect: Prospect | None
) -> tuple[str, list[str]]:
    if effect == NO_EXECUTE:
        if progress.pending:
            need = "needs" if progress.pending == 1 else "need"
            where = _namespaces(progress.namespaces)
            return "PodsPendingEviction", [f"{_pods(progress.pending)} {need} to be evicted in {where}."]
        if progress.evicted:
            return "Completed", []
        return "NotStarted", ["No pod needs to be evicted."]
    if prospect is not None:
        return "NoEffect", [
            f"{_devices(prospect.published, 'published')} selected.",
            f"{_devices(prospect.allocated, 'allocated')} selected.",
            f"{_pods(prospect.pods)} would be evicted in {_namespaces(prospect.namespaces)}"
            " if the effect was NoExecute.",
            "This information will not be updated again.",
            "Recreate the DeviceTaintRule to trigger an update.",
        ]
    return "OtherEffect", ["Eviction only happens for the NoExecute effect."]


def _pods(count: int) -> str:
    return "1 pod" if count == 1 else f"{count} pods"


def _devices(count: int, how: str) -> str:
    return f"1 {how} device" if count == 1 else f"{count} {how} devices"


def _namespaces(count: int) -> str:
    return "1 namespace" if count == 1 else f"{count} different namespaces"
