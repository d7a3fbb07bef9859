"""What a claim uses: itself, and devices by class, under every name that the class serves.

A classic claim counts under the name of its resource class and under no device class: what it holds is
its driver's to know.

A claim is charged for what it asks, when it is made, and not for what it is given: `All`
counts as the most that one claim can hold, and alternatives in different classes are each
charged, since any of them may be chosen. Administrators' access is charged as well.

The claim that the scheduler makes for the extended resources of a pod asks for devices that
the pod has been charged for already. The claim then pays only the rest, so that each name counts
each device once (QUOTA2).
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from allot.api import Fields, Quantity, resource

from .amounts import ZERO, Usage
from .names import CLAIMS, CLAIMS_SUFFIX
from .pods import pod_usage
from .views import ExtendedNames, in_all_views, names_of

_limits = resource.limits
ONE = Quantity.of(1)


@dataclass(frozen=True, slots=True)
class Owner:
    """The pod that a claim was made for, and every extended-resource claim that was made for it."""

    pod: Fields
    claims: Sequence[Fields]


FindOwner = Callable[[Fields], Owner | None]


def claim_usage(claim: Fields, extended_names: ExtendedNames, find_owner: FindOwner) -> Usage:
    found: Usage = {CLAIMS.plural: ONE}
    if class_name := resource.shape.class_name_of(claim.get("spec") or {}):
        return {**found, f"{class_name}{CLAIMS_SUFFIX}": ONE}
    for class_name, count in devices_by_class(claim).items():
        for name in names_of(class_name, extended_names):
            found[name] = Quantity.of(count)
    owner = find_owner(claim) if is_extended_claim(claim) else None
    if owner is None or not _stands_for(claim, owner):
        return found
    return _less(found, in_all_views(pod_usage(owner.pod), extended_names))


def devices_by_class(claim: Fields) -> dict[str, int]:
    total: dict[str, int] = {}
    for request in resource.shape.requests_in(claim.get("spec") or {}):
        for class_name, count in _largest(request).items():
            total[class_name] = total.get(class_name, 0) + count
    return total


def classes_of(claim: Fields) -> list[str]:
    return sorted(devices_by_class(claim))


def is_extended_claim(claim: Fields) -> bool:
    annotations = claim["metadata"].get("annotations") or {}
    return annotations.get(_limits.EXTENDED_RESOURCE_CLAIM_ANNOTATION) == "true"


def owning_pod(claim: Fields) -> Mapping[str, Any] | None:
    """The reference to the pod that a claim was made for."""
    for owner in claim["metadata"].get("ownerReferences") or ():
        if owner.get("controller") and owner.get("kind") == "Pod" and owner.get("apiVersion") == "v1":
            return owner  # type: ignore[no-any-return]
    return None


def claims_for(pod_uid: str, claims: Iterable[Fields]) -> list[Fields]:
    """Those that were made for the extended resources of a pod."""
    made = (claim for claim in claims if is_extended_claim(claim))
    return [claim for claim in made if (owning_pod(claim) or {}).get("uid") == pod_uid]


def _largest(request: Fields) -> dict[str, int]:
    """Of the alternatives of one request the largest in each class."""
    exactly = request.get("exactly")
    largest: dict[str, int] = {}
    for one in [exactly] if exactly else request.get("firstAvailable") or ():
        name = one.get("deviceClassName") or ""
        all_of_them = one.get("allocationMode") == "All"
        count = _limits.ALLOCATION_RESULTS_MAX if all_of_them else one.get("count") or 1
        largest[name] = max(largest.get(name, 0), count)
    largest.pop("", None)
    return largest


def _stands_for(claim: Fields, owner: Owner) -> bool:
    """Whether this is the claim of the pod's extended resources: the one that the pod names, else the oldest.

    A scheduler that starts over may leave one behind, and only one may say that it is paid for.
    """
    reference = owning_pod(claim)
    if reference is None or reference.get("uid") != owner.pod["metadata"].get("uid"):
        return False
    linked = (owner.pod.get("status") or {}).get("extendedResourceClaimStatus") or {}
    name = claim["metadata"]["name"]
    if linked.get("resourceClaimName"):
        return bool(linked["resourceClaimName"] == name)
    candidates = [claim, *(one for one in owner.claims if is_extended_claim(one))]
    return bool(min(candidates, key=_age)["metadata"]["name"] == name)


def _age(claim: Fields) -> tuple[str, str]:
    return claim["metadata"].get("creationTimestamp") or "", claim["metadata"]["name"]


def _less(found: Usage, paid: Usage) -> Usage:
    """What is left to pay."""
    rest = {name: amount - paid.get(name, ZERO) for name, amount in found.items()}
    return {name: amount if amount.sign > 0 else ZERO for name, amount in rest.items()}
