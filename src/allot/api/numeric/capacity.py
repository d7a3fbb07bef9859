"""What a NodeResourceCapacity may say: whose, where, which instances. Nobody here looks into `data`."""

from collections.abc import Mapping
from typing import Any

from .. import field
from ..field import FieldError, Path
from ..kind import Fields, WriteContext
from ..object import encode
from ..resource import checks
from ..resource.found import Found, each_unique
from . import limits

_INSTANCES = Path("instances")


def validate_create(new: Fields, context: WriteContext) -> list[FieldError]:
    return _validate(new, {}, context)


def validate_update(new: Fields, old: Fields, context: WriteContext) -> list[FieldError]:
    return _validate(new, old, context)


def _validate(new: Fields, old: Fields, context: WriteContext) -> list[FieldError]:
    found = Found()
    node = new.get("nodeName") or ""
    if node:
        checks.node_name(found, node, Path("nodeName"))
    else:
        found.add(field.required(Path("nodeName")))
    checks.driver_name(found, new.get("driverName") or "", Path("driverName"))
    for part in ("nodeName", "driverName") if old else ():
        if new.get(part) != old.get(part):
            found.add(field.invalid(Path(part), new.get(part), "field is immutable"))
    if new.get("instances") is None:
        found.add(field.required(_INSTANCES))
    before = {one.get("id"): one for one in old.get("instances") or ()}
    each_unique(
        found, new.get("instances") or (), limits.INSTANCES_MAX, _INSTANCES,
        lambda one, at: _instance(found, one, before, at), lambda one: one.get("id") or "", declared=False,
    )  # fmt: skip
    return found.errors(context.version)


def _instance(found: Found, instance: Fields, before: Mapping[str, Fields], path: Path) -> None:
    if before.get(instance.get("id") or "") == instance:
        return  # it was judged when it was new
    for part in ("id", "apiVersion", "kind"):
        if not instance.get(part):
            found.add(field.required(path / part))
    if checks.size(instance.get("id") or "") > limits.INSTANCE_ID_MAX:
        found.add(field.too_long(path / "id", limits.INSTANCE_ID_MAX))
    _data(found, instance.get("data"), path / "data")


def _data(found: Found, data: Any, path: Path) -> None:
    if data is None:
        found.add(field.required(path))
    elif not isinstance(data, dict):
        found.add(field.invalid(path, data, "must be a JSON object"))
    elif len(encode(data)) > limits.DATA_MAX:
        found.add(field.too_long(path, limits.DATA_MAX))
