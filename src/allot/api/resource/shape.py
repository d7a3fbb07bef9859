"""Structured or classic: the two shapes of a claim, which share one stored form.

A claim is classic (KEP-3063) when its spec names a resource class, for life: the spec never changes. Its
driver allocates it, and the one request that its stored form shows is made by the server for clients that
know structured claims alone. So whoever wants to know which devices a claim asks for asks `requests_of`.
"""

from collections.abc import Sequence
from typing import Any, Final

from ..kind import Fields
from .types import DeviceRequest, ResourceClaim

NUMERIC_FINALIZER: Final = "numeric.dra.k8s.io/delete-protection"
IMMEDIATE: Final = "Immediate"
WAIT_FOR_FIRST_CONSUMER: Final = "WaitForFirstConsumer"

_NO_REQUESTS: Final[tuple[DeviceRequest, ...]] = ()


def is_classic(claim: ResourceClaim) -> bool:
    return claim.spec.resource_class_name != ""


def is_numeric(claim: ResourceClaim) -> bool:
    """Whether the scheduler allocated a claim of a resource class itself, or is about to (KEP-4381). What it
    writes there, and nobody else, are results."""
    if not claim.spec.resource_class_name:
        return False
    allocation = claim.status.allocation
    is_held = allocation is not None and bool(allocation.devices.results)
    return is_held or NUMERIC_FINALIZER in claim.metadata.finalizers


def is_numeric_in(claim: Fields) -> bool:
    """`is_numeric`, of a decoded claim."""
    if not class_name_of(claim.get("spec") or {}):
        return False
    allocation = (claim.get("status") or {}).get("allocation") or {}
    is_held = bool((allocation.get("devices") or {}).get("results"))
    return is_held or NUMERIC_FINALIZER in ((claim.get("metadata") or {}).get("finalizers") or ())


def is_immediate(claim: ResourceClaim) -> bool:
    """Whether the driver of a classic claim allocates it at once, whatever pods will need."""
    return claim.spec.allocation_mode == IMMEDIATE


def requests_of(claim: ResourceClaim) -> tuple[DeviceRequest, ...]:
    """What a claim asks the allocator for: nothing, if it is classic."""
    return _NO_REQUESTS if claim.spec.resource_class_name else claim.spec.devices.requests


def class_name_of(spec: Fields) -> str:
    """The resource class that the spec of a claim names; "" is a structured claim's."""
    name: str = spec.get("resourceClassName") or ""
    return name


def requests_in(spec: Fields) -> Sequence[Any]:
    """`requests_of`, of the decoded spec of a claim."""
    if spec.get("resourceClassName"):
        return ()
    found: Sequence[Any] = (spec.get("devices") or {}).get("requests") or ()
    return found
