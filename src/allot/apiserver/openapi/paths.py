"""The operations of a resource, as OpenAPI writes them.

Clients look here to learn which parameters a server knows (kubectl asks for
`fieldValidation` before it validates anything) and which kinds of patch a
resource takes.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

Document = dict[str, Any]

JSON = "application/json"
PATCHES = (
    "application/apply-patch+yaml",
    "application/json-patch+json",
    "application/merge-patch+json",
    "application/strategic-merge-patch+json",
)


@dataclass(frozen=True, slots=True)
class Speaks:
    """A kind that an operation takes and gives, and where its schema is."""

    group: str
    version: str
    kind: str
    reference: Document

    @property
    def marked(self) -> Document:
        return {"group": self.group, "kind": self.kind, "version": self.version}


@dataclass(frozen=True, slots=True)
class Resource:
    root: str  # /api/v1 or /apis/GROUP/VERSION
    plural: str
    namespaced: bool
    verbs: Sequence[str]
    speaks: Speaks
    listed: Document  # a reference to its list
    custom: bool  # custom resources take no strategic merge patch
    subresources: Sequence[tuple[str, Speaks, Sequence[str]]] = ()


def parameter(name: str, type_: str, description: str, where: str = "query") -> Document:
    out: Document = {
        "name": name,
        "in": where,
        "description": description,
        "schema": {"type": type_, "uniqueItems": True},
    }
    if where == "path":
        out["required"] = True
    return out


_PRETTY = parameter("pretty", "string", "If 'true', the answer is indented.")
_NAME = parameter("name", "string", "The name of the object.", "path")
_NAMESPACE = parameter("namespace", "string", "The namespace of the object.", "path")
_DRY_RUN = parameter("dryRun", "string", "'All': go through every step but storing.")
_MANAGER = parameter("fieldManager", "string", "Who is recorded as the owner of the fields that change.")
_VALIDATION = parameter(
    "fieldValidation", "string", "Ignore, Warn or Strict: what unknown and duplicate fields lead to."
)
_FORCE = parameter("force", "boolean", "An apply takes over fields that others own.")
_LISTING = (
    parameter("allowWatchBookmarks", "boolean", "A watch may also send bookmarks."),
    parameter("continue", "string", "Where the next page begins, from the answer before."),
    parameter("fieldSelector", "string", "Only objects with these values of fields."),
    parameter("labelSelector", "string", "Only objects with these labels."),
    parameter("limit", "integer", "At most this many objects in one answer."),
    parameter("resourceVersion", "string", "How old the answer may be, or where a watch begins."),
    parameter("resourceVersionMatch", "string", "Exact or NotOlderThan: how resourceVersion is meant."),
    parameter("sendInitialEvents", "boolean", "A watch begins with every object there is."),
    parameter("timeoutSeconds", "integer", "How long a list or watch may take."),
    parameter("watch", "boolean", "Send changes as they happen."),
)
_DELETING = (
    _DRY_RUN,
    parameter("gracePeriodSeconds", "integer", "How long the object may take to end."),
    parameter("orphanDependents", "boolean", "Deprecated: use propagationPolicy."),
    parameter("propagationPolicy", "string", "Orphan, Background or Foreground: what happens to dependents."),
)
_WRITING = (_DRY_RUN, _MANAGER, _VALIDATION)


def paths(resource: Resource, delete_options: Document, status: Document) -> dict[str, Document]:
    """Every path of a resource and its subresources."""
    maker = _Maker(resource, delete_options, status)
    scope = "/namespaces/{namespace}" if resource.namespaced else ""
    collection = f"{resource.root}{scope}/{resource.plural}"
    one = f"{collection}/{{name}}"
    found = {collection: maker.collection(), one: maker.item()}
    if resource.namespaced and "list" in resource.verbs:
        found[f"{resource.root}/{resource.plural}"] = maker.everywhere()
    for name, speaks, verbs in resource.subresources:
        found[f"{one}/{name}"] = maker.subresource(name, speaks, verbs)
    return {path: item for path, item in found.items() if any(verb in item for verb in _METHODS)}


_METHODS = ("get", "post", "put", "patch", "delete")


class _Maker:
    def __init__(self, resource: Resource, delete_options: Document, status: Document) -> None:
        self._resource = resource
        self._delete_options = delete_options
        self._status = status

    def collection(self) -> Document:
        resource = self._resource
        item = self._item([_NAMESPACE] if resource.namespaced else [])
        self._put(item, "get", "list", resource.speaks, _LISTING, gives=resource.listed)
        self._put(
            item, "post", "create", resource.speaks, _WRITING, takes=resource.speaks.reference, created=True
        )
        extra = (*_DELETING, *(p for p in _LISTING if p["name"] not in ("watch", "allowWatchBookmarks")))
        self._put(
            item,
            "delete",
            "deletecollection",
            resource.speaks,
            extra,
            takes=self._delete_options,
            gives=self._status,
        )
        return item

    def everywhere(self) -> Document:
        item = self._item([])
        self._put(
            item,
            "get",
            "list",
            self._resource.speaks,
            _LISTING,
            gives=self._resource.listed,
            suffix="ForAllNamespaces",
        )
        return item

    def item(self) -> Document:
        resource, speaks = self._resource, self._resource.speaks
        item = self._item([_NAME, *([_NAMESPACE] if resource.namespaced else [])])
        self._put(item, "get", "get", speaks, ())
        self._put(item, "put", "update", speaks, _WRITING, takes=speaks.reference)
        self._patch(item, speaks, resource.verbs)
        self._put(item, "delete", "delete", speaks, _DELETING, takes=self._delete_options, gives=self._status)
        return item

    def subresource(self, name: str, speaks: Speaks, verbs: Sequence[str]) -> Document:
        item = self._item([_NAME, *([_NAMESPACE] if self._resource.namespaced else [])])
        suffix = name.capitalize()
        self._put(item, "get", "get", speaks, (), verbs=verbs, suffix=suffix)
        self._put(
            item,
            "post",
            "create",
            speaks,
            _WRITING,
            takes=speaks.reference,
            verbs=verbs,
            suffix=suffix,
            created=True,
        )
        self._put(item, "put", "update", speaks, _WRITING, takes=speaks.reference, verbs=verbs, suffix=suffix)
        self._patch(item, speaks, verbs, suffix)
        return item

    def _item(self, parameters: list[Document]) -> Document:
        return {"parameters": [*parameters, _PRETTY]}

    def _put(
        self,
        item: Document,
        method: str,
        verb: str,
        speaks: Speaks,
        parameters: Iterable[Document],
        *,
        takes: Document | None = None,
        gives: Document | None = None,
        verbs: Sequence[str] | None = None,
        suffix: str = "",
        created: bool = False,
    ) -> None:
        if verb not in (self._resource.verbs if verbs is None else verbs):
            return
        operation = self._operation(verb, speaks, suffix, parameters, gives or speaks.reference)
        if created:
            operation["responses"]["201"] = operation["responses"]["200"]
        if takes is not None:
            operation["requestBody"] = {
                "content": {JSON: {"schema": takes}},
                "required": verb in ("create", "update"),
            }
        item[method] = operation

    def _patch(self, item: Document, speaks: Speaks, verbs: Sequence[str], suffix: str = "") -> None:
        if "patch" not in verbs:
            return
        operation = self._operation("patch", speaks, suffix, (*_WRITING, _FORCE), speaks.reference)
        kinds = PATCHES[:3] if self._resource.custom else PATCHES
        operation["requestBody"] = {"content": {kind: {"schema": {}} for kind in kinds}, "required": True}
        item["patch"] = operation

    def _operation(
        self, verb: str, speaks: Speaks, suffix: str, parameters: Iterable[Document], gives: Document
    ) -> Document:
        resource = self._resource
        scope = "Namespaced" if resource.namespaced and suffix != "ForAllNamespaces" else ""
        group = "".join(part.capitalize() for part in (speaks.group or "core").split(".")[0].split("-"))
        name = f"{verb}{group}{resource.speaks.version.capitalize()}{scope}{resource.speaks.kind}{suffix}"
        return {
            "operationId": name,
            "tags": [
                resource.root.removeprefix("/apis/").removeprefix("/api/").replace(".", "_").replace("/", "_")
            ],
            "parameters": list(parameters),
            "responses": {
                "200": {"description": "OK", "content": {JSON: {"schema": gives}}},
                "401": {"description": "Unauthorized"},
            },
            "x-kubernetes-action": "post" if verb == "create" else "put" if verb == "update" else verb,
            "x-kubernetes-group-version-kind": speaks.marked,
        }
