"""Persistent volumes and the claims on them. Nothing here provisions any; pods may name them."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from ...field import FieldError, Path, invalid, required, unsupported
from ...kind import Column, Fields, Kind, Rules, Version, WriteContext
from ..amounts import validate_amount
from ..reading import default, items, obj, section, text
from ..workloads import AGE, NAME

ACCESS_MODES: Mapping[str, str] = {
    "ReadWriteOnce": "RWO",
    "ReadOnlyMany": "ROX",
    "ReadWriteMany": "RWX",
    "ReadWriteOncePod": "RWOP",
}
RECLAIM_POLICIES = ("Delete", "Recycle", "Retain")
VOLUME_MODES = ("Block", "Filesystem")
_NOT_SOURCES = frozenset(
    ("accessModes", "capacity", "claimRef", "mountOptions", "nodeAffinity", "persistentVolumeReclaimPolicy",
     "storageClassName", "volumeAttributesClassName", "volumeMode")
)  # fmt: skip
_SPEC = Path("spec")


def default_claim_spec(spec: Fields) -> None:
    default(spec, "volumeMode", "Filesystem")
    section(spec, "resources")


def _default_claim(claim: Fields, now: datetime) -> None:
    default_claim_spec(section(claim, "spec"))
    default(section(claim, "status"), "phase", "Pending")


def _default_volume(volume: Fields, now: datetime) -> None:
    spec = section(volume, "spec")
    default(spec, "persistentVolumeReclaimPolicy", "Retain")
    default(spec, "volumeMode", "Filesystem")
    default(section(volume, "status"), "phase", "Pending")
    if (host_path := spec.get("hostPath")) is not None and host_path.get("type") is None:
        host_path["type"] = ""


def _pending(fields: Fields, context: WriteContext) -> None:
    fields["status"] = {"phase": "Pending"}


def _validate_common(spec: Fields) -> list[FieldError]:
    found: list[FieldError] = []
    modes = items(spec, "accessModes")
    if not modes:
        found.append(required(_SPEC / "accessModes", "at least 1 access mode is required"))
    for mode in modes:
        if mode not in ACCESS_MODES:
            found.append(unsupported(_SPEC / "accessModes", mode, ACCESS_MODES))
    if "ReadWriteOncePod" in modes and len(modes) > 1:
        text = "may not use ReadWriteOncePod with other access modes"
        found.append(invalid(_SPEC / "accessModes", modes, text))
    if spec.get("volumeMode") not in VOLUME_MODES:
        found.append(unsupported(_SPEC / "volumeMode", spec.get("volumeMode"), VOLUME_MODES))
    return found


def _validate_storage(amounts: Mapping[str, Any], path: Path) -> list[FieldError]:
    if amounts.get("storage") is None:
        return [required(path["storage"])]
    return validate_amount("storage", amounts["storage"], path["storage"])


def _validate_claim(claim: Fields, context: WriteContext) -> list[FieldError]:
    spec = obj(claim, "spec")
    wanted = obj(spec, "resources", "requests")
    return [*_validate_common(spec), *_validate_storage(wanted, _SPEC / "resources")]


def _validate_claim_update(new: Fields, old: Fields, context: WriteContext) -> list[FieldError]:
    """Once made, a claim may be bound and may grow."""
    movable = ("resources", "volumeName", "volumeAttributesClassName", "storageClassName")
    changed = [
        name
        for name in {**obj(new, "spec"), **obj(old, "spec")}
        if name not in movable and obj(new, "spec").get(name) != obj(old, "spec").get(name)
    ]
    for name in ("volumeName", "storageClassName"):
        was = obj(old, "spec").get(name)
        if was and was != obj(new, "spec").get(name):
            changed.append(name)
    found = _validate_claim(new, context)
    if changed:
        text = "is immutable after creation except resources.requests and volumeAttributesClassName"
        found.append(invalid(_SPEC, ", ".join(sorted(changed)), text))
    return found


def _validate_volume(volume: Fields, context: WriteContext) -> list[FieldError]:
    spec = obj(volume, "spec")
    found = [*_validate_common(spec), *_validate_storage(obj(spec, "capacity"), _SPEC / "capacity")]
    if spec.get("persistentVolumeReclaimPolicy") not in RECLAIM_POLICIES:
        at = _SPEC / "persistentVolumeReclaimPolicy"
        found.append(unsupported(at, spec.get("persistentVolumeReclaimPolicy"), RECLAIM_POLICIES))
    sources = [name for name, value in spec.items() if name not in _NOT_SOURCES and value is not None]
    if not sources:
        found.append(required(_SPEC, "must specify a volume type"))
    return found


def access_modes(modes: Sequence[str]) -> str:
    known = [ACCESS_MODES[mode] for mode in ACCESS_MODES if mode in modes]
    return ",".join(known)


def _volume_cells(volume: Fields, age: str) -> Sequence[Any]:
    spec, claim = obj(volume, "spec"), obj(volume, "spec", "claimRef")
    phase = text(volume, "status", "phase")
    return [
        volume["metadata"]["name"],
        str(obj(spec, "capacity").get("storage", "")),
        access_modes(items(spec, "accessModes")),
        spec.get("persistentVolumeReclaimPolicy", ""),
        "Terminating" if volume["metadata"].get("deletionTimestamp") else phase,
        f"{claim.get('namespace', '')}/{claim.get('name', '')}" if claim else "",
        spec.get("storageClassName", ""),
        spec.get("volumeAttributesClassName") or "<unset>",
        text(volume, "status", "reason"),
        age,
        spec.get("volumeMode") or "<unset>",
    ]


def _claim_cells(claim: Fields, age: str) -> Sequence[Any]:
    spec, status = obj(claim, "spec"), obj(claim, "status")
    bound = bool(spec.get("volumeName"))
    return [
        claim["metadata"]["name"],
        "Terminating" if claim["metadata"].get("deletionTimestamp") else status.get("phase", ""),
        spec.get("volumeName", ""),
        str(obj(status, "capacity").get("storage", "")) if bound else "",
        access_modes(items(status, "accessModes")) if bound else "",
        spec.get("storageClassName") or "",
        spec.get("volumeAttributesClassName") or "<unset>",
        age,
        spec.get("volumeMode") or "<unset>",
    ]


PERSISTENT_VOLUME = Kind(
    group="",
    kind="PersistentVolume",
    plural="persistentvolumes",
    singular="persistentvolume",
    short_names=("pv",),
    versions=(Version("v1", "io.k8s.api.core.v1.PersistentVolume", default=_default_volume),),
    hub="v1",
    namespaced=False,
    has_status=True,
    rules=Rules(
        prepare_create=_pending,
        validate_create=_validate_volume,
        validate_update=lambda new, old, context: _validate_volume(new, context),
    ),
    columns=(
        Column("Name", format="name", description="Name must be unique within a cluster."),
        Column("Capacity", description="How much it holds."),
        Column("Access Modes", description="How it may be mounted."),
        Column("Reclaim Policy", description="What becomes of it when its claim is gone."),
        Column("Status", description="Whether it is free, bound or done with."),
        Column("Claim", description="The claim that has it."),
        Column("StorageClass", description="The class it belongs to."),
        Column("VolumeAttributesClass", description="The attributes class it has."),
        Column("Reason", description="Why it is in its status."),
        AGE,
        Column("VolumeMode", priority=1, description="Files or a block device."),
    ),
    cells=_volume_cells,
)

PERSISTENT_VOLUME_CLAIM = Kind(
    group="",
    kind="PersistentVolumeClaim",
    plural="persistentvolumeclaims",
    singular="persistentvolumeclaim",
    short_names=("pvc",),
    versions=(Version("v1", "io.k8s.api.core.v1.PersistentVolumeClaim", default=_default_claim),),
    hub="v1",
    has_status=True,
    rules=Rules(
        prepare_create=_pending,
        validate_create=_validate_claim,
        validate_update=_validate_claim_update,
    ),
    columns=(
        NAME,
        Column("Status", description="Whether it has a volume."),
        Column("Volume", description="The volume it has."),
        Column("Capacity", description="How much that holds."),
        Column("Access Modes", description="How it may be mounted."),
        Column("StorageClass", description="The class it asks for."),
        Column("VolumeAttributesClass", description="The attributes class it asks for."),
        AGE,
        Column("VolumeMode", priority=1, description="Files or a block device."),
    ),
    cells=_claim_cells,
)
