"""What drivers were told, on disk: the format of a kubelet's `dra_manager_state`. Pure.

It is written before a driver is told to prepare anything and after it has unprepared it, so that a
process that begins anew knows what it has to undo.
"""

from collections.abc import Iterable
from typing import Any

import msgspec

from allot.node import ClaimRef

from .sealed import BadCheckpoint, decoded, opened, sealed
from .told import Device, Entry, Part

NAME = "dra_manager_state"
KIND, VERSION = "DRACheckpoint", "checkpoint.dra.kubelet.k8s.io/v1"


class _Device(msgspec.Struct, frozen=True, rename="pascal", omit_defaults=True):
    pool_name: str
    device_name: str
    request_names: tuple[str, ...] | None = ()
    cdi_device_ids: tuple[str, ...] | None = msgspec.field(name="CDIDeviceIDs", default=())
    share_id: str | None = msgspec.field(name="ShareID", default=None)


class _Part(msgspec.Struct, frozen=True, omit_defaults=True):
    devices: tuple[_Device, ...] | None = msgspec.field(name="Devices", default=())
    skipped: tuple[str, ...] | None = msgspec.field(name="skipNodeOperations", default=())
    handle: str | None = msgspec.field(name="resourceHandle", default=None)  # ours: of a classic claim


class _Claim(msgspec.Struct, frozen=True, rename="pascal"):
    claim_uid: str = msgspec.field(name="ClaimUID")
    claim_name: str
    namespace: str
    pod_uids: tuple[str, ...] | None = msgspec.field(name="PodUIDs")
    driver_state: dict[str, _Part] | None


class _Data(msgspec.Struct, frozen=True):
    kind: str
    version: str = msgspec.field(name="apiVersion")
    claims: tuple[_Claim, ...] | None = msgspec.field(name="ClaimInfoStateList", default=())


def encode(entries: Iterable[Entry]) -> bytes:
    return sealed(_Data(KIND, VERSION, tuple(map(_written, entries))))


def decode(content: bytes) -> tuple[Entry, ...]:
    """Raises BadCheckpoint."""
    data = opened(NAME, content)
    said = decoded(NAME, data, dict[str, Any], "its data is not a JSON object")
    if (said.get("kind"), said.get("apiVersion")) != (KIND, VERSION):
        what = f"{said.get('kind')!r} of {said.get('apiVersion')!r}"
        raise BadCheckpoint(NAME, f"it holds {what[:200]}, and this agent reads {KIND} of {VERSION}")
    claims: _Data = decoded(NAME, data, _Data, "its data is not a list of claims")
    return tuple(map(_read, claims.claims or ()))


def _written(entry: Entry) -> _Claim:
    uid, namespace, name = entry.claim
    parts = {driver: _written_part(part) for driver, part in entry.parts.items()}
    return _Claim(uid, name, namespace, tuple(sorted(entry.pods)), parts)


def _written_part(part: Part) -> _Part:
    devices = tuple(
        _Device(one.pool, one.name, one.requests, one.cdi_ids, one.share_id or None) for one in part.devices
    )
    return _Part(devices, tuple(sorted(part.skipped)), part.handle)


def _read(claim: _Claim) -> Entry:
    parts = {driver: _read_part(part) for driver, part in (claim.driver_state or {}).items()}
    ref = ClaimRef(claim.claim_uid, claim.namespace, claim.claim_name)
    return Entry(ref, parts, frozenset(claim.pod_uids or ()))


def _read_part(part: _Part) -> Part:
    devices = tuple(
        Device(
            one.pool_name,
            one.device_name,
            one.request_names or (),
            one.cdi_device_ids or (),
            one.share_id or "",
        )
        for one in part.devices or ()
    )
    return Part(frozenset(part.skipped or ()), devices, part.handle)
