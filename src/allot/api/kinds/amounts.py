"""Amounts of resources: what containers ask for and nodes have.

A resource is *native* (cpu, memory, hugepages-..., whatever has no prefix or one
of kubernetes.io) or *extended* (`example.com/gpu`). Extended resources are whole
things: their amounts are integers, and a container asks for exactly as many as
it may use.
"""

from functools import lru_cache
from typing import Any

from .. import names
from ..field import FieldError, Path, invalid
from ..quantity import Quantity

NATIVE = "kubernetes.io/"
HUGE_PAGES = "hugepages-"
STANDARD_CONTAINER = ("cpu", "memory", "ephemeral-storage")
_WHOLE = ("pods", "services", "replicationcontrollers", "resourcequotas", "secrets", "configmaps",
          "persistentvolumeclaims", "resourceclaims", "services.nodeports",
          "services.loadbalancers")  # fmt: skip
NOT_A_QUANTITY = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"


def is_native(resource: str) -> bool:
    return "/" not in resource or NATIVE in resource


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
    if (is_extended(resource) or resource in _WHOLE) and amount.milli() % 1000:
        return [invalid(path, written, "must be an integer")]
    return []


def validate_resource_name(resource: str, path: Path) -> list[FieldError]:
    found = [invalid(path, resource, wrong) for wrong in names.qualified(resource)]
    if not found and "/" not in resource and not _is_standard(resource):
        found.append(invalid(path, resource, "must be a standard resource type or fully qualified"))
    return found


def _is_standard(resource: str) -> bool:
    return resource in (*STANDARD_CONTAINER, "storage", "pods", *_WHOLE) or resource.startswith(
        (HUGE_PAGES, "requests.", "limits.", "count/")
    )


def validate_container_resource_name(resource: str, path: Path) -> list[FieldError]:
    """What a container can ask for."""
    if resource in STANDARD_CONTAINER:
        return []
    found = validate_resource_name(resource, path)
    if found:
        return found
    if "/" not in resource:
        if resource not in STANDARD_CONTAINER and not resource.startswith(HUGE_PAGES):
            found.append(invalid(path, resource, "must be a standard resource for containers"))
    elif not is_native(resource) and not is_extended(resource):
        found.append(invalid(path, resource, "doesn't follow extended resource name standard"))
    return found
