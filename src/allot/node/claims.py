"""N1: which claims a pod uses, and whether all of them are there for it. Pure."""

from collections.abc import Callable, Mapping
from typing import NamedTuple

from allot.api import Object, Quantity, core, podclaims, resource

Lookup = Callable[[str], Object | None]
"""The claim of a name in the pod's namespace, as last told."""


class ClaimRef(NamedTuple):
    uid: str
    namespace: str
    name: str


class NotReady(Exception):
    """The pod must not start. The message says which claim it waits for, and for what."""


class Unfinished(NotReady):
    """Drivers were told to prepare, and not all of them have done so: what they hold is not known."""


class Unreserved(NotReady):
    """A classic claim that is the pod's to use has not been reserved for it. Scheduler and driver reserve
    before a pod is bound, so whoever bound this one asked neither: it never starts."""


def claims_of(
    pod: core.Pod, lookup: Lookup, counted: Mapping[str, str] = {}, *, heeds_classic: bool = True
) -> tuple[ClaimRef, ...]:
    """The pod's claims: every one allocated, and reserved for this pod. Raises NotReady.

    `counted` is what the node has to give out by itself, device plugins included. A node that does not heed
    classic claims starts pods as if they had none.
    """
    found = []
    for use in podclaims.used(pod):
        if not use.name:
            raise NotReady(f"the claim of {use.entry} has not been made yet")
        claim = lookup(use.name)
        if claim is None and _is_left_over(pod, use.name, counted):
            continue
        if claim is None:
            raise NotReady(f"claim {use.name} does not exist")
        if not heeds_classic and resource.shape.is_classic(claim.view(resource.ResourceClaim)):
            continue
        require_ready(pod, claim, use.is_generated)
        found.append(_ref(claim))
    return tuple(dict.fromkeys(found))


def require_ready(pod: core.Pod, claim: Object, is_generated: bool = False) -> None:
    view = claim.view(resource.ResourceClaim)
    owner = view.metadata.controller
    if is_generated and (owner is None or owner.uid != pod.metadata.uid):
        raise NotReady(f"claim {claim.name} was not made for this pod")  # C4
    owner = view.metadata.controlling_pod
    if owner is not None and owner.uid != pod.metadata.uid:
        raise NotReady(f"claim {claim.name} was made for pod {owner.name} and is used by it alone")  # C4, C12
    is_reserved = any(one.uid == pod.metadata.uid for one in view.status.reserved_for)
    if not is_reserved and resource.shape.is_classic(view):
        raise Unreserved(f"claim {claim.name} is not reserved for this pod")
    if view.status.allocation is None:
        raise NotReady(f"claim {claim.name} is not allocated")
    if not is_reserved:
        raise NotReady(f"claim {claim.name} is not reserved for this pod")


def known_claims(pod: core.Pod, lookup: Lookup) -> tuple[ClaimRef, ...]:
    """The claims of a pod that runs already, as far as they are still there."""
    found = (lookup(name) for name in podclaims.names(pod))
    return tuple(dict.fromkeys(_ref(claim) for claim in found if claim is not None))


def _is_left_over(pod: core.Pod, name: str, counted: Mapping[str, str]) -> bool:
    """Whether an attempt at another node put the name there, and its claim went with it.

    The server lets the name be replaced and not removed, and where device plugins serve the
    pod no attempt replaces it.
    """
    extended = pod.status.extended_resource_claim_status
    if extended is None or extended.resource_claim_name != name or not extended.request_mappings:
        return False
    return all(Quantity.parse(counted.get(one.resource_name, "0")) for one in extended.request_mappings)


def _ref(claim: Object) -> ClaimRef:
    return ClaimRef(claim.uid, claim.namespace, claim.name)
