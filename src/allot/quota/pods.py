"""What a pod uses, and what it must say where a quota counts it."""

from collections.abc import Iterable
from typing import Any

from allot.api import Fields, Quantity, compute, podresources

from .amounts import Usage
from .names import COMPUTE, HUGE_PAGES, LIMITS, REQUESTS

FINISHED = ("Succeeded", "Failed")

_MUST_BE_SAID = ("cpu", "memory", "requests.cpu", "requests.memory", "limits.cpu", "limits.memory")
"""Where a quota counts one of these, every container of a pod must say it."""


def is_finished(pod: Fields) -> bool:
    return (pod.get("status") or {}).get("phase") in FINISHED


def pod_usage(pod: Fields) -> Usage:
    """What a pod uses beside being an object. A finished one uses nothing."""
    if is_finished(pod):
        return {}
    spec = pod.get("spec") or {}
    return {
        "pods": Quantity.of(1),
        **_named(podresources.pod_needs(spec, "requests"), podresources.pod_needs(spec, "limits")),
    }


def _named(requests: Usage, limits: Usage) -> Usage:
    """Under the names that quotas use."""
    found: Usage = {}
    for name, amount in requests.items():
        if name in COMPUTE or name.startswith(HUGE_PAGES):
            found[name] = found[REQUESTS + name] = amount
        elif class_name := compute.class_of(name):
            counted = REQUESTS + compute.limits.QUALIFIED + class_name
            found[counted] = found[counted] + amount if counted in found else amount
        elif podresources.is_extended_resource(name):
            found[REQUESTS + name] = amount
    found |= {LIMITS + name: amount for name, amount in limits.items() if name in COMPUTE}
    return found


def unspecified(pod: Fields, names: Iterable[str]) -> str | None:
    """What containers leave unsaid that a quota with these names counts, as upstream tells it."""
    spec = pod.get("spec") or {}
    for_all = _named(
        podresources.pod_level_needs(spec, "requests"), podresources.pod_level_needs(spec, "limits")
    )
    required = sorted(name for name in set(names) if name in _MUST_BE_SAID and name not in for_all)
    containers: list[Any] = [*(spec.get("containers") or ()), *(spec.get("initContainers") or ())]
    said = [
        (
            one["name"],
            _named(
                podresources.container_needs(one, "requests"), podresources.container_needs(one, "limits")
            ),
        )
        for one in containers
    ]
    missing = {name: sorted(one for one, usage in said if name not in usage) for name in required}
    told = [f"{name} for: {','.join(silent)}" for name, silent in missing.items() if silent]
    return f"must specify {'; '.join(told)}" if told else None
