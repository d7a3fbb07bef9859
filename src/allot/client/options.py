"""What a request can ask for besides its object, as the wire has it."""

from enum import Enum
from typing import Any

from allot.api import encode


class Patch(Enum):
    """How a patch is to be read; the value is its media type."""

    MERGE = "application/merge-patch+json"
    JSON = "application/json-patch+json"
    STRATEGIC = "application/strategic-merge-patch+json"
    APPLY = "application/apply-patch+yaml"


class Propagation(Enum):
    """What happens to the dependents of what is deleted."""

    BACKGROUND = "Background"
    FOREGROUND = "Foreground"
    ORPHAN = "Orphan"


def query_of(**options: str | int | bool) -> dict[str, str]:
    return {
        name: "true" if value is True else str(value)
        for name, value in options.items()
        if value not in ("", 0, False)
    }


def write_query(field_manager: str, field_validation: str, dry_run: bool) -> dict[str, str]:
    query = query_of(fieldManager=field_manager, fieldValidation=field_validation)
    if dry_run:
        query["dryRun"] = "All"
    return query


def delete_options(
    uid: str,
    resource_version: str,
    propagation: Propagation | None,
    grace_period_s: int | None,
    dry_run: bool,
) -> bytes:
    options: dict[str, Any] = {}
    conditions = query_of(uid=uid, resourceVersion=resource_version)
    if conditions:
        options["preconditions"] = conditions
    if propagation is not None:
        options["propagationPolicy"] = propagation.value
    if grace_period_s is not None:
        options["gracePeriodSeconds"] = grace_period_s
    if dry_run:
        options["dryRun"] = ["All"]
    return encode({"kind": "DeleteOptions", "apiVersion": "v1", **options}) if options else b""
