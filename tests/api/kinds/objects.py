"""Objects that are fine, to be spoiled by tests, and a way to ask a kind's rules about them."""

import copy
from datetime import UTC, datetime
from typing import Any

from allot.api import Kind, kinds

from ..context import FakeContext

NOW = datetime(2026, 11, 15, 8, 0, tzinfo=UTC)
CONTEXT = FakeContext(now=NOW)
BY_NAME = {kind.resource: kind for kind in kinds.ALL}


def kind_of(resource: str) -> Kind:
    return BY_NAME[resource]


def container(name: str = "main", **more: Any) -> dict[str, Any]:
    return {"name": name, "image": "example/app:1", **more}


def pod(*, labels: Any = None, **spec: Any) -> dict[str, Any]:
    metadata: dict[str, Any] = {"name": "web", "namespace": "shop"}
    if labels:
        metadata["labels"] = labels
    return {"metadata": metadata, "spec": {"containers": [container()], **spec}}


def template(**spec: Any) -> dict[str, Any]:
    return {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [container()], **spec}}


def workload(**spec: Any) -> dict[str, Any]:
    body = {"selector": {"matchLabels": {"app": "web"}}, "template": template(), **spec}
    return {"metadata": {"name": "web", "namespace": "shop", "uid": "u-1"}, "spec": body}


def named(**fields: Any) -> dict[str, Any]:
    return {"metadata": {"name": "x", "namespace": "shop", "uid": "u-1"}, **fields}


def made(resource: str, fields: dict[str, Any]) -> dict[str, Any]:
    """The object as it is stored after a create, valid or not."""
    kind = kind_of(resource)
    new = copy.deepcopy(fields)
    kind.versions[0].default(new, NOW)
    new = kind.versions[0].to_hub(new)
    kind.rules.prepare_create(new, CONTEXT)
    return new


def wrong(resource: str, fields: dict[str, Any]) -> list[tuple[str, str]]:
    """(field, what is wrong) of a create."""
    kind = kind_of(resource)
    return shown(kind.rules.validate_create(made(resource, fields), CONTEXT))


def changed(resource: str, old: dict[str, Any], new: dict[str, Any]) -> list[tuple[str, str]]:
    """(field, what is wrong) of an update from one stored object to another."""
    kind = kind_of(resource)
    new = copy.deepcopy(new)
    kind.versions[0].default(new, NOW)
    kind.rules.prepare_update(new, old, CONTEXT)
    return shown(kind.rules.validate_update(new, old, CONTEXT))


def shown(errors: Any) -> list[tuple[str, str]]:
    return [(str(error.path), error.text()) for error in errors]


def fields_of(problems: list[tuple[str, str]]) -> list[str]:
    return [field for field, _ in problems]


def row(resource: str, fields: dict[str, Any]) -> dict[str, Any]:
    """The cells of `kubectl get`, by column."""
    kind = kind_of(resource)
    cells = kind.row(fields, NOW)
    return {column.name: cell for column, cell in zip(kind.columns, cells, strict=True)}
