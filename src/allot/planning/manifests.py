"""Objects from files, as a server would store them; and the pods that workloads would make.

What the server would refuse for its shape is refused here. Who asks plays no part, since nothing is written.
"""

import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from allot.api import Fields, Gates, Kind, Object, Version, classic, encode, kinds, schema
from allot.base import Clock, NoDocuments, documents, os_reason
from allot.informers import ResourceId

REPLICATED = {"Deployment": "ReplicaSet", "ReplicaSet": "ReplicaSet", "StatefulSet": "StatefulSet"}
"""Whose pods they make, by whom the pods are controlled."""


class BadManifest(ValueError):
    """The message names the file, and the object where there is one."""


class Manifest(NamedTuple):
    what: ResourceId
    object: Object


def read(path: Path, gates: Gates, clock: Clock, namespace: str) -> list[Manifest]:
    """Objects without a namespace are put into this one. Raises BadManifest."""
    known = {
        (f"{kind.group}/{one.name}" if kind.group else one.name, kind.kind): (kind, one)
        for kind in (*kinds.ALL, *classic.served(gates))
        for one in kind.versions
    }
    found = []
    for fields in _documents(path):
        entry = known.get((str(fields.get("apiVersion")), str(fields.get("kind"))))
        if entry is None:
            raise BadManifest(f"{path}: no {fields.get('kind')!r} of {fields.get('apiVersion')!r} is known")
        found.append(_stored(path, fields, *entry, clock, namespace))
    return found


def _stored(
    path: Path, fields: Fields, kind: Kind, version: Version, clock: Clock, namespace: str
) -> Manifest:
    metadata = fields.get("metadata")
    if not isinstance(metadata, dict) or not isinstance(metadata.get("name"), str):
        raise BadManifest(f"{path}: a {kind.kind} without metadata.name")
    if kind.namespaced:
        metadata.setdefault("namespace", namespace)
    problems = schema.check(fields, version.shape())
    if problems.malformed:
        raise BadManifest(f"{path}: {kind.kind} {metadata['name']}: {problems.malformed}")
    schema.apply_defaults(fields, version.shape())
    version.default(fields, clock.now())
    hub = version.to_hub(fields)
    hub["metadata"].setdefault("uid", f"<{kind.plural}/{metadata.get('namespace', '')}/{metadata['name']}>")
    what = ResourceId(kind.group, kind.versions[0].name, kind.plural, kind.namespaced)
    return Manifest(what, Object(encode(hub)))


def _documents(path: Path) -> Iterator[Fields]:
    try:
        plain = documents(sys.stdin.read() if str(path) == "-" else path.read_text())
    except OSError as refused:
        raise BadManifest(f"{path} cannot be read: {os_reason(refused)}") from None
    except UnicodeDecodeError:
        raise BadManifest(f"{path} is not text") from None
    except NoDocuments as wrong:
        raise BadManifest(f"{path} cannot be read: {wrong}") from None
    if not plain:
        raise BadManifest(f"{path} is empty")
    for one in plain:
        if not isinstance(one, dict):
            raise BadManifest(f"{path}: an object is needed, not {one!r:.40}")
        yield from one.get("items") or () if one.get("kind") == "List" else (one,)


# -- pods of workloads ----------------------------------------------------------------------------


def pods_of(object: Object) -> list[Fields]:
    """The pods that a workload would make, if it is one."""
    spec: Mapping[str, Any] = object.fields.get("spec") or {}
    if object.kind in REPLICATED:
        count = int(spec.get("replicas", 1) or 0)
        return [_pod_of(object, spec["template"], number) for number in range(count)]
    if object.kind == "Job":
        wanted = [spec[name] for name in ("parallelism", "completions") if spec.get(name) is not None]
        return [_pod_of(object, spec["template"], number) for number in range(min(wanted, default=1))]
    return []


def _pod_of(object: Object, template: Fields, number: int) -> Fields:
    metadata, name = template.get("metadata") or {}, f"{object.name}-{number}"
    kind = REPLICATED.get(object.kind, object.kind)
    owner = {
        "apiVersion": "apps/v1",
        "kind": kind,
        "name": object.name,
        "uid": object.uid,
        "controller": True,
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            **metadata,
            "name": name,
            "namespace": object.namespace,
            "uid": f"<pods/{object.namespace}/{name}>",
            "ownerReferences": [owner],
        },
        "spec": template.get("spec") or {},
    }


def copies(pod: Fields, count: int) -> list[Fields]:
    """As many pods like this one, under names of their own."""
    if count == 1:
        return [pod]
    metadata = pod["metadata"]
    return [
        {
            **pod,
            "metadata": {
                **metadata,
                "name": f"{metadata['name']}-{number}",
                "uid": f"{metadata['uid']}-{number}",
            },
        }
        for number in range(count)
    ]
