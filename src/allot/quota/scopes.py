"""Which objects a quota looks at.

A quota without scopes looks at everything in its namespace. One with scopes looks at pods that
are in all of them, and at nothing else; only VolumeAttributesClass speaks of volume claims.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from allot.api import Fields, kinds

from .names import PODS, VOLUME_CLAIMS, Source

_TERMS = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


def covers(spec: Fields, source: Source, fields: Fields) -> bool:
    """Whether a quota with this spec looks at an object."""
    return all(_is_in(need, source, fields) for need in _needs(spec))


def _needs(spec: Fields) -> Iterator[Mapping[str, Any]]:
    for scope in spec.get("scopes") or ():
        yield {"scopeName": scope, "operator": "Exists"}
    yield from (spec.get("scopeSelector") or {}).get("matchExpressions") or ()


def _is_in(need: Mapping[str, Any], source: Source, fields: Fields) -> bool:
    scope, spec = need.get("scopeName") or "", fields.get("spec") or {}
    if source == VOLUME_CLAIMS and scope == "VolumeAttributesClass":
        return _matches(need, _attribute_classes(fields))
    if source != PODS:
        return False
    if scope == "PriorityClass":
        name = spec.get("priorityClassName")
        return _matches(need, [name] if name else [])
    judge = _POD_SCOPES.get(scope)
    return judge is not None and judge(spec)


def _matches(need: Mapping[str, Any], found: Sequence[str]) -> bool:
    values = need.get("values") or ()
    match need.get("operator"):
        case "Exists":
            return bool(found)
        case "DoesNotExist":
            return not found
        case "In":
            return any(name in values for name in found)
        case "NotIn":
            return not any(name in values for name in found)
        case _:
            return False


def _attribute_classes(claim: Fields) -> list[str]:
    """What a volume claim wants and what it has."""
    status = claim.get("status") or {}
    names = [
        (claim.get("spec") or {}).get("volumeAttributesClassName"),
        status.get("currentVolumeAttributesClassName"),
        (status.get("modifyVolumeStatus") or {}).get("targetVolumeAttributesClassName"),
    ]
    return [name for name in names if name]


def _ends_by_itself(spec: Fields) -> bool:
    return spec.get("activeDeadlineSeconds") is not None


def _is_best_effort(spec: Fields) -> bool:
    return kinds.qos_class(spec) == "BestEffort"


def _looks_across_namespaces(spec: Fields) -> bool:
    affinity = spec.get("affinity") or {}
    for side in ("podAffinity", "podAntiAffinity"):
        rules = affinity.get(side) or {}
        preferred = [one.get("podAffinityTerm") or {} for one in rules.get(_PREFERRED) or ()]
        for term in [*(rules.get(_TERMS) or ()), *preferred]:
            if term.get("namespaces") or term.get("namespaceSelector") is not None:
                return True
    return False


_POD_SCOPES: Mapping[str, Callable[[Fields], bool]] = {
    "Terminating": _ends_by_itself,
    "NotTerminating": lambda spec: not _ends_by_itself(spec),
    "BestEffort": _is_best_effort,
    "NotBestEffort": lambda spec: not _is_best_effort(spec),
    "CrossNamespacePodAffinity": _looks_across_namespaces,
}
