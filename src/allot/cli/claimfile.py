"""A claim from a file, as the server would store it.

What the server would refuse is refused here, in the same words: the rules are the kind's own. Who asks
plays no part, since nothing is written.
"""

import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from allot.api import (
    Action,
    Decision,
    FieldError,
    FieldErrorText,
    Fields,
    Gates,
    Kind,
    User,
    Version,
    meta,
    names,
    resource,
    schema,
)
from allot.api import Path as FieldPath
from allot.base import Clock, NoDocuments, documents, os_reason
from allot.cel import CompileError, Features, compile_attribute, compile_selector

_KINDS = {
    "ResourceClaim": resource.RESOURCE_CLAIM,
    "ResourceClaimTemplate": resource.RESOURCE_CLAIM_TEMPLATE,
}
_ADMIN_NAMESPACE = {"metadata": {"labels": {resource.limits.ADMIN_ACCESS_LABEL: "true"}}}


class NotAClaim(Exception):
    """`problems` are the reasons, one a line."""

    def __init__(self, *problems: str) -> None:
        super().__init__("; ".join(problems))
        self.problems = problems


@dataclass(frozen=True, slots=True)
class Draft:
    """The first claim or template in a file, as it stands there."""

    path: Path
    fields: Fields
    notes: tuple[str, ...]

    def namespace(self, asked: str) -> str:
        """The one that it names, or else the one `asked` for, which may be none. They must not differ."""
        named = _metadata(self.fields).get("namespace")
        if not named or not isinstance(named, str):  # what is no text is refused by its shape
            return asked
        if names.label_name(named):
            raise NotAClaim(f"{self.path}: metadata.namespace {named!r} cannot be the name of a namespace")
        if asked and named != asked:
            raise NotAClaim(f"{self.path}: its namespace {named} is not {asked}, as --namespace says")
        return named


@dataclass(frozen=True, slots=True)
class FoundClaim:
    spec: resource.ResourceClaimSpec
    notes: tuple[str, ...]  # what whoever wrote the file should know


def first_claim(path: Path) -> Draft:
    claims = _claims(path)
    notes = (f"{path} has {len(claims)} claims; this is about the first{_name(claims[0])}",)
    return Draft(path, claims[0], notes if claims[1:] else ())


def read_claim(draft: Draft, gates: Gates, namespace: Fields | None, clock: Clock) -> FoundClaim:
    """The claim as it would be stored. `namespace` is the one it would be in, None if unknown."""
    path, fields, notes = draft.path, draft.fields, list(draft.notes)
    kind = _KINDS[fields["kind"]]
    version = _version(path, kind, fields)
    problems = schema.check(fields, version.shape())
    if problems.malformed:
        raise NotAClaim(f"{path} is no {kind.kind}: {problems.malformed}")
    notes += [f'{path}: unknown field "{name}"' for name in problems.unknown]
    now = clock.now()
    schema.apply_defaults(fields, version.shape())
    version.default(fields, now)
    hub, asked = version.to_hub(fields), _Asked(now, gates, version.name, namespace or _ADMIN_NAMESPACE)
    kind.rules.prepare_create(hub, asked)
    wrong = kind.rules.validate_create(hub, asked)
    if wrong:
        raise NotAClaim(*(f"{path}: {one.path}: {one.text()}" for one in wrong))
    return FoundClaim(spec_of(hub), tuple(notes))


def spec_of(hub: Fields) -> resource.ResourceClaimSpec:
    """Of a claim, or of the claims of a template. One that asks for nothing is stored with nulls."""
    spec = hub.get("spec") or {}
    if hub.get("kind") == resource.RESOURCE_CLAIM_TEMPLATE.kind:
        spec = spec.get("spec") or {}
    return meta.view(resource.ResourceClaimSpec, spec)


def _claims(path: Path) -> list[Fields]:
    try:
        every = documents(sys.stdin.read() if str(path) == "-" else path.read_text())
        plain = [one for one in every if isinstance(one, dict) and one.get("kind") in _KINDS]
    except OSError as refused:
        raise NotAClaim(f"{path} cannot be read: {os_reason(refused)}") from None
    except UnicodeDecodeError:
        raise NotAClaim(f"{path} is not text") from None
    except NoDocuments as wrong:
        raise NotAClaim(f"{path} cannot be read: {wrong}") from None
    if not plain:
        raise NotAClaim(f"{path}: neither a ResourceClaim nor a ResourceClaimTemplate is in it")
    return plain


def _name(fields: Fields) -> str:
    name = _metadata(fields).get("name")
    return f", {name}" if name else ""


def _metadata(fields: Fields) -> Fields:
    """Nothing has looked at its shape yet."""
    metadata = fields.get("metadata")
    return metadata if isinstance(metadata, dict) else {}


def _version(path: Path, kind: Kind, fields: Fields) -> Version:
    served = {f"{kind.group}/{one.name}": one for one in kind.versions}
    version = served.get(str(fields.get("apiVersion")))
    if version is None:
        raise NotAClaim(f"{path}: apiVersion {fields.get('apiVersion')!r} is none of {', '.join(served)}")
    return version


@dataclass(frozen=True, slots=True)
class _Asked:
    """The context that the rules see: somebody who may do everything makes the claim."""

    now: datetime
    gates: Gates
    version: str
    inside: Fields
    verb: str = "create"
    user: User = field(default_factory=lambda: User(""))

    def namespace(self) -> Fields | None:
        return self.inside

    def resource_class(self, name: str) -> Fields | None:
        return None  # only drivers are asked for one

    def warn(self, text: str) -> None:
        """The rules of claims warn of nothing."""

    def authorize(self, action: Action) -> Decision:
        return Decision(True)

    def check_selector(self, expression: str) -> FieldErrorText | None:
        try:
            compile_selector(expression, self._features())
        except CompileError as wrong:
            return FieldErrorText(wrong.kind, wrong.message)
        return None

    def check_attribute(self, expression: str) -> FieldErrorText | int:
        try:
            return compile_attribute(expression, self._features()).cost
        except CompileError as wrong:
            return FieldErrorText(wrong.kind, wrong.message)

    def check_template(self, text: str) -> FieldErrorText | None:
        return None  # only classes have one

    def check_rules(self, openapi: Mapping[str, Any], path: FieldPath) -> list[FieldError]:
        return []  # a claim defines no kind

    def judge(self, shape: schema.Schema, new: Fields, old: Fields | None) -> list[FieldError]:
        return []  # and is of a kind that is built in

    def _features(self) -> Features:
        gates = self.gates
        return Features(
            consumable_capacity=gates["DRAConsumableCapacity"], list_attributes=gates["DRAListTypeAttributes"]
        )
