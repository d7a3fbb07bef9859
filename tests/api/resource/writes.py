"""A write to resource.k8s.io from body to verdict, as the server runs it, without the server."""

import copy
from dataclasses import dataclass, replace
from typing import Any

from allot.api import Fields, Kind, schema
from allot.api.field import FieldError
from api.context import FakeContext

ALL_GATES = {
    "DRAListTypeAttributes": True,
    "DRANodeAllocatableResources": True,
    "DRAPartitionableDevicesType": True,
    "DRADerivedAttributes": True,
    "DRADeviceCompatibilityGroups": True,
    "DRAOptionalNodeOperations": True,
}


@dataclass(frozen=True)
class Written:
    hub: Fields
    errors: list[FieldError]
    unknown: tuple[str, ...] = ()

    @property
    def causes(self) -> list[str]:
        """Field and kind of each error, in order: `spec.driver required`."""
        return [f"{error.path} {error.wrong.name.lower()}" for error in self.errors]

    @property
    def texts(self) -> list[str]:
        return [f"{error.path}: {error.text()}" for error in self.errors]


def create(kind: Kind, body: Fields, version: str = "v1", context: FakeContext | None = None) -> Written:
    context = replace(context or FakeContext(), verb="create", version=version)
    hub, unknown = _read(kind, body, version, context)
    kind.rules.prepare_create(hub, context)
    return Written(hub, kind.rules.validate_create(hub, context), unknown)


def update(
    kind: Kind, old: Fields, body: Fields, version: str = "v1", context: FakeContext | None = None
) -> Written:
    context = replace(context or FakeContext(), version=version)
    hub, unknown = _read(kind, body, version, context)
    if kind.has_status:
        hub["status"] = copy.deepcopy(old.get("status"))
    kind.rules.prepare_update(hub, old, context)
    return Written(hub, kind.rules.validate_update(hub, old, context), unknown)


def write_status(
    kind: Kind, old: Fields, status: Any, version: str = "v1", context: FakeContext | None = None
) -> Written:
    """`old` is in the hub form, so is what comes of it; `status` looks alike in every version."""
    context = replace(context or FakeContext(), version=version)
    body = {**copy.deepcopy(old), "status": copy.deepcopy(status)}
    hub, unknown = _read(kind, body, "v1", context)
    kind.rules.prepare_status(hub, old, context)
    return Written(hub, kind.rules.validate_status(hub, old, context), unknown)


def shown(kind: Kind, hub: Fields, version: str) -> Fields:
    """A stored object as a client of `version` reads it."""
    found = kind.version(version)
    assert found is not None
    return found.from_hub(copy.deepcopy(hub))


def _read(kind: Kind, body: Fields, version: str, context: FakeContext) -> tuple[Fields, tuple[str, ...]]:
    found = kind.version(version)
    assert found is not None
    fields = copy.deepcopy(body)
    problems = schema.check(fields, found.shape())
    assert not problems.malformed, problems.malformed
    schema.apply_defaults(fields, found.shape())
    found.default(fields, context.now)
    return found.to_hub(fields), problems.unknown
