"""Every template that a set ever had, as ControllerRevisions: `kubectl rollout history` and `undo`.

A revision holds the patch that brings its template back. Going back to a template gives
its revision the next number.
"""

import hashlib
import json
from collections.abc import Sequence
from typing import Any

from allot.api import Object

from ..workloads import reference
from .views import HASH_LABEL, set_of

_LETTERS = 10
_PREFIX_MAX = 223
"""Of a revision's name, before the hash; room is left under the 253 letters that a name may have."""


def data_of(owner: Object) -> dict[str, Any]:
    template = owner.fields["spec"].get("template") or {}
    return {"spec": {"template": {**template, "$patch": "replace"}}}


def hash_of(owner: Object) -> str:
    """Short, the same for the same template, and another one after each collision."""
    said = json.dumps([data_of(owner), set_of(owner).status.collision_count], sort_keys=True)
    return hashlib.sha256(said.encode()).hexdigest()[:_LETTERS]


def number(revision: Object) -> int:
    return int(revision.fields.get("revision") or 0)


def current(owner: Object, known: Sequence[Object]) -> Object | None:
    wanted = data_of(owner)
    return next((one for one in known if one.fields.get("data") == wanted), None)


def next_number(known: Sequence[Object]) -> int:
    return max(map(number, known), default=0) + 1


def new_revision(owner: Object, known: Sequence[Object]) -> dict[str, Any]:
    mark = hash_of(owner)
    template = owner.fields["spec"].get("template") or {}
    metadata = {
        "name": f"{owner.name[:_PREFIX_MAX].rstrip('-.')}-{mark}",
        "namespace": owner.namespace,
        "labels": {**((template.get("metadata") or {}).get("labels") or {}), HASH_LABEL: mark},
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


def outdated(limit: int, known: Sequence[Object], used: set[str]) -> list[Object]:
    """The oldest beyond the history that is kept; what pods still have stays."""
    idle = [one for one in known if (one.metadata.labels or {}).get(HASH_LABEL) not in used]
    return sorted(idle, key=number)[: max(0, len(idle) - limit)]
