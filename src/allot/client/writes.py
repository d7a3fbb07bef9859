"""A write as a value: made first, then sent, mostly together with others.

writes = claims.writes
await client.together([writes.create(body, "default"), pods.writes.bind("web", "default", "node-1")])
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import msgspec

from allot.api import Object, encode, transaction

from .options import Patch, Propagation, delete_options, write_query

_JSON = "application/json"


@dataclass(frozen=True, slots=True)
class Write:
    """A request that writes one object."""

    method: str
    path: str
    query: Mapping[str, str]
    body: bytes = b""
    content_type: str = _JSON
    beside: str = ""  # a subresource that is written with the object; only a transaction can
    expect: str = ""  # nothing is written: the resourceVersion that the object has, or "absent"


@dataclass(frozen=True, slots=True)
class Writes:
    """The verbs that write, over one plural in one version."""

    group: str
    version: str
    plural: str
    namespaced: bool = True

    def create(
        self,
        new: Object | Mapping[str, Any],
        namespace: str = "",
        *,
        field_manager: str = "",
        field_validation: str = "",
        dry_run: bool = False,
    ) -> Write:
        body, _, in_namespace = _written(new)
        query = write_query(field_manager, field_validation, dry_run)
        return Write("POST", self.path(namespace or in_namespace), query, body)

    def update(
        self,
        new: Object | Mapping[str, Any],
        *,
        subresource: str = "",
        field_manager: str = "",
        field_validation: str = "",
        dry_run: bool = False,
    ) -> Write:
        """Replace the object of this name. With a resourceVersion in it, only that version."""
        body, name, namespace = _written(new)
        query = write_query(field_manager, field_validation, dry_run)
        return Write("PUT", self.path(namespace, name, subresource), query, body)

    def patch(
        self,
        name: str,
        patch: Mapping[str, Any] | Sequence[Mapping[str, Any]],
        namespace: str = "",
        *,
        type: Patch = Patch.MERGE,
        subresource: str = "",
        field_manager: str = "",
        field_validation: str = "",
        force: bool = False,
        dry_run: bool = False,
    ) -> Write:
        query = write_query(field_manager, field_validation, dry_run)
        if force:
            query["force"] = "true"
        body = msgspec.json.encode(patch)
        return Write("PATCH", self.path(namespace, name, subresource), query, body, type.value)

    def create_with_status(self, new: Mapping[str, Any], namespace: str = "") -> Write:
        """A new object that has its status from the start, which can be said in transactions alone."""
        return replace(self.create(new, namespace), beside="status")

    def patch_with_status(self, name: str, patch: Mapping[str, Any], namespace: str = "") -> Write:
        """A merge patch of the object and of its status, which can be said in transactions alone."""
        return replace(self.patch(name, patch, namespace), beside="status")

    def expect(self, name: str, resource_version: str, namespace: str = "") -> Write:
        """What the others in a transaction rely on: the object is as it was read, or, without a version, is
        not there."""
        path = self.path(namespace, name)
        return Write("GET", path, {}, expect=resource_version or transaction.ABSENT)

    def apply(
        self,
        wanted: Mapping[str, Any],
        *,
        field_manager: str,
        force: bool = False,
        subresource: str = "",
        dry_run: bool = False,
    ) -> Write:
        """Server-side apply: `field_manager` wants these fields to be so. Creates what is missing."""
        metadata = wanted.get("metadata") or {}
        return self.patch(
            metadata.get("name", ""),
            wanted,
            metadata.get("namespace", ""),
            type=Patch.APPLY,
            subresource=subresource,
            field_manager=field_manager,
            force=force,
            dry_run=dry_run,
        )

    def delete(
        self,
        name: str,
        namespace: str = "",
        *,
        uid: str = "",
        resource_version: str = "",
        propagation: Propagation | None = None,
        grace_period_s: int | None = None,
        dry_run: bool = False,
    ) -> Write:
        """`uid` and `resource_version` are preconditions."""
        options = delete_options(uid, resource_version, propagation, grace_period_s, dry_run)
        return Write("DELETE", self.path(namespace, name), {}, options)

    def create_subresource(
        self, name: str, subresource: str, document: Mapping[str, Any], namespace: str = ""
    ) -> Write:
        """POST to a subresource: a binding, an eviction, a token request."""
        return Write("POST", self.path(namespace, name, subresource), {}, encode(document))

    def bind(self, name: str, namespace: str, node: str, *, uid: str = "", **more: Any) -> Write:
        """Assign a pod to a node. `more` goes into the Binding's metadata (annotations)."""
        metadata = {"name": name, "namespace": namespace, **({"uid": uid} if uid else {}), **more}
        target = {"apiVersion": "v1", "kind": "Node", "name": node}
        binding = {"apiVersion": "v1", "kind": "Binding", "metadata": metadata, "target": target}
        return self.create_subresource(name, "binding", binding, namespace)

    def path(self, namespace: str = "", name: str = "", subresource: str = "") -> str:
        path = f"/apis/{self.group}/{self.version}" if self.group else f"/api/{self.version}"
        if self.namespaced and namespace:
            path += f"/namespaces/{namespace}"
        elif self.namespaced and name:
            raise ValueError(f"{self.plural} {name!r}: a namespace is needed")
        for part in (namespace, name):
            if is_elsewhere(part):
                raise ValueError(f"{self.plural}: {part!r} cannot be a name")
        path += f"/{self.plural}"
        if name:
            path += f"/{name}"
        return f"{path}/{subresource}" if subresource else path


def is_elsewhere(part: str) -> bool:
    """In a path it would name something else."""
    return "/" in part or part in (".", "..")


def _written(new: Object | Mapping[str, Any]) -> tuple[bytes, str, str]:
    """The object encoded, its name and its namespace."""
    if isinstance(new, Object):
        return new.raw, new.name, new.namespace
    metadata = new.get("metadata") or {}
    return encode(new), metadata.get("name", ""), metadata.get("namespace", "")
