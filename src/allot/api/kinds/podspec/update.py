"""What may change in a pod that exists.

Nearly nothing: images, a shorter deadline, further tolerations, gates taken off,
and, while a pod is still gated, where it may go, if that narrows it.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from ...field import FieldError, Path, forbidden, invalid
from ...kind import Fields
from ..reading import items, obj
from .containers import validate_image
from .scheduling import validate_tolerations

ONLY_THESE = (
    "pod updates may not change fields other than `spec.containers[*].image`,"
    "`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations`"
    " (only additions to existing tolerations),`spec.terminationGracePeriodSeconds`"
    " (allow it to be set to 1 if it was previously negative)"
)
_SPEC = Path("spec")
_SORTS = ("containers", "initContainers")
_FREE = ("activeDeadlineSeconds", "tolerations", "schedulingGates")
_NARROWED = ("nodeSelector", "affinity")


def validate_pod_update(new: Fields, old: Fields) -> list[FieldError]:
    spec, before = obj(new, "spec"), obj(old, "spec")
    if spec == before:
        return []  # as of most writes: they are about labels and annotations
    for sort in _SORTS:
        if len(items(spec, sort)) != len(items(before, sort)):
            return [forbidden(_SPEC / sort, "pod updates may not add or remove containers")]
    found = [
        *_validate_images(spec, before),
        *_validate_deadline(spec, before),
        *_validate_tolerations(items(spec, "tolerations"), items(before, "tolerations")),
        *_validate_gates(spec, before),
    ]
    if found:
        return found
    gated = bool(items(before, "schedulingGates"))
    changed = _differences(_fixed(spec, gated), _fixed(before, gated))
    if changed:
        return [forbidden(_SPEC, f"{ONLY_THESE}: {', '.join(changed)}")]
    return _validate_narrowing(spec, before) if gated else []


def _validate_images(spec: Fields, before: Fields) -> list[FieldError]:
    found: list[FieldError] = []
    for sort in _SORTS:
        pairs = zip(items(spec, sort), items(before, sort), strict=True)
        for index, (container, old) in enumerate(pairs):
            if container.get("image") != old.get("image"):
                found += validate_image(container.get("image") or "", (_SPEC / sort)[index] / "image")
    return found


def _validate_deadline(spec: Fields, before: Fields) -> list[FieldError]:
    path = _SPEC / "activeDeadlineSeconds"
    new, old = spec.get("activeDeadlineSeconds"), before.get("activeDeadlineSeconds")
    if new is not None and not 1 <= new <= 2**31 - 1:
        return [invalid(path, new, f"must be between 1 and {2**31 - 1}, inclusive")]
    if old is not None and new is None:
        return [invalid(path, new, "must not update from a positive integer to nil value")]
    if old is not None and new is not None and new > old:
        return [invalid(path, new, "must be less than or equal to previous value")]
    return []


def _validate_tolerations(
    new: Sequence[Mapping[str, Any]], old: Sequence[Mapping[str, Any]]
) -> list[FieldError]:
    """Old ones stay; how long one of NoExecute lasts may change."""
    path = _SPEC / "tolerations"

    def without_time(toleration: Mapping[str, Any]) -> dict[str, Any]:
        return {key: value for key, value in toleration.items() if key != "tolerationSeconds" and value}

    kept = [without_time(toleration) for toleration in new]
    if any(without_time(toleration) not in kept for toleration in old):
        return [forbidden(path, "existing toleration can not be modified except its tolerationSeconds")]
    return validate_tolerations(new, path) if list(new) != list(old) else []


def _validate_gates(spec: Fields, before: Fields) -> list[FieldError]:
    old = {gate.get("name") for gate in items(before, "schedulingGates")}
    return [
        forbidden(
            (_SPEC / "schedulingGates")[index],
            f"only deletion is allowed, but found new scheduling gate '{gate.get('name')}'",
        )
        for index, gate in enumerate(items(spec, "schedulingGates"))
        if gate.get("name") not in old
    ]


def _fixed(spec: Fields, gated: bool) -> Fields:
    """The part that must stay as it is; shared with the spec."""
    free = (*_FREE, *_NARROWED) if gated else _FREE
    fixed = {name: value for name, value in spec.items() if name not in free}
    for sort in _SORTS:
        if containers := spec.get(sort):
            fixed[sort] = [
                {name: value for name, value in container.items() if name != "image"}
                for container in containers
            ]
    return fixed


def _differences(new: Fields, old: Fields) -> list[str]:
    return [
        f"spec.{name}" for name in sorted({*new, *old}) if (new.get(name) or None) != (old.get(name) or None)
    ]


def _validate_narrowing(spec: Fields, before: Fields) -> list[FieldError]:
    """A gated pod may be given less choice of nodes, never more."""
    found: list[FieldError] = []
    selector, old_selector = obj(spec, "nodeSelector"), obj(before, "nodeSelector")
    if any(selector.get(key) != value for key, value in old_selector.items()):
        text = "only additions to spec.nodeSelector are allowed (no mutations or deletions)"
        found.append(invalid(_SPEC / "nodeSelector", selector, text))
    if _without_node_affinity(spec) != _without_node_affinity(before):
        found.append(forbidden(_SPEC / "affinity", "only nodeAffinity may change while a pod is gated"))
    return found + _validate_narrower_affinity(spec, before)


def _without_node_affinity(spec: Fields) -> dict[str, Any]:
    affinity = obj(spec, "affinity")
    return {name: value for name, value in affinity.items() if name != "nodeAffinity" and value}


def _validate_narrower_affinity(spec: Fields, before: Fields) -> list[FieldError]:
    name = "requiredDuringSchedulingIgnoredDuringExecution"
    path = _SPEC / "affinity" / "nodeAffinity" / name
    old = items(before, "affinity", "nodeAffinity", name, "nodeSelectorTerms")
    new = items(spec, "affinity", "nodeAffinity", name, "nodeSelectorTerms")
    if not old:
        return []
    if len(new) != len(old):
        text = "no additions/deletions to non-empty NodeSelectorTerms list are allowed"
        return [invalid(path / "nodeSelectorTerms", new, text)]
    for index, (term, was) in enumerate(zip(new, old, strict=True)):
        for part in ("matchExpressions", "matchFields"):
            if any(need not in items(term, part) for need in items(was, part)):
                text = f"only additions are allowed in {part} of an existing term (no mutations or deletions)"
                return [invalid((path / "nodeSelectorTerms")[index], term, text)]
    return []
