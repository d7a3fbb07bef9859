"""Which node needs which object.

    node <- pod <- secret, config map, service account, resource claim
    node <- pod <- volume claim <- volume <- secret
    node <- resource slice, node resource capacity, volume attachment

What it promises
    GRAPH1  `reaches(node, ref)` holds exactly when such a path exists among the objects
            observed so far.
    GRAPH2  A mirror pod, which a node makes for itself, opens no path but its own.

Paths are counted when objects change, so that a question is a look-up.
"""

from collections import Counter
from collections.abc import Mapping
from typing import Any, NamedTuple

from .pod_references import MIRROR_ANNOTATION, Ref, persistent_volume, references


class _Pod(NamedTuple):
    node: str
    needs: frozenset[Ref]


class _Volume(NamedTuple):
    claim: Ref | None
    secrets: frozenset[Ref]


class NodeGraph:
    def __init__(self) -> None:
        self._pods: dict[Ref, _Pod] = {}
        self._needing: dict[Ref, Counter[str]] = {}  # object -> node -> how many of its pods
        self._volumes: dict[str, _Volume] = {}
        self._volumes_with: dict[Ref, set[str]] = {}  # secret -> volumes
        self._owner: dict[Ref, str] = {}  # slice, capacity or attachment -> node

    def observe(
        self, group: str, resource: str, namespace: str, name: str, fields: Mapping[str, Any] | None
    ) -> None:
        match group, resource:
            case "", "pods":
                self._replace_pod(Ref("pods", namespace, name), None if fields is None else _read_pod(fields))
            case "", "persistentvolumes":
                self._replace_volume(name, None if fields is None else _Volume(*persistent_volume(fields)))
            case ("resource.k8s.io", "resourceslices" | "noderesourcecapacities") | (
                "storage.k8s.io",
                "volumeattachments",
            ):
                self._replace_owner(
                    Ref(resource, "", name), None if fields is None else node_named_by(resource, fields)
                )

    def reaches(self, node: str, ref: Ref) -> bool:
        """GRAPH1."""
        match ref.resource:
            case "pods":
                pod = self._pods.get(ref)
                return pod is not None and pod.node == node
            case "resourceslices" | "noderesourcecapacities" | "volumeattachments":
                return self._owner.get(ref) == node
            case "persistentvolumes":
                return self._reaches_volume(node, ref.name)
            case "secrets":
                return self._needs(node, ref) or any(
                    self._reaches_volume(node, volume) for volume in self._volumes_with.get(ref, ())
                )
        return self._needs(node, ref)

    def _needs(self, node: str, ref: Ref) -> bool:
        nodes = self._needing.get(ref)
        return nodes is not None and node in nodes

    def _reaches_volume(self, node: str, name: str) -> bool:
        volume = self._volumes.get(name)
        return volume is not None and volume.claim is not None and self._needs(node, volume.claim)

    def _replace_pod(self, key: Ref, new: _Pod | None) -> None:
        old = self._pods.get(key)
        if new == old:
            return  # most changes of a pod are of its status
        if old is not None:
            del self._pods[key]
            self._forget(old)
        if new is not None:
            self._pods[key] = new
            for ref in new.needs:
                self._needing.setdefault(ref, Counter())[new.node] += 1

    def _forget(self, pod: _Pod) -> None:
        for ref in pod.needs:
            nodes = self._needing[ref]
            nodes[pod.node] -= 1
            if not nodes[pod.node]:
                del nodes[pod.node]
            if not nodes:
                del self._needing[ref]

    def _replace_owner(self, key: Ref, node: str | None) -> None:
        if node:
            self._owner[key] = node
        else:
            self._owner.pop(key, None)

    def _replace_volume(self, name: str, new: _Volume | None) -> None:
        old = self._volumes.pop(name, None)
        for secret in old.secrets if old else ():
            self._volumes_with[secret].discard(name)
            if not self._volumes_with[secret]:
                del self._volumes_with[secret]
        if new is not None:
            self._volumes[name] = new
            for secret in new.secrets:
                self._volumes_with.setdefault(secret, set()).add(name)


def node_named_by(resource: str, fields: Mapping[str, Any]) -> str | None:
    """The node that a slice, a capacity or an attachment belongs to; some belong to none.

    Each has one field that says so. A field of the same name elsewhere means nothing.
    """
    where = fields if resource == "noderesourcecapacities" else fields.get("spec") or {}
    return where.get("nodeName") or None


def _read_pod(pod: Mapping[str, Any]) -> _Pod | None:
    """A pod without a node opens no path."""
    node = (pod.get("spec") or {}).get("nodeName")
    if not node:
        return None
    mirror = MIRROR_ANNOTATION in ((pod.get("metadata") or {}).get("annotations") or {})
    return _Pod(node, frozenset() if mirror else references(pod))
