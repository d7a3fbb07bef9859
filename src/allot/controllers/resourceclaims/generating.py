"""Which claims a pod needs, and what is to be done about each.

Pure: what the caches say goes in, what to do comes out.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from allot.api import Object, errors, generated, resource

from .views import Pod, PodClaim, claim_of, is_for

_ANNOTATION = resource.limits.POD_CLAIM_NAME_ANNOTATION


@dataclass(frozen=True, slots=True)
class Use:
    """The claim is there, or somebody else will see to it."""

    name: str


@dataclass(frozen=True, slots=True)
class Adopt:
    """A claim was made for the pod and never recorded."""

    name: str


@dataclass(frozen=True, slots=True)
class Create:
    template: str


@dataclass(frozen=True, slots=True)
class Skip:
    """No claim is wanted."""


Step = Use | Adopt | Create | Skip


def step_for(pod: Pod, entry: PodClaim, recorded: Object | None, owned: Sequence[Object]) -> Step:
    """What to do about one entry of a pod's claims.

    `recorded` is the claim that the pod's status names for it, if that claim exists;
    `owned` are the claims that the pod owns.
    """
    if entry.resource_claim_name:
        return Use(entry.resource_claim_name)
    status = pod.recorded(entry.name)
    if status is not None and status.resource_claim_name is None:
        return Skip()
    if recorded is not None and is_for(claim_of(recorded), pod):
        return Use(recorded.name)
    orphans = [one for one in owned if is_made_for(one, pod, entry.name) and not _is_leaving(one)]
    if orphans:
        return Adopt(min(orphans, key=lambda one: (one.metadata.creation_timestamp or "", one.name)).name)
    return Create(entry.resource_claim_template_name) if entry.resource_claim_template_name else Skip()


def is_made_for(claim: Object, pod: Pod, entry: str) -> bool:
    """Was the claim generated for this entry of this pod?"""
    named = (claim.metadata.annotations or {}).get(_ANNOTATION)
    return named == entry and is_for(claim_of(claim), pod)


def _is_leaving(claim: Object) -> bool:
    return claim.metadata.deletion_timestamp is not None


def failure(pod: str, entry: str, refused: errors.ApiError) -> str:
    """What the event says about a claim that could not be made.

    Every attempt has another name. It is told without its random letters, as a server that had
    chosen it would tell it: then the same trouble makes one event that is counted.
    """
    base, text = generated.base_name(pod, entry), str(refused)
    if refused.name.startswith(base):
        text = text.replace(refused.name, base)
    return f"PodResourceClaim {entry}: {text}"


def statuses(pod: Pod, names: Mapping[str, str]) -> list[dict[str, Any]]:
    """All of status.resourceClaimStatuses: an apply that leaves an entry out would remove it."""
    merged: dict[str, str | None] = {
        one.name: one.resource_claim_name for one in pod.status.resource_claim_statuses
    }
    merged.update(names)
    return [
        {"name": entry, "resourceClaimName": name} if name is not None else {"name": entry}
        for entry, name in merged.items()
    ]
