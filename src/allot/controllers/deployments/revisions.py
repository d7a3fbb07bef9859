"""Which replica set has the newest template, what a new one looks like, and how they are numbered.

Every template that a deployment ever had is a replica set, numbered by annotations that
`kubectl rollout history` and `undo` read. Going back to an old template gives its
replica set the next number, and it remembers the ones it had.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any

from allot.api import Object

from ..workloads import reference
from .rollout import Set
from .views import deployment_of, set_of

HASH_LABEL = "pod-template-hash"
REVISION = "deployment.kubernetes.io/revision"
HISTORY = "deployment.kubernetes.io/revision-history"
DESIRED = "deployment.kubernetes.io/desired-replicas"
MOST = "deployment.kubernetes.io/max-replicas"
_NOT_COPIED = (
    REVISION, HISTORY, DESIRED, MOST,
    "deprecated.deployment.rollback.to",
    "kubectl.kubernetes.io/last-applied-configuration",
)  # fmt: skip
_HASH_LETTERS = 10


def revision(replica_set: Object) -> int:
    written = (replica_set.metadata.annotations or {}).get(REVISION, "")
    return int(written) if written.isdigit() and len(written) < 19 else 0


def newest(deployment: Object, sets: Sequence[Object]) -> Object | None:
    """The replica set with the deployment's template; the oldest, should there be two."""
    wanted = _template(deployment)
    found = [one for one in sets if _template(one) == wanted]
    return min(found, key=lambda one: (one.metadata.creation_timestamp or "", one.name), default=None)


def _template(object: Object) -> dict[str, Any]:
    """Without the label that a deployment puts on to tell its replica sets apart."""
    template = object.fields["spec"].get("template") or {}
    metadata = {**(template.get("metadata") or {})}
    labels = {key: value for key, value in (metadata.get("labels") or {}).items() if key != HASH_LABEL}
    metadata["labels"] = labels
    return {**template, "metadata": metadata}


def template_hash(deployment: Object) -> str:
    """Short, the same for the same template, and another one after each collision."""
    collisions = deployment_of(deployment).status.collision_count
    said = json.dumps([_template(deployment), collisions], sort_keys=True)
    return hashlib.sha256(said.encode()).hexdigest()[:_HASH_LETTERS]


def new_set(deployment: Object, replicas: int, old: Sequence[Object]) -> dict[str, Any]:
    spec = deployment.fields["spec"]
    mark = {HASH_LABEL: template_hash(deployment)}
    template = spec.get("template") or {}
    labels = {**((template.get("metadata") or {}).get("labels") or {}), **mark}
    selector = spec.get("selector") or {}
    metadata = {
        "name": f"{deployment.name}-{mark[HASH_LABEL]}",
        "namespace": deployment.namespace,
        "labels": labels,
        "annotations": {
            **_copied(deployment),
            **size_annotations(deployment),
            REVISION: str(next_revision(old)),
        },
        "ownerReferences": [reference(deployment)],
    }
    wanted = {
        "replicas": replicas,
        "minReadySeconds": spec.get("minReadySeconds") or 0,
        "selector": {**selector, "matchLabels": {**(selector.get("matchLabels") or {}), **mark}},
        "template": {**template, "metadata": {**(template.get("metadata") or {}), "labels": labels}},
    }
    return {"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": metadata, "spec": wanted}


def size_annotations(deployment: Object) -> dict[str, str]:
    """What the deployment wanted when the set was last sized; proportional scaling reads it."""
    view = deployment_of(deployment)
    return {DESIRED: str(view.spec.replicas), MOST: str(view.spec.replicas + view.surge)}


def next_revision(old: Sequence[Object]) -> int:
    return max(map(revision, old), default=0) + 1


def refreshed(deployment: Object, new: Object, old: Sequence[Object]) -> dict[str, Any] | None:
    """The patch that gives the newest set its number and what it takes over from the deployment."""
    has = new.metadata.annotations or {}
    wants = {key: value for key, value in _copied(deployment).items() if has.get(key) != value}
    number = next_revision(old)
    if revision(new) < number:
        wants[REVISION] = str(number)
        if has.get(REVISION):
            wants[HISTORY] = ",".join(filter(None, (has.get(HISTORY), has[REVISION])))
    min_ready_s = deployment_of(deployment).spec.min_ready_seconds
    patch: dict[str, Any] = {"metadata": {"annotations": wants}} if wants else {}
    if set_of(new).spec.min_ready_seconds != min_ready_s:
        patch["spec"] = {"minReadySeconds": min_ready_s}
    return patch or None


def outdated(limit: int, old: Sequence[Object]) -> list[Object]:
    """The oldest sets beyond the history that is kept. Only what is empty may go."""
    empty = [one for one in old if _is_empty(one)]
    empty.sort(key=lambda one: (revision(one), one.metadata.creation_timestamp or "", one.name))
    return empty[: max(0, len(empty) - limit)]


def sized(replica_set: Object) -> Set:
    """A replica set as `rollout` sees it."""
    view, annotations = set_of(replica_set), replica_set.metadata.annotations or {}
    return Set(
        replica_set.name,
        replica_set.metadata.creation_timestamp or "",
        view.spec.replicas,
        view.status.available_replicas,
        _number(annotations, DESIRED),
        _number(annotations, MOST),
    )


def _is_empty(replica_set: Object) -> bool:
    view = set_of(replica_set)
    observed = view.status.observed_generation >= view.metadata.generation
    empty = not view.spec.replicas and not view.status.replicas
    return observed and empty and not view.metadata.deletion_timestamp


def _copied(deployment: Object) -> dict[str, str]:
    annotations = deployment.metadata.annotations or {}
    return {key: value for key, value in annotations.items() if key not in _NOT_COPIED}


def _number(annotations: Mapping[str, str], key: str) -> int | None:
    written = annotations.get(key, "")
    return int(written) if written.isdigit() and len(written) < 10 else None
