"""The rules of the pod fields that refer to claims.

Pure functions for whoever owns the Pod kind: `spec_errors` and `status_errors`
judge, `keep_unsaid_status` and `drop_gated` prepare.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence

from .. import field, names
from ..field import FieldError, Path
from ..gates import Gates
from ..kind import Fields
from . import gated
from .reading import objects

_STATUS = Path("status")
MIRROR_ANNOTATION = "kubernetes.io/config.mirror"
_HEALTH = ("Healthy", "Unhealthy", "Unknown")
_HEALTH_MESSAGE_MAX = 1024
_CONTAINERS = ("initContainers", "containers")
_STATUSES = ("containerStatuses", "initContainerStatuses", "ephemeralContainerStatuses")

UNSAID_STATUS = (
    "resourceClaimStatuses",
    "extendedResourceClaimStatus",
    "nodeAllocatableResourceClaimStatuses",
)
"""Old clients drop what they do not know; a status write without these keeps them."""

_GATED = gated.Table(
    {
        "DRAExtendedResource": ("status.extendedResourceClaimStatus",),
        "DRANodeAllocatableResources": ("status.nodeAllocatableResourceClaimStatuses",),
        "ResourceHealthStatus": tuple(f"status.{kind}.*.allocatedResourcesStatus" for kind in _STATUSES),
        "ResourceHealthStatusMessage": tuple(
            f"status.{kind}.*.allocatedResourcesStatus.*.resources.*.message" for kind in _STATUSES
        ),
    }
)


# Preparing


def drop_gated(new: Fields, old: Fields | None, gates: Gates) -> None:
    gated.drop(new, old, gates, _GATED)


def keep_unsaid_status(new: Fields, old: Fields) -> None:
    """For writes of pods/status. An empty list is said, and clears; absence and null are not."""
    before, status = old.get("status") or {}, new.setdefault("status", {})
    for name in UNSAID_STATUS:
        if status.get(name) is None and before.get(name) is not None:
            status[name] = before[name]


# The spec


def spec_errors(spec: Fields, path: Path, annotations: Mapping[str, str] | None = None) -> list[FieldError]:
    """Of a pod or a pod template; `annotations` are those of the pod."""
    return [
        *_claim_errors(spec.get("resourceClaims") or (), path / "resourceClaims", annotations or {}),
        *_container_errors(spec, path),
    ]


def _claim_errors(
    claims: Sequence[Fields], path: Path, annotations: Mapping[str, str]
) -> Iterator[FieldError]:
    if claims and MIRROR_ANNOTATION in annotations:
        yield field.forbidden(path, "static pods do not support resource claims")
    seen = set()
    for at, claim in enumerate(claims):
        name = claim.get("name") or ""
        if not name:
            yield field.required(path[at] / "name")
        elif name in seen:
            yield field.duplicate(path[at] / "name", name)
        else:
            yield from _invalid(path[at] / "name", name, names.label_name(name))
        seen.add(name)
        yield from _source_errors(claim, path[at])


def _source_errors(claim: Fields, path: Path) -> Iterator[FieldError]:
    sources = [
        name for name in ("resourceClaimName", "resourceClaimTemplateName") if claim.get(name) is not None
    ]
    if not sources:
        yield field.required(path, "must specify one of: `resourceClaimName`, `resourceClaimTemplateName`")
    elif len(sources) == 2:
        text = "at most one of `resourceClaimName` or `resourceClaimTemplateName` may be specified"
        yield field.invalid(path, claim, text)
    for name in sources:
        yield from _invalid(path / name, claim[name], names.subdomain(claim[name]))


def _container_errors(spec: Fields, path: Path) -> Iterator[FieldError]:
    known = {claim.get("name") for claim in spec.get("resourceClaims") or ()}
    for kind in _CONTAINERS:
        for at, container in enumerate(spec.get(kind) or ()):
            used = (container.get("resources") or {}).get("claims") or ()
            yield from _use_errors(used, known, (path / kind)[at] / "resources" / "claims")
    if (spec.get("resources") or {}).get("claims"):
        yield field.forbidden(path / "resources" / "claims", "claims may not be set for pod resources")


def _use_errors(used: Sequence[Fields], known: Collection[str | None], path: Path) -> Iterator[FieldError]:
    """Whole claims and single requests of them, none of it twice."""
    seen: set[tuple[str, str]] = set()
    for at, use in enumerate(used):
        name, request = use.get("name") or "", use.get("request") or ""
        if not name:
            yield field.required(path[at])
            continue
        if request:
            yield from _invalid(path[at] / "request", request, names.label_name(request))
        overlaps = any(other == name and (not request or part in ("", request)) for other, part in seen)
        if overlaps:
            yield field.duplicate(path[at], f"{name}/{request}" if request else name)
        seen.add((name, request))
        if name not in known:
            listed = ", ".join(sorted(one or "" for one in known)) or "none"
            text = f"must be one of the names in pod.spec.resourceClaims: {listed}"
            yield field.not_found(path[at], name)._replace(detail=text)


def _invalid(path: Path, value: str, texts: Sequence[str]) -> list[FieldError]:
    return [field.invalid(path, value, text) for text in texts]


# The status


def status_errors(pod: Fields) -> list[FieldError]:
    spec, status = pod.get("spec") or {}, pod.get("status") or {}
    found: list[FieldError] = []
    if statuses := status.get("resourceClaimStatuses"):
        found += _claim_status_errors(spec, statuses)
    if (extended := status.get("extendedResourceClaimStatus")) is not None:
        found += _extended_errors(spec, extended)
    if statuses := status.get("nodeAllocatableResourceClaimStatuses"):
        found += _allocatable_errors(spec, statuses)
    if any("allocatedResourcesStatus" in one for kind in _STATUSES for one in status.get(kind) or ()):
        found += _health_errors(spec, status)
    return found


def _claim_status_errors(spec: Fields, statuses: Sequence[Fields]) -> Iterator[FieldError]:
    known = {claim.get("name") for claim in spec.get("resourceClaims") or ()}
    path, seen = _STATUS / "resourceClaimStatuses", set()
    for at, status in enumerate(statuses):
        name, generated = status.get("name") or "", status.get("resourceClaimName")
        if name not in known:
            text = "must match the name of an entry in `spec.resourceClaims`"
            yield field.invalid(path[at] / "name", name, text)
        if name in seen:
            yield field.duplicate(path[at] / "name", name)
        seen.add(name)
        if generated is not None:
            yield from _invalid(path[at] / "resourceClaimName", generated, names.subdomain(generated))


def _extended_errors(spec: Fields, status: Fields) -> Iterator[FieldError]:
    """The claim that stands for extended resources, and which container gets which request."""
    path = _STATUS / "extendedResourceClaimStatus"
    name = status.get("resourceClaimName") or ""
    yield from _invalid(path / "resourceClaimName", name, names.subdomain(name))
    mappings, here = status.get("requestMappings") or (), path / "requestMappings"
    if not mappings:
        yield field.required(here, "at least one request mapping is required")
    asked = {container.get("name"): _requested(container) for container in _all_containers(spec)}
    seen = set()
    for at, mapping in enumerate(mappings):
        container, resource, request = (
            mapping.get(name) or "" for name in ("containerName", "resourceName", "requestName")
        )
        if container not in asked:
            yield field.invalid(here[at] / "containerName", container, "must match the name of a container")
        elif resource not in asked[container]:
            text = "must match a resource that the container requests"
            yield field.invalid(here[at] / "resourceName", resource, text)
        yield from _invalid(here[at] / "requestName", request, names.label_name(request))
        if (container, resource, request) in seen:
            yield field.duplicate(here[at], mapping)
        seen.add((container, resource, request))


def _all_containers(spec: Fields) -> Iterator[Fields]:
    for kind in _CONTAINERS:
        yield from objects(spec, kind)


def _requested(container: Fields) -> Collection[str]:
    requests: Mapping[str, str] = (container.get("resources") or {}).get("requests") or {}
    return requests


def _allocatable_errors(spec: Fields, statuses: Sequence[Fields]) -> Iterator[FieldError]:
    path, seen = _STATUS / "nodeAllocatableResourceClaimStatuses", set()
    containers = {container.get("name") for container in _all_containers(spec)}
    for at, status in enumerate(statuses):
        name = status.get("resourceClaimName") or ""
        if not name:
            yield field.required(path[at] / "resourceClaimName")
        else:
            yield from _invalid(path[at] / "resourceClaimName", name, names.subdomain(name))
        if name in seen:
            yield field.duplicate(path[at] / "resourceClaimName", name)
        seen.add(name)
        for i, container in enumerate(status.get("containers") or ()):
            if container not in containers:
                text = "must match the name of a container"
                yield field.invalid((path[at] / "containers")[i], container, text)


def _health_errors(spec: Fields, status: Fields) -> Iterator[FieldError]:
    mapped = (status.get("extendedResourceClaimStatus") or {}).get("requestMappings") or ()
    claim = (status.get("extendedResourceClaimStatus") or {}).get("resourceClaimName") or ""
    for kind, statuses in (("initContainers", "initContainerStatuses"), ("containers", "containerStatuses")):
        by_name = {container.get("name"): container for container in objects(spec, kind)}
        for at, one in enumerate(status.get(statuses) or ()):
            container = by_name.get(one.get("name"), {})
            known = _known_resources(container) | {
                f"claim:{claim}/{mapping.get('requestName')}"
                for mapping in mapped
                if mapping.get("containerName") == one.get("name")
            }
            listed = one.get("allocatedResourcesStatus") or ()
            yield from _resource_health(listed, known, (_STATUS / statuses)[at] / "allocatedResourcesStatus")
    for at, one in enumerate(status.get("ephemeralContainerStatuses") or ()):
        if one.get("allocatedResourcesStatus"):
            path = (_STATUS / "ephemeralContainerStatuses")[at] / "allocatedResourcesStatus"
            yield field.forbidden(path, "must not be set for ephemeral containers")


def _known_resources(container: Fields) -> set[str]:
    known = set(_requested(container))
    for use in (container.get("resources") or {}).get("claims") or ():
        name, request = use.get("name"), use.get("request")
        known.add(f"claim:{name}/{request}" if request else f"claim:{name}")
    return known


def _resource_health(listed: Sequence[Fields], known: Collection[str], path: Path) -> Iterator[FieldError]:
    seen = set()
    for at, resource in enumerate(listed):
        name = resource.get("name") or ""
        if name in seen:
            yield field.duplicate(path[at] / "name", name)
        seen.add(name)
        if name not in known:
            text = "must match one of the container's resource requirements"
            yield field.invalid(path[at] / "name", name, text)
        ids = set()
        for i, device in enumerate(resource.get("resources") or ()):
            here, device_id = (path[at] / "resources")[i], device.get("resourceID") or ""
            if device_id in ids:
                yield field.duplicate(here / "resourceID", device_id)
            ids.add(device_id)
            health = device.get("health") or ""
            if health and health not in _HEALTH:
                yield field.unsupported(here / "health", health, _HEALTH)
            if len((device.get("message") or "").encode()) > _HEALTH_MESSAGE_MAX:
                yield field.too_long(here / "message", _HEALTH_MESSAGE_MAX)
