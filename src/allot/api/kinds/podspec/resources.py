"""What containers ask for and may use."""

from collections.abc import Mapping, Sequence
from typing import Any

from ...field import FieldError, Path, forbidden, invalid, required, unsupported
from ...standard import HUGE_PAGES
from ..amounts import (
    is_whole,
    parse,
    validate_amount,
    validate_container_resource_name,
)  # fmt: skip
from ..reading import obj

RESIZE_POLICIES = ("NotRequired", "RestartContainer")
POD_LEVEL = ("cpu", "memory")


def validate_requirements(resources: Mapping[str, Any], path: Path) -> list[FieldError]:
    """Requests and limits of one container."""
    limits, requests = obj(resources, "limits"), obj(resources, "requests")
    found: list[FieldError] = []
    for name, written in limits.items():
        found += validate_container_resource_name(name, (path / "limits")[name])
        found += validate_amount(name, written, (path / "limits")[name])
    for name, written in requests.items():
        found += validate_container_resource_name(name, (path / "requests")[name])
        found += validate_amount(name, written, (path / "requests")[name])
    return found + validate_request_and_limit(requests, limits, path)


def validate_request_and_limit(
    requests: Mapping[str, Any], limits: Mapping[str, Any], path: Path
) -> list[FieldError]:
    found: list[FieldError] = []
    for name, written in requests.items():
        request, limit = parse(written), parse(limits[name]) if name in limits else None
        at = path / "requests"
        if request is None:
            continue
        if limit is not None and request.compare(limit) != 0 and _is_whole(name):
            found.append(invalid(at, written, f"must be equal to {name} limit of {limits[name]}"))
        elif limit is not None and request > limit:
            found.append(
                invalid(at, written, f"must be less than or equal to {name} limit of {limits[name]}")
            )
        elif name not in limits and _is_whole(name):
            found.append(required(path / "limits", "Limit must be set for non overcommitable resources"))
    pages = [name for name in (*requests, *limits) if name.startswith(HUGE_PAGES)]
    if pages and not {"cpu", "memory"} & {*requests, *limits}:
        found.append(forbidden(path, "HugePages require cpu or memory"))
    return found


def _is_whole(resource: str) -> bool:
    """It cannot be promised to more than can have it."""
    return is_whole(resource) or resource.startswith(HUGE_PAGES)


def validate_pod_level(resources: Mapping[str, Any], path: Path) -> list[FieldError]:
    """spec.resources: an envelope around all containers."""
    found: list[FieldError] = []
    for kind in ("limits", "requests"):
        for name, written in obj(resources, kind).items():
            at = (path / kind)[name]
            if name not in POD_LEVEL and not name.startswith(HUGE_PAGES):
                found.append(unsupported(at, name, POD_LEVEL))
            found += validate_amount(name, written, at)
    return found + validate_request_and_limit(obj(resources, "requests"), obj(resources, "limits"), path)


def validate_resize_policy(policies: Sequence[Mapping[str, Any]], path: Path) -> list[FieldError]:
    found: list[FieldError] = []
    for index, policy in enumerate(policies):
        at = path[index]
        if policy.get("resourceName") not in POD_LEVEL:
            found.append(unsupported(at / "resourceName", policy.get("resourceName"), POD_LEVEL))
        if policy.get("restartPolicy") not in RESIZE_POLICIES:
            found.append(unsupported(at / "restartPolicy", policy.get("restartPolicy"), RESIZE_POLICIES))
    return found
