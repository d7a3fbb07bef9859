"""Which claims a pod needs, and what a generated one looks like.

Pure: what the caches say goes in, what to do comes out.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from allot.api import Object, classic, errors, resource

from .views import Pod, PodClaim, claim_of, is_for

FIELD_MANAGER = "ResourceClaimController"
_BASE_MAX, SUFFIX = 57, 5
"""Leaves room in a label of 63 letters for a dash and the random ones."""

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


def new_claim(pod: Object, entry: str, template: Object, name: str) -> dict[str, Any]:
    """The claim to create. Everything in the template is carried over, known here or not.

    The name is chosen here and not by the server: after a create whose outcome is unknown it
    can be tried again.
    """
    spec = template.fields.get("spec") or {}
    wanted = spec.get("spec") or {}
    is_classic = resource.shape.class_name_of(wanted) != ""
    given: Mapping[str, Any] = spec.get("metadata") or {}
    owner = {"apiVersion": "v1", "kind": "Pod", "name": pod.name, "uid": pod.uid, "controller": True}
    metadata = {
        **given,
        "name": name,
        **({} if is_classic else {"generateName": base_name(pod.name, entry)}),
        "namespace": pod.namespace,
        "annotations": {**(given.get("annotations") or {}), _ANNOTATION: entry},
        "ownerReferences": [owner],
    }
    return {
        "apiVersion": classic.limits.API_VERSION if is_classic else f"{resource.limits.GROUP}/v1",
        "kind": "ResourceClaim",
        "metadata": metadata,
        "spec": classic.in_v1alpha1(wanted) if is_classic else wanted,
    }


def class_of(template: Object) -> str:
    """The resource class of the claims that are made from a template; "" where they are structured."""
    return resource.shape.class_name_of((template.fields.get("spec") or {}).get("spec") or {})


def base_name(pod: str, entry: str) -> str:
    """What the random letters are put behind. Both names give up letters in proportion."""
    whole = f"{pod}-{entry}-"
    if len(whole) <= _BASE_MAX:
        return whole
    kept = (text[: len(text) * _BASE_MAX // len(whole)] for text in (pod, entry))
    return "-".join(kept)


def failure(pod: str, entry: str, refused: errors.ApiError) -> str:
    """What the event says about a claim that could not be made.

    Every attempt has another name. It is told without its random letters, as a server that had
    chosen it would tell it: then the same trouble makes one event that is counted.
    """
    base, text = base_name(pod, entry), str(refused)
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


def asks_for_admin_access(claim: Mapping[str, Any]) -> bool:
    requests = resource.shape.requests_in(claim.get("spec") or {})
    return any((request.get("exactly") or {}).get("adminAccess") for request in requests)
