"""Amounts of resources: what containers ask for and nodes have.

A resource is *native* (cpu, memory, hugepages-..., whatever Kubernetes names itself, or has a
prefix of kubernetes.io), *extended* (`example.com/gpu`), or a *class* of compute resources, which
has a bare name (`gpu-gold`). Extended resources and classes are whole things: their amounts are
integers, and a container asks for exactly as many as it may use. Where the gate of classes is off
admission refuses bare names (`apiserver.admission.classnames`).
"""

from functools import lru_cache
from typing import Any

from .. import names
from ..compute import naming
from ..field import FieldError, Path, invalid
from ..quantity import Quantity
from ..standard import CONTAINER as STANDARD_CONTAINER
from ..standard import HUGE_PAGES, WHOLE, is_standard

NATIVE = "kubernetes.io/"
NOT_A_QUANTITY = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"


def is_native(resource: str) -> bool:
    return "/" not in resource or NATIVE in resource


@lru_cache(maxsize=1024)
def is_whole(resource: str) -> bool:
    """Devices may stand behind the name, whoever serves them."""
    return is_extended(resource) or naming.is_bare(resource)


@lru_cache(maxsize=1024)
def is_extended(resource: str) -> bool:
    """A name with a foreign prefix, that quota can also count under `requests.`"""
    if is_native(resource) or resource.startswith("requests."):
        return False
    return not names.qualified(f"requests.{resource}")


@lru_cache(maxsize=4096)
def parse(written: str | int | float) -> Quantity | None:
    """The quantity, or None for what is not one. Clusters use few amounts, again and again."""
    try:
        return Quantity.parse(written)
    except ValueError:
        return None


def validate_amount(resource: str, written: Any, path: Path) -> list[FieldError]:
    """Is this an amount that `resource` can have?"""
    amount = parse(written)
    if amount is None:
        return [invalid(path, written, NOT_A_QUANTITY)]
    if amount.sign < 0:
        return [invalid(path, str(amount), "must be greater than or equal to 0")]
    if (is_whole(resource) or resource in WHOLE) and amount.milli() % 1000:
        return [invalid(path, written, "must be an integer")]
    return []


def validate_resource_name(resource: str, path: Path) -> list[FieldError]:
    found = [invalid(path, resource, wrong) for wrong in names.qualified(resource)]
    if not found and "/" not in resource and not (is_standard(resource) or naming.is_bare(resource)):
        found.append(invalid(path, resource, "must be a standard resource type or fully qualified"))
    return found


def validate_container_resource_name(resource: str, path: Path) -> list[FieldError]:
    """What a container can ask for."""
    if resource in STANDARD_CONTAINER:
        return []
    found = validate_resource_name(resource, path)
    if found:
        return found
    if "/" not in resource:
        if not resource.startswith(HUGE_PAGES) and not naming.is_bare(resource):
            found.append(invalid(path, resource, "must be a standard resource for containers"))
    elif not is_native(resource) and not is_extended(resource):
        found.append(invalid(path, resource, "doesn't follow extended resource name standard"))
    return found
