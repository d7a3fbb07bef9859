"""What the server itself writes into metadata, and what it checks there."""

from datetime import datetime
from typing import Any

from allot.api import FieldError, Fields, Kind, Path, age, errors, field, names
from allot.base import Ids

_PATH = Path("metadata")
_GENERATED_NAME_BASE_MAX = 58  # of 63, so that the suffix always fits a label
_SUFFIX_LENGTH = 5
_SERVER_OWNED = ("uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "generation")

_CHECKED = frozenset(("labels", "annotations", "ownerReferences", "finalizers"))

_NAME_RULES = {
    "subdomain": names.subdomain,
    "label": names.label_name,
    "label1035": names.label_1035,
    "path": names.path_segment,
    "none": names.path_segment,
}


def fill_in_create(kind: Kind, fields: Fields, namespace: str, now: datetime, ids: Ids) -> None:
    """Name, uid, creation time: everything a new object gets from the server."""
    metadata = metadata_of(fields)
    if metadata.get("resourceVersion"):
        raise errors.BadRequest("resourceVersion should not be set on objects to be created")
    settle_namespace(kind, metadata, namespace)
    for name in ("resourceVersion", "selfLink", *_SERVER_OWNED):
        metadata.pop(name, None)
    base = metadata.get("generateName")
    if base and not metadata.get("name"):
        metadata["name"] = f"{base[:_GENERATED_NAME_BASE_MAX]}{ids.suffix(_SUFFIX_LENGTH)}"
    metadata["uid"] = ids.uid()
    metadata["creationTimestamp"] = age.timestamp(now)
    if kind.counts_generation:
        metadata["generation"] = 1


def carry_over_update(new: Fields, old: Fields) -> None:
    """What an update cannot change is taken from the stored object."""
    metadata, before = metadata_of(new), old["metadata"]
    metadata.pop("selfLink", None)
    for name in _SERVER_OWNED:
        if name in before:
            metadata[name] = before[name]
        else:
            metadata.pop(name, None)
    if "generateName" in before:
        metadata.setdefault("generateName", before["generateName"])


def metadata_of(fields: Fields) -> dict[str, Any]:
    metadata = fields.get("metadata")
    if metadata is None:
        metadata = fields["metadata"] = {}
    if not isinstance(metadata, dict):
        raise errors.BadRequest("metadata must be an object")
    return metadata


def settle_namespace(kind: Kind, metadata: dict[str, Any], namespace: str) -> None:
    if not kind.namespaced:
        if metadata.pop("namespace", ""):
            raise errors.BadRequest("namespace may not be set on a cluster-scoped object")
        return
    said = metadata.get("namespace") or namespace
    if said != namespace:
        raise errors.BadRequest(
            "the namespace of the provided object does not match the namespace sent on the request"
        )
    metadata["namespace"] = namespace


def check_metadata(kind: Kind, fields: Fields, old: Fields | None) -> list[FieldError]:
    """What is wrong with the metadata. What is as it was before has been looked at before."""
    metadata: Fields = fields["metadata"]
    before: Fields = old["metadata"] if old is not None else {}
    problems = _check_name(kind, metadata) if old is None else _check_unchanged(metadata, before)
    if _CHECKED.isdisjoint(metadata) and _CHECKED.isdisjoint(before):
        return problems
    if metadata.get("labels") != before.get("labels"):
        problems += _check_labels(metadata.get("labels") or {})
    if metadata.get("annotations") != before.get("annotations"):
        problems += _check_annotations(metadata.get("annotations") or {})
    if metadata.get("ownerReferences") != before.get("ownerReferences"):
        problems += _check_owners(metadata.get("ownerReferences") or [])
    if metadata.get("finalizers") != before.get("finalizers"):
        problems += _check_finalizers(metadata, before)
    return problems


def _check_name(kind: Kind, metadata: dict[str, Any]) -> list[FieldError]:
    name = metadata.get("name") or ""
    if not name:
        return [field.required(_PATH / "name", "name or generateName is required")]
    return [field.invalid(_PATH / "name", name, text) for text in _NAME_RULES[kind.name_rule](name)]


def _check_unchanged(new: dict[str, Any], old: dict[str, Any]) -> list[FieldError]:
    return [
        field.invalid(_PATH / name, new.get(name), "field is immutable")
        for name in ("name", "namespace", "uid")
        if (new.get(name) or old.get(name)) != old.get(name)
    ]


def _check_labels(labels: dict[str, str]) -> list[FieldError]:
    keys = [(key, text) for key in labels for text in names.qualified(key)]
    values = [(value, text) for value in labels.values() for text in names.label_value(value)]
    return [field.invalid(_PATH / "labels", wrong, text) for wrong, text in (*keys, *values)]


def _check_annotations(annotations: dict[str, str]) -> list[FieldError]:
    path = _PATH / "annotations"
    problems = [
        field.invalid(path, key, text) for key in annotations for text in names.qualified(key.lower())
    ]
    size = sum(len(key.encode()) + len(value.encode()) for key, value in annotations.items())
    if size > names.ANNOTATIONS_BYTES_MAX:
        problems.append(field.too_long(path, names.ANNOTATIONS_BYTES_MAX))
    return problems


def _check_owners(owners: list[dict[str, Any]]) -> list[FieldError]:
    path, problems, controllers = _PATH / "ownerReferences", [], 0
    for at, owner in enumerate(owners):
        for name in ("apiVersion", "kind", "name", "uid"):
            if not owner.get(name):
                problems.append(
                    field.invalid(path[at] / name, owner.get(name) or "", f"{name} must not be empty")
                )
        controllers += owner.get("controller") is True
    if controllers > 1:
        problems.append(field.invalid(path, owners, "Only one reference can have Controller set to true"))
    return problems


def _check_finalizers(metadata: dict[str, Any], old: dict[str, Any]) -> list[FieldError]:
    path, finalizers = _PATH / "finalizers", metadata.get("finalizers") or []
    problems = [field.invalid(path, name, text) for name in finalizers for text in names.qualified(name)]
    if "orphan" in finalizers and "foregroundDeletion" in finalizers:
        problems.append(
            field.invalid(path, finalizers, "finalizer orphan and foregroundDeletion cannot be both set")
        )
    if old.get("deletionTimestamp"):
        added = [name for name in finalizers if name not in (old.get("finalizers") or [])]
        if added:
            text = f"no new finalizers can be added if the object is being deleted, found new: {added}"
            problems.append(field.forbidden(path, text))
    return problems
