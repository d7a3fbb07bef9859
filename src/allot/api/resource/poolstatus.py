"""What a ResourcePoolStatusRequest may say.

Somebody asks once how the pools of a driver stand; the controller answers once, in the status, and
both are kept for a while. Neither the question nor the answer changes afterwards.
"""

from collections.abc import Sequence
from datetime import datetime
from functools import cache
from typing import Any

from .. import field
from ..age import since
from ..custom import validate
from ..field import FieldError, Path
from ..kind import Column, Fields, WriteContext
from ..schema import Schema, from_structural
from . import checks, conditions, limits
from .found import Found

_SPEC, _STATUS = Path("spec"), Path("status")

_TEXT, _COUNT = {"type": "string"}, {"type": "integer", "format": "int32"}
_AMOUNT = {"x-kubernetes-int-or-string": True}
_PARTITIONS: dict[str, Any] = {
    "type": "object",
    "properties": {
        **dict.fromkeys(("attribute", "type"), _TEXT),
        **dict.fromkeys(("total", "allocatable"), _COUNT),
    },
}
_SHARED_CAPACITY: dict[str, Any] = {
    "type": "object",
    "properties": {"name": _TEXT, **dict.fromkeys(("total", "consumed", "available"), _AMOUNT)},
}
_SHARED: dict[str, Any] = {
    "type": "object",
    "properties": {
        **dict.fromkeys(("fullyAvailableDevices", "partiallyAvailableDevices"), _COUNT),
        "capacity": {"type": "array", "items": _SHARED_CAPACITY},
    },
}
_POOL: dict[str, Any] = {
    "type": "object",
    "required": ["driver", "poolName", "generation"],
    "properties": {
        **dict.fromkeys(("driver", "poolName", "nodeName", "validationError"), _TEXT),
        "generation": {"type": "integer", "format": "int64"},
        **dict.fromkeys(
            ("resourceSliceCount", "totalDevices", "allocatedDevices", "availableDevices"), _COUNT
        ),
        "unavailableDevices": _COUNT,
        "partitionSummary": {"type": "array", "items": _PARTITIONS},
        "shareableSummary": _SHARED,
    },
}
_CONDITION: dict[str, Any] = {
    "type": "object",
    "required": ["type", "status", "lastTransitionTime", "reason"],
    "properties": {
        **dict.fromkeys(("type", "status", "reason", "message"), _TEXT),
        "lastTransitionTime": {"type": "string", "format": "date-time"},
        "observedGeneration": {"type": "integer", "format": "int64"},
    },
}
_LIST = {"type": "array", "x-kubernetes-list-type": "map"}


@cache
def shape() -> Schema:
    spec = {**dict.fromkeys(("driver", "poolName", "defaultPartitionTypeAttribute"), _TEXT), "limit": _COUNT}
    pools = {"type": "array", "items": _POOL, "x-kubernetes-list-type": "atomic"}
    listed = {**_LIST, "items": _CONDITION, "x-kubernetes-list-map-keys": ["type"]}
    status = {"poolCount": _COUNT, "pools": pools, "conditions": listed}
    return from_structural(
        {
            "type": "object",
            "properties": {
                "spec": {"type": "object", "properties": spec},
                "status": {"type": "object", "properties": status},
            },
        }
    )


# -- what the server does to one -----------------------------------------------------------------


def default(request: Fields, now: datetime) -> None:
    spec = request.get("spec")
    if isinstance(spec, dict) and spec.get("limit") is None:
        spec["limit"] = limits.POOL_STATUS_LIMIT


def prepare_create(new: Fields, context: WriteContext) -> None:
    new.pop("status", None)


def validate_create(new: Fields, context: WriteContext) -> list[FieldError]:
    return validate(new, shape()) or _check_spec(new, context)


def _check_spec(new: Fields, context: WriteContext) -> list[FieldError]:
    spec = new.get("spec") or {}
    found = Found()
    checks.driver_name(found, spec.get("driver") or "", _SPEC / "driver")
    if spec.get("poolName") is not None:
        checks.pool_name(found, spec["poolName"], _SPEC / "poolName")
    most, limit = limits.POOL_STATUS_POOLS_MAX, spec.get("limit")
    if limit is not None and not 1 <= limit <= most:
        found.add(field.invalid(_SPEC / "limit", limit, f"must be between 1 and {most}, inclusive"))
    return found.errors(context.version)


def validate_update(new: Fields, old: Fields, context: WriteContext) -> list[FieldError]:
    if new.get("spec") == old.get("spec"):
        return []
    return [field.invalid(_SPEC, new.get("spec"), "field is immutable")]


def validate_status(new: Fields, old: Fields, context: WriteContext) -> list[FieldError]:
    status = new.get("status") or {}
    if old.get("status"):
        same = status == old["status"]
        return [] if same else [field.invalid(_STATUS, None, "field is immutable once it is set")]
    return validate(new, shape()) or _check_status(status, context)


def _check_status(status: Fields, context: WriteContext) -> list[FieldError]:
    found = Found()
    listed, pools = status.get("conditions") or (), status.get("pools") or ()
    conditions.check(found, listed, _STATUS / "conditions")
    if len(listed) > limits.POOL_STATUS_CONDITIONS_MAX:
        most = limits.POOL_STATUS_CONDITIONS_MAX
        found.add(field.too_many(_STATUS / "conditions", len(listed), most))
    if len(pools) > limits.POOL_STATUS_POOLS_MAX:
        found.add(field.too_many(_STATUS / "pools", len(pools), limits.POOL_STATUS_POOLS_MAX))
    for at, pool in enumerate(pools):
        if checks.size(pool.get("validationError") or "") > limits.POOL_STATUS_ERROR_MAX:
            path = (_STATUS / "pools")[at] / "validationError"
            found.add(field.too_long(path, limits.POOL_STATUS_ERROR_MAX))
    return found.errors(context.version)


# -- kubectl get ---------------------------------------------------------------------------------

_COUNTED = ("totalDevices", "availableDevices", "allocatedDevices", "unavailableDevices")

COLUMNS: Sequence[Column] = (
    Column("Name", format="name", description="Name must be unique within a namespace."),
    Column("Driver", description="Whose pools were asked for."),
    *(
        Column(name, type="integer", description=f"Devices that are {name.lower()}, in all pools together.")
        for name in ("Total", "Available", "Allocated", "Unavailable")
    ),
    Column("Errors", type="integer", description="Pools that are not as they should be."),
    Column("Pools", type="integer", description="Pools that were found."),
    Column("Status", description="How far the answer is."),
    Column("Completed", description="How long ago the answer was given."),
)


def cells(request: Fields, now: datetime) -> Sequence[Any]:
    status = request.get("status") or {}
    pools = status.get("pools") or ()
    done: Fields = next((one for one in status.get("conditions") or () if one.get("status") == "True"), {})
    return [
        request["metadata"]["name"],
        (request.get("spec") or {}).get("driver") or "",
        *(sum(pool.get(name) or 0 for pool in pools) for name in _COUNTED),
        sum(bool(pool.get("validationError")) for pool in pools),
        status.get("poolCount") or 0,
        done.get("type") or "Pending",
        since(done["lastTransitionTime"], now) if done else "",
    ]
