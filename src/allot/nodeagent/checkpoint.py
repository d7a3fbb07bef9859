"""What drivers were told, on disk: the format of a kubelet's `dra_manager_state`. Pure.

    {"Data": "<JSON as text>", "Checksum": <CRC-32 of that text>}

It is written before a driver is told to prepare anything and after it has unprepared it, so that a
process that begins anew knows what it has to undo. A file that cannot be read is an error and not an
empty one: devices that nobody gives back would be given away a second time.
"""

from collections.abc import Iterable
from typing import Any
from zlib import crc32

import msgspec

from allot.node import ClaimRef

from .told import Device, Entry, Part

NAME = "dra_manager_state"
KIND, VERSION = "DRACheckpoint", "checkpoint.dra.kubelet.k8s.io/v1"


class BadCheckpoint(ValueError):
    """The file is not what an agent wrote. The message says what to do about it."""

    def __init__(self, why: str) -> None:
        super().__init__(f"{NAME}: {why}; drain the node, remove the file, and start again")


class _Envelope(msgspec.Struct, frozen=True, rename="pascal"):
    data: str
    checksum: int


class _Device(msgspec.Struct, frozen=True, rename="pascal", omit_defaults=True):
    pool_name: str
    device_name: str
    request_names: tuple[str, ...] | None = ()
    cdi_device_ids: tuple[str, ...] | None = msgspec.field(name="CDIDeviceIDs", default=())
    share_id: str | None = msgspec.field(name="ShareID", default=None)


class _Part(msgspec.Struct, frozen=True, omit_defaults=True):
    devices: tuple[_Device, ...] | None = msgspec.field(name="Devices", default=())
    skipped: tuple[str, ...] | None = msgspec.field(name="skipNodeOperations", default=())


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
    data = msgspec.json.encode(_Data(KIND, VERSION, tuple(map(_written, entries)))).decode()
    return msgspec.json.encode(_Envelope(data, crc32(data.encode())))


def decode(content: bytes) -> tuple[Entry, ...]:
    """Raises BadCheckpoint."""
    envelope = _decoded(content, _Envelope, "it is not the JSON of a checkpoint")
    found = crc32(envelope.data.encode())
    if found != envelope.checksum:
        raise BadCheckpoint(f"the checksum is {envelope.checksum} and the content has {found}")
    said = _decoded(envelope.data.encode(), dict[str, Any], "its data is not a JSON object")
    if (said.get("kind"), said.get("apiVersion")) != (KIND, VERSION):
        what = f"{said.get('kind')!r} of {said.get('apiVersion')!r}"
        raise BadCheckpoint(f"it holds {what[:200]}, and this agent reads {KIND} of {VERSION}")
    data = _decoded(envelope.data.encode(), _Data, "its data is not a list of claims")
    return tuple(map(_read, data.claims or ()))


def _decoded(content: bytes, type: Any, otherwise: str) -> Any:
    try:
        return msgspec.json.decode(content, type=type)
    except (msgspec.DecodeError, UnicodeError) as wrong:
        raise BadCheckpoint(f"{otherwise} ({wrong})") from None


def _written(entry: Entry) -> _Claim:
    uid, namespace, name = entry.claim
    parts = {driver: _written_part(part) for driver, part in entry.parts.items()}
    return _Claim(uid, name, namespace, tuple(sorted(entry.pods)), parts)


def _written_part(part: Part) -> _Part:
    devices = tuple(
        _Device(one.pool, one.name, one.requests, one.cdi_ids, one.share_id or None) for one in part.devices
    )
    return _Part(devices, tuple(sorted(part.skipped)))


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
    return Part(frozenset(part.skipped or ()), devices)
