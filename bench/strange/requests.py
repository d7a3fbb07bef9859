"""A request as a value, so that a run can be played again, or half of it."""

import copy
import json
from dataclasses import dataclass, field, replace
from typing import Any

import yaml

from allot.api import Gates, Kind, Version, custom, kinds, rbac, resource, schema

from . import protobuf
from .mutating import without
from .sound import THING

Fields = dict[str, Any]

PATCHES = {
    "merge": "application/merge-patch+json",
    "strategic": "application/strategic-merge-patch+json",
    "json": "application/json-patch+json",
    "apply": "application/apply-patch+yaml",
}
"""Media types of the four kinds of patches."""


@dataclass(frozen=True, slots=True)
class Sent:
    actor: str
    method: str
    path: str
    body: bytes = b""
    media: str = "application/json"

    def as_json(self) -> Fields:
        text = self.body.decode("utf-8", "backslashreplace")
        return {
            "actor": self.actor,
            "method": self.method,
            "path": self.path,
            "media": self.media,
            "body": text,
        }


@dataclass(frozen=True, slots=True)
class Question:
    """A request that may be sent again with less in it."""

    sent: Sent
    target: "Target | None" = None
    fields: Fields = field(default_factory=dict)
    good: Fields = field(default_factory=dict)
    kind: str = "create"

    def mended(self, causes: list[str]) -> "Question | None":
        """Without what was refused; None if nothing of that is there."""
        fields = copy.deepcopy(self.fields)
        if not self.fields or not self.target or not without(fields, causes, self.good):
            return None
        body, media = self.target.encoded(fields, "json" if self.kind != "apply" else "apply")
        return replace(self, sent=replace(self.sent, body=body, media=media), fields=fields)


@dataclass(frozen=True, slots=True)
class Target:
    """One kind in one version."""

    kind: Kind
    version: Version

    @property
    def api_version(self) -> str:
        return f"{self.kind.group}/{self.version.name}" if self.kind.group else self.version.name

    @property
    def base(self) -> str:
        return f"/apis/{self.api_version}" if self.kind.group else f"/api/{self.api_version}"

    def path(self, namespace: str, name: str = "", subresource: str = "") -> str:
        parts = [
            self.base,
            f"namespaces/{namespace}" if namespace else "",
            self.kind.plural,
            name,
            subresource,
        ]
        return "/".join(part for part in parts if part)

    def encoded(self, fields: Fields, encoding: str) -> tuple[bytes, str]:
        """The body, and its media type; JSON where the encoding cannot say it."""
        if encoding == "yaml":
            return yaml.safe_dump(fields, allow_unicode=True).encode(), "application/yaml"
        if encoding == "protobuf" and (body := protobuf.encoded(fields, self.version.schema)) is not None:
            return body, protobuf.MEDIA
        media = PATCHES["apply"] if encoding == "apply" else "application/json"
        return json.dumps(fields).encode(), media


def served() -> list[Target]:
    """Every kind in every version, with a custom one."""
    every = (*kinds.ALL, *rbac.KINDS, *resource.served(Gates()), *custom.KINDS)
    targets = [Target(kind, version) for kind in every for version in kind.versions]
    names, version = THING["spec"]["names"], THING["spec"]["versions"][0]  # type: ignore[index]
    shape = schema.from_structural(version["schema"]["openAPIV3Schema"])
    things = Kind(
        group="fuzz.example.com", kind=names["kind"], plural=names["plural"],
        versions=(Version("v1", "", custom=shape),), hub="v1", has_status=True,
    )  # fmt: skip
    return [*targets, Target(things, things.versions[0])]
