"""Namespaces.

A namespace ends in two steps: deletion marks it Terminating, and it goes when
its own finalizers, which are in the spec, have been taken off through the
finalize subresource.
"""

from datetime import datetime

from ... import names
from ...field import FieldError, Path, invalid
from ...kind import Column, Fields, Kind, Rules, Version, WriteContext
from ..reading import items, section, text

NAME_LABEL = "kubernetes.io/metadata.name"
FINALIZER = "kubernetes"
STANDARD_FINALIZERS = (FINALIZER, "orphan", "foregroundDeletion")


def _default(namespace: Fields, now: datetime) -> None:
    """The label by which policies select a namespace by its name."""
    metadata = section(namespace, "metadata")
    if metadata.get("name"):
        section(metadata, "labels")[NAME_LABEL] = metadata["name"]


def _prepare_create(namespace: Fields, context: WriteContext) -> None:
    _default(namespace, context.now)
    namespace["status"] = {"phase": "Active"}
    finalizers = items(namespace, "spec", "finalizers")
    if FINALIZER not in finalizers:
        section(namespace, "spec")["finalizers"] = [*finalizers, FINALIZER]


def _prepare_update(new: Fields, old: Fields, context: WriteContext) -> None:
    """Only the finalize subresource takes finalizers off."""
    section(new, "spec")["finalizers"] = items(old, "spec", "finalizers")


def _validate_finalizers(namespace: Fields) -> list[FieldError]:
    found = []
    for index, finalizer in enumerate(items(namespace, "spec", "finalizers")):
        path = Path("spec.finalizers")[index]
        wrong = names.qualified(finalizer)
        found += [invalid(path, finalizer, text) for text in wrong]
        if not wrong and "/" not in finalizer and finalizer not in STANDARD_FINALIZERS:
            text = "name is neither a standard finalizer name nor is it fully qualified"
            found.append(invalid(path, finalizer, text))
    return found


def _validate_create(namespace: Fields, context: WriteContext) -> list[FieldError]:
    return _validate_finalizers(namespace)


def _validate_update(new: Fields, old: Fields, context: WriteContext) -> list[FieldError]:
    return _validate_finalizers(new)


def _validate_status(new: Fields, old: Fields, context: WriteContext) -> list[FieldError]:
    phase = text(new, "status", "phase")
    going = bool(new["metadata"].get("deletionTimestamp"))
    if not going and phase not in ("", "Active"):
        why = "may only be 'Active' if `deletionTimestamp` is empty"
    elif going and phase != "Terminating":
        why = "may only be 'Terminating' if `deletionTimestamp` is not empty"
    else:
        return []
    return [invalid(Path("status.phase"), phase, why)]


NAMESPACE = Kind(
    group="",
    kind="Namespace",
    plural="namespaces",
    singular="namespace",
    short_names=("ns",),
    versions=(Version("v1", "io.k8s.api.core.v1.Namespace", default=_default),),
    hub="v1",
    namespaced=False,
    has_status=True,
    other_subresources=("finalize",),
    verbs=("create", "delete", "get", "list", "patch", "update", "watch"),
    name_rule="label",
    rules=Rules(
        prepare_create=_prepare_create,
        prepare_update=_prepare_update,
        validate_create=_validate_create,
        validate_update=_validate_update,
        validate_status=_validate_status,
    ),
    columns=(
        Column("Name", format="name", description="Name must be unique within a cluster."),
        Column("Status", description="Active, or Terminating while its content is removed."),
        Column("Age", description="How long ago the object was created."),
    ),
    cells=lambda namespace, age: [namespace["metadata"]["name"], text(namespace, "status", "phase"), age],
    selectable={"status.phase": lambda namespace: text(namespace, "status", "phase")},
)
