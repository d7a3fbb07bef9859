"""/openapi/v3: one document for each group and version, and the list of them.

Documents are made when somebody asks and kept until the kinds change. Their
addresses carry a hash of what is served, so that clients may keep them too.
"""

import asyncio
import hashlib
from collections.abc import Iterable
from typing import Any

import allot
from allot.api import Kind, Request, Response, Version, encode, errors
from allot.api import schema as shapes

from ..discovery import subresources
from ..registry import Registry
from . import older
from .components import Components
from .paths import Resource, Speaks, paths

META = "io.k8s.apimachinery.pkg.apis.meta.v1"
_PREFIX = "/openapi/v3"

Review = tuple[str, str, str, str, bool]
"""(group, version, plural, kind, namespaced) of something that can only be created"""


class OpenApi:
    def __init__(self, registry: Registry, reviews: Iterable[Review], version: str) -> None:
        """`reviews` are what can only be created; `version` is the one of the API that we speak."""
        self._registry = registry
        self._reviews = tuple(reviews)
        self._version = version
        self._revision = -1
        self._made: dict[str, bytes] = {}

    async def answer(self, request: Request) -> Response | None:
        """The document at this path, or None if there is none.

        A large one takes tens of milliseconds to make, which is too long for the event loop.
        """
        if self._revision != self._registry.revision:
            self._made, self._revision = {}, self._registry.revision
        path = request.path.rstrip("/")
        if path == older.PATH:
            return older.answer(request.headers.get("accept", ""), self._version)
        if not path.startswith(_PREFIX):
            return None
        if not _takes_json(request.headers.get("accept", "")):
            raise errors.NotAcceptable("OpenAPI documents are served as application/json")
        place = path.removeprefix(_PREFIX).removeprefix("/")
        made = self._made
        if place not in made:
            document = await asyncio.to_thread(self._written, place)
            if document is None:
                return None
            made[place] = document
        body = made[place]
        return Response(200, body, headers=(("Etag", f'"{_hash(body)}"'), ("Vary", "Accept")))

    def _written(self, place: str) -> bytes | None:
        document = self._document(place) if place else self._index()
        return None if document is None else encode(document)

    def _places(self) -> dict[str, tuple[str, str]]:
        """Where each group and version is served: api/v1, apis/apps/v1, ..."""
        found = {(kind.group, version.name) for kind in self._registry.kinds() for version in kind.versions}
        found |= {(review[0], review[1]) for review in self._reviews}
        return {
            (f"apis/{group}/{version}" if group else f"api/{version}"): (group, version)
            for group, version in sorted(found)
        }

    def _index(self) -> dict[str, Any]:
        return {
            "paths": {
                place: {"serverRelativeURL": f"{_PREFIX}/{place}?hash={self._mark(place, *where)}"}
                for place, where in self._places().items()
            }
        }

    def _mark(self, place: str, group: str, version: str) -> str:
        """Changes when the document does. Those of built-in kinds only change with the program."""
        kinds = [kind for kind in self._registry.kinds() if kind.group == group and kind.version(version)]
        if any(one.custom for kind in kinds for one in kind.versions):
            return _hash(self._written(place) or b"")
        names = " ".join(sorted(kind.plural for kind in kinds))
        return _hash(f"{allot.__version__} {self._version} {place} {names}".encode())

    def _document(self, place: str) -> dict[str, Any] | None:
        where = self._places().get(place)
        if where is None:
            return None
        components = Components()
        found: dict[str, Any] = {}
        delete_options = components.refer(f"{META}.DeleteOptions")
        status = components.refer(f"{META}.Status")
        for resource in self._resources(f"/{place}", *where, components):
            found |= paths(resource, delete_options, status)
        return {
            "openapi": "3.0.0",
            "info": {"title": "Kubernetes", "version": self._version},
            "paths": found,
            "components": {
                "schemas": dict(sorted(components.schemas.items())),
                "securitySchemes": {
                    "BearerToken": {"type": "apiKey", "name": "authorization", "in": "header"}
                },
            },
        }

    def _resources(self, root: str, group: str, version: str, components: Components) -> Iterable[Resource]:
        for kind in self._registry.kinds():
            served = kind.version(version)
            if kind.group == group and served is not None:
                yield _resource(root, kind, served, components)
        for review_group, review_version, plural, name, namespaced in self._reviews:
            if (review_group, review_version) == (group, version):
                speaks = _speaks(group, version, name, components)
                yield Resource(root, plural, namespaced, ("create",), speaks, speaks.reference, False)


def _resource(root: str, kind: Kind, version: Version, components: Components) -> Resource:
    custom = version.custom is not None
    name = _custom_name(kind.group, version.name, kind.kind) if custom else version.schema
    reference = components.define(name, version.shape()) if custom else components.refer(name)
    components.mark(name, kind.group, version.name, kind.kind)
    speaks = Speaks(kind.group, version.name, kind.kind, reference)
    subs = []
    for sub in subresources(kind, version.name):
        same = (sub["group"], sub["kind"]) == (kind.group, kind.kind)
        said = speaks if same else _speaks(sub["group"], sub["version"], sub["kind"], components)
        subs.append((sub["name"], said, sub["verbs"]))
    listed = _list(kind, version, name, components)
    return Resource(root, kind.plural, kind.namespaced, kind.verbs, speaks, listed, custom, subs)


def _speaks(group: str, version: str, kind: str, components: Components) -> Speaks:
    name = f"io.k8s.api.{_package(group)}.{version}.{kind}"
    if name not in shapes.names():  # of what becomes a stream no more is said than that
        return Speaks(group, version, kind, {"type": "string"})
    reference = components.refer(name)
    components.mark(name, group, version, kind)
    return Speaks(group, version, kind, reference)


def _package(group: str) -> str:
    """rbac.authorization.k8s.io lives in rbac, the group without a name in core."""
    return group.split(".")[0] or "core"


def _list(kind: Kind, version: Version, name: str, components: Components) -> dict[str, Any]:
    listed = f"{name}List"
    if listed in shapes.names():
        reference = components.refer(listed)
    else:
        reference = {"$ref": f"#/components/schemas/{listed}"}
        components.schemas[listed] = {
            "type": "object",
            "required": ["items"],
            "properties": {
                "apiVersion": {"type": "string"},
                "items": {"type": "array", "items": {"$ref": f"#/components/schemas/{name}"}},
                "kind": {"type": "string"},
                "metadata": components.refer(f"{META}.ListMeta"),
            },
        }
    components.mark(listed, kind.group, version.name, kind.list_kind)
    return reference


def _custom_name(group: str, version: str, kind: str) -> str:
    """example.com, v1, Widget -> com.example.v1.Widget"""
    return ".".join([*reversed(group.split(".")), version, kind])


def _takes_json(accept: str) -> bool:
    wanted = [part.split(";")[0].strip() for part in accept.split(",")]
    return not accept or any(media in ("application/json", "application/*", "*/*") for media in wanted)


def _hash(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest().upper()
