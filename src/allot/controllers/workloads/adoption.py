"""Who belongs to whom: pods to replica sets, replica sets to deployments.

An object belongs to the owner that its controller reference names, by uid. One that
matches the selector and has no controller is adopted; one that is owned and matches no
longer is released. What another controls is never touched, whatever its labels say.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from allot.api import Object, meta
from allot.informers import controller_of

from .selecting import accepts

ORPHANS = "no controller"


def free_in_namespace(object: Object) -> tuple[str, ...]:
    """An index function: what nobody controls, by namespace. `cache.index(ORPHANS, ...)`."""
    return (object.namespace,) if controller_of(object) is None else ()


@dataclass(frozen=True, slots=True)
class Family:
    owned: tuple[Object, ...]
    adoptable: tuple[Object, ...]
    strangers: tuple[Object, ...]  # ours by reference, and no longer by label


def sort_out(owner: Object, selector: meta.LabelSelector, candidates: Iterable[Object]) -> Family:
    """An owner that is being deleted adopts nobody and releases nobody."""
    owned: list[Object] = []
    adoptable: list[Object] = []
    strangers: list[Object] = []
    leaving = owner.metadata.deletion_timestamp is not None
    for one in candidates:
        controller = controller_of(one)
        fits = accepts(selector, one.metadata.labels or {})
        if controller is not None:
            if controller.uid == owner.uid:
                (owned if fits or leaving else strangers).append(one)
        elif fits and not leaving and one.metadata.deletion_timestamp is None:
            adoptable.append(one)
    return Family(tuple(owned), tuple(adoptable), tuple(strangers))


def reference(owner: Object) -> dict[str, Any]:
    return {
        "apiVersion": owner.api_version,
        "kind": owner.kind,
        "name": owner.name,
        "uid": owner.uid,
        "controller": True,
        "blockOwnerDeletion": True,
    }


def with_owner(object: Object, owner: Object) -> dict[str, Any]:
    """The merge patch that adopts."""
    return _owners(object, [*_references(object), reference(owner)])


def without_owner(object: Object, owner: Object) -> dict[str, Any]:
    """The merge patch that releases."""
    return _owners(object, [one for one in _references(object) if one.get("uid") != owner.uid])


def _references(object: Object) -> list[dict[str, Any]]:
    return list((object.fields.get("metadata") or {}).get("ownerReferences") or ())


def _owners(object: Object, references: list[dict[str, Any]]) -> dict[str, Any]:
    same = {"uid": object.uid, "resourceVersion": object.resource_version}
    return {"metadata": {**same, "ownerReferences": references or None}}
