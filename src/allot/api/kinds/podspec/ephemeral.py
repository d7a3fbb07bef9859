"""Containers that join a pod which is there already, to look into it: `kubectl debug`.

They are added one after the other, through a subresource of their own, and stay as they are. They reserve
nothing and are not looked after, so whatever would say how is refused.
"""

from collections.abc import Mapping
from typing import Any

from ... import names
from ...field import FieldError, Path, duplicate, forbidden, invalid, not_found, required
from ...kind import Fields, WriteContext
from ..reading import items, obj
from .containers import RestOfPod, validate_container

_AT = Path("spec") / "ephemeralContainers"
_OF_THE_WRITE = ("managedFields", "resourceVersion")
_NEVER = (
    "lifecycle",
    "livenessProbe",
    "ports",
    "readinessProbe",
    "resizePolicy",
    "resources",
    "startupProbe",
)


def keep_the_rest(new: Fields, old: Fields, context: WriteContext) -> None:
    """Whoever adds a container changes nothing else of the pod."""
    added = items(new, "spec", "ephemeralContainers")
    metadata = new["metadata"]
    for name in {*new, *old} - {"metadata", "apiVersion", "kind"}:
        if name in old:
            new[name] = old[name]
        else:
            del new[name]
    new["metadata"] = {**old["metadata"], **{one: metadata[one] for one in _OF_THE_WRITE if one in metadata}}
    new["spec"] = {**old["spec"], "ephemeralContainers": list(added)}
    if not added:
        del new["spec"]["ephemeralContainers"]


def validate_ephemeral(new: Fields, old: Fields, context: WriteContext) -> list[FieldError]:
    spec, before = obj(new, "spec"), items(old, "spec", "ephemeralContainers")
    containers = items(spec, "ephemeralContainers")
    known = {one.get("name"): one for one in before}
    found: list[FieldError] = []
    if known.keys() - {one.get("name") for one in containers}:
        found.append(forbidden(_AT, "existing ephemeral containers may not be removed"))
    taken = {one.get("name") for sort in ("containers", "initContainers") for one in items(spec, sort)}
    around = RestOfPod.of(spec)
    for index, container in enumerate(containers):
        at, name = _AT[index], container.get("name") or ""
        if name in taken:
            found.append(duplicate(at / "name", name))
        taken.add(name)
        if name in known:
            if dict(container) != dict(known[name]):
                found.append(forbidden(at, f"existing ephemeral container {name!r} may not be changed"))
            continue
        found += _validate_new(container, at, around, spec)
    return found


def _validate_new(
    container: Mapping[str, Any], path: Path, around: RestOfPod, spec: Fields
) -> list[FieldError]:
    name, target = container.get("name") or "", container.get("targetContainerName") or ""
    found = [invalid(path / "name", name, wrong) for wrong in names.label_name(name)] if name else []
    if not name:
        found.append(required(path / "name"))
    found += validate_container(container, path, around)
    found += [
        forbidden(path / never, "cannot be set for an Ephemeral Container")
        for never in _NEVER
        if container.get(never)
    ]
    if any(mount.get("subPath") or mount.get("subPathExpr") for mount in items(container, "volumeMounts")):
        found.append(
            forbidden(path / "volumeMounts", "cannot be set with subPath for an Ephemeral Container")
        )
    regular = {one.get("name") for sort in ("containers", "initContainers") for one in items(spec, sort)}
    if target and target not in regular:
        found.append(not_found(path / "targetContainerName", target))
    return found
