"""The kinds of resource.k8s.io, as the server knows them.

Everything is stored in the form of v1. Upstream serves only v1 unless asked; we
serve v1beta2 and v1beta1 as well, with the deprecation warnings of 1.37.
"""

from collections.abc import Callable
from datetime import datetime

from ..gates import Gates
from ..kind import Fields, Guard, Kind, Rules, Version
from . import (
    claims,
    claimstatus,
    classes,
    columns,
    defaults,
    limits,
    poolstatus,
    prepare,
    slices,
    taintrules,
    versions,
)
from .reading import at

Default = Callable[[Fields, datetime], None]
Convert = Callable[[Fields], Fields]


def _schema(version: str, kind: str) -> str:
    return f"io.k8s.api.resource.{version}.{kind}"


def _deprecated(version: str, kind: str, since: str, gone: str) -> str:
    return f"{limits.GROUP}/{version} {kind} is deprecated in v{since}+, unavailable in v{gone}+"


def _keep(fields: Fields) -> Fields:
    return fields


def _nothing(fields: Fields, now: datetime) -> None:
    """No defaults."""


def _versions(
    kind: str,
    *,
    from_v1beta1: Convert = _keep,
    to_v1beta1: Convert = _keep,
    default: Default = _nothing,
    default_v1beta1: Default = _nothing,
) -> tuple[Version, ...]:
    return (
        Version("v1", _schema("v1", kind), default=default, defaults_by_part=True, converts_by_part=True),
        Version(
            "v1beta2",
            _schema("v1beta2", kind),
            default=default,
            converts_by_part=True,
            deprecated=_deprecated("v1beta2", kind, "1.36", "1.39"),
        ),
        Version(
            "v1beta1",
            _schema("v1beta1", kind),
            from_v1beta1,
            to_v1beta1,
            default_v1beta1,
            converts_by_part=True,
            deprecated=_deprecated("v1beta1", kind, "1.35", "1.38"),
        ),
    )


RESOURCE_CLAIM = Kind(
    limits.GROUP,
    "ResourceClaim",
    "resourceclaims",
    _versions(
        "ResourceClaim",
        from_v1beta1=versions.claim_from_v1beta1,
        to_v1beta1=versions.claim_to_v1beta1,
        default=defaults.claim,
        default_v1beta1=defaults.claim_v1beta1,
    ),
    hub="v1",
    guard=Guard.DEVICES_HELD,
    singular="resourceclaim",
    has_status=True,
    rules=Rules(
        prepare.create_claim,
        prepare.update_claim,
        prepare.update_claim_status,
        claims.validate_create,
        claims.validate_update,
        claimstatus.validate_status,
    ),
    columns=columns.CLAIM,
    cells=columns.claim,
)

RESOURCE_CLAIM_TEMPLATE = Kind(
    limits.GROUP,
    "ResourceClaimTemplate",
    "resourceclaimtemplates",
    _versions(
        "ResourceClaimTemplate",
        from_v1beta1=versions.template_from_v1beta1,
        to_v1beta1=versions.template_to_v1beta1,
        default=defaults.template,
        default_v1beta1=defaults.template_v1beta1,
    ),
    hub="v1",
    singular="resourceclaimtemplate",
    rules=Rules(
        prepare_create=prepare.create_template,
        prepare_update=prepare.update_template,
        validate_create=claims.validate_template_create,
        validate_update=claims.validate_template_update,
    ),
)

DEVICE_CLASS = Kind(
    limits.GROUP,
    "DeviceClass",
    "deviceclasses",
    _versions("DeviceClass"),
    hub="v1",
    namespaced=False,
    singular="deviceclass",
    counts_generation=True,
    rules=Rules(
        prepare_create=prepare.create_class,
        prepare_update=prepare.update_class,
        validate_create=classes.validate_create,
        validate_update=classes.validate_update,
    ),
)

RESOURCE_SLICE = Kind(
    limits.GROUP,
    "ResourceSlice",
    "resourceslices",
    _versions(
        "ResourceSlice",
        from_v1beta1=versions.slice_from_v1beta1,
        to_v1beta1=versions.slice_to_v1beta1,
        default=defaults.slice_,
        default_v1beta1=defaults.slice_v1beta1,
    ),
    hub="v1",
    guard=Guard.DEVICES_OFFERED,
    namespaced=False,
    singular="resourceslice",
    counts_generation=True,
    rules=Rules(
        prepare_create=prepare.create_slice,
        prepare_update=prepare.update_slice,
        validate_create=slices.validate_create,
        validate_update=slices.validate_update,
        warnings=slices.warnings,
    ),
    columns=columns.SLICE,
    cells=columns.slice_,
    selectable={
        "spec.nodeName": lambda fields: at(fields, "spec", "nodeName") or "",
        "spec.driver": lambda fields: at(fields, "spec", "driver") or "",
        "spec.pool.name": lambda fields: at(fields, "spec", "pool", "name") or "",
    },
    selects_namespace=False,
)

DEVICE_TAINT_RULE = Kind(
    limits.GROUP,
    "DeviceTaintRule",
    "devicetaintrules",
    (
        Version(
            "v1",
            _schema("v1", "DeviceTaintRule"),
            default=defaults.rule,
            returns_deleted=False,
            unconditional_update=False,
        ),
        Version("v1beta2", _schema("v1beta2", "DeviceTaintRule"), default=defaults.rule),
    ),
    hub="v1",
    namespaced=False,
    singular="devicetaintrule",
    has_status=True,
    counts_generation=True,
    rules=Rules(
        prepare.create_rule,
        prepare.update_rule,
        prepare.update_rule_status,
        taintrules.validate_create,
        taintrules.validate_update,
        taintrules.validate_status,
    ),
    columns=columns.RULE,
    cells_at=columns.rule,
)

RESOURCE_POOL_STATUS_REQUEST = Kind(
    limits.GROUP,
    "ResourcePoolStatusRequest",
    "resourcepoolstatusrequests",
    (
        Version(
            "v1alpha3",
            "",
            default=poolstatus.default,
            custom=poolstatus.shape(),
            unconditional_update=False,
        ),
    ),
    hub="v1alpha3",
    namespaced=False,
    singular="resourcepoolstatusrequest",
    has_status=True,
    rules=Rules(
        prepare_create=poolstatus.prepare_create,
        validate_create=poolstatus.validate_create,
        validate_update=poolstatus.validate_update,
        validate_status=poolstatus.validate_status,
    ),
    columns=poolstatus.COLUMNS,
    cells_at=poolstatus.cells,
)

KINDS = (RESOURCE_CLAIM, RESOURCE_CLAIM_TEMPLATE, DEVICE_CLASS, RESOURCE_SLICE, DEVICE_TAINT_RULE)


def served(gates: Gates) -> tuple[Kind, ...]:
    """KINDS, and those that are served only where somebody wants them."""
    return (*KINDS, RESOURCE_POOL_STATUS_REQUEST) if gates["DRAResourcePoolStatus"] else KINDS
