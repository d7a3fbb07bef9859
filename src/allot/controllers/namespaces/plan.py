"""What is deleted in which order, how soon to look again, and what to tell meanwhile. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from allot.api import meta
from allot.informers import Catalogue, ResourceId, Served

_PAUSE_S_MIN, _PAUSE_S_MAX = 0.2, 30.0


@dataclass(frozen=True, slots=True)
class Remaining:
    """What is left of one resource, and who holds it."""

    what: ResourceId
    count: int
    finalizers: Mapping[str, int]  # how many objects have each


@dataclass(frozen=True, slots=True)
class Findings:
    """What one pass over a namespace found."""

    remaining: Sequence[Remaining] = ()
    failures: Sequence[str] = ()
    unavailable: Sequence[str] = ()  # parts of the API that could not be asked

    @property
    def is_empty(self) -> bool:
        return not (self.remaining or self.failures or self.unavailable)


def stages(catalogue: Catalogue) -> tuple[tuple[Served, ...], ...]:
    """What to delete: each stage only once the one before it is gone."""
    content = [one for one in catalogue.served if one.what.namespaced and one.can("list", "delete")]
    pods = tuple(one for one in content if (one.what.group, one.what.plural) == ("", "pods"))
    return pods, tuple(one for one in content if one not in pods)


def pause_s(since_deletion_s: float) -> float:
    """Soon at first; a namespace that has been stuck for long is looked at now and then."""
    return min(_PAUSE_S_MAX, max(_PAUSE_S_MIN, since_deletion_s / 8))


def conditions(found: Findings, before: Iterable[meta.Condition], now: str) -> list[dict[str, Any]]:
    """All five of them, with the time since when each stands as it does."""
    known = {one.type: one for one in before}
    shown = []
    for type, is_so, reason, message in _statements(found):
        status = "True" if is_so else "False"
        old = known.get(type)
        since = old.last_transition_time if old is not None and old.status == status else now
        shown.append(
            {
                "type": type,
                "status": status,
                "reason": reason,
                "message": message,
                "lastTransitionTime": since,
            }
        )
    return shown


def says_the_same(new: Sequence[Mapping[str, Any]], old: Sequence[meta.Condition]) -> bool:
    def said(type: str, status: str, reason: str, message: str) -> tuple[str, str, str, str]:
        return type, status, reason, message

    return {said(one["type"], one["status"], one["reason"], one["message"]) for one in new} == {
        said(one.type, one.status, one.reason, one.message) for one in old
    }


def _statements(found: Findings) -> Sequence[tuple[str, bool, str, str]]:
    away, failed = list(found.unavailable), list(found.failures)
    left = [f"{_name(one.what)}: {one.count}" for one in found.remaining]
    held: dict[str, int] = {}
    for one in found.remaining:
        for finalizer, count in one.finalizers.items():
            held[finalizer] = held.get(finalizer, 0) + count
    holding = [f"{finalizer} on {count}" for finalizer, count in sorted(held.items())]
    return (
        _either("NamespaceDeletionDiscoveryFailure", away, "DiscoveryFailed", "ResourcesDiscovered",
                "parts of the API cannot be asked", "every resource was found"),
        _either("NamespaceDeletionGroupVersionParsingFailure", [], "GroupVersionParsingFailed",
                "ParsedGroupVersions", "", "every version was understood"),
        _either("NamespaceDeletionContentFailure", failed, "ContentDeletionFailed", "ContentDeleted",
                "some content could not be deleted", "all content was deleted, or is being deleted"),
        _either("NamespaceContentRemaining", left, "SomeResourcesRemain", "ContentRemoved",
                "objects remain", "nothing is left"),
        _either("NamespaceFinalizersRemaining", holding, "SomeFinalizersRemain", "ContentHasNoFinalizers",
                "finalizers remain", "no content is held by a finalizer"),
    )  # fmt: skip


def _either(
    type: str, which: Sequence[str], bad: str, good: str, when_bad: str, when_good: str
) -> tuple[str, bool, str, str]:
    if which:
        return type, True, bad, f"{when_bad}: {', '.join(which)}"
    return type, False, good, when_good


def _name(what: ResourceId) -> str:
    return f"{what.plural}.{what.group}" if what.group else what.plural
