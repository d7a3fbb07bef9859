"""Every template that a set of pods ever had, as ControllerRevisions: `kubectl rollout history` and `undo`.

A revision holds the patch that brings its template back. Going back to a template gives
its revision the next number.
"""

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from allot.api import Object, meta

from .adoption import reference

POD_LABEL = "controller-revision-hash"
"""Which revision a pod is of: its hash for daemon sets, its name for stateful sets."""

_LETTERS = 10
_PREFIX_MAX = 223
"""Of a revision's name, before the hash; room is left under the 253 letters that a name may have."""


@dataclass(frozen=True, slots=True)
class HistoryRules:
    """What the owner of a history says about it."""

    selector: meta.LabelSelector
    limit: int  # how many are kept of those that nobody needs
    collisions: int  # how often a name was another's


def data_of(owner: Object) -> dict[str, Any]:
    template = owner.fields["spec"].get("template") or {}
    return {"spec": {"template": {**template, "$patch": "replace"}}}


def template_in(revision: Object) -> Mapping[str, Any]:
    """The template that a revision brings back."""
    template = ((revision.fields.get("data") or {}).get("spec") or {}).get("template") or {}
    return {name: value for name, value in template.items() if name != "$patch"}


def hash_of(owner: Object, collisions: int) -> str:
    """Short, the same for the same template, and another one after each collision."""
    said = json.dumps([data_of(owner), collisions], sort_keys=True)
    return hashlib.sha256(said.encode()).hexdigest()[:_LETTERS]


def number(revision: Object) -> int:
    return int(revision.fields.get("revision") or 0)


def current(owner: Object, known: Sequence[Object]) -> Object | None:
    """The newest revision of the owner's template."""
    wanted = data_of(owner)
    return max((one for one in known if one.fields.get("data") == wanted), key=number, default=None)


def next_number(known: Sequence[Object]) -> int:
    return max(map(number, known), default=0) + 1


def new_revision(owner: Object, known: Sequence[Object], collisions: int, label: str) -> dict[str, Any]:
    """`label` is where the revision carries its hash."""
    mark = hash_of(owner, collisions)
    template = owner.fields["spec"].get("template") or {}
    metadata = {
        "name": f"{owner.name[:_PREFIX_MAX].rstrip('-.')}-{mark}",
        "namespace": owner.namespace,
        "labels": {**((template.get("metadata") or {}).get("labels") or {}), label: mark},
        "annotations": dict(owner.metadata.annotations or {}),
        "ownerReferences": [reference(owner)],
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "ControllerRevision",
        "metadata": metadata,
        "data": data_of(owner),
        "revision": next_number(known),
    }


def outdated(limit: int, known: Sequence[Object], is_used: Callable[[Object], bool]) -> list[Object]:
    """The oldest beyond the history that is kept; what pods still have stays."""
    idle = [one for one in known if not is_used(one)]
    return sorted(idle, key=number)[: max(0, len(idle) - limit)]
