"""Which container has which devices, on disk: the fields of a kubelet's `kubelet_internal_checkpoint`. Pure.

It is written before a container starts with its devices, so that a process that begins anew lends none of
them a second time.
"""

from base64 import b64decode, b64encode
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import msgspec

from allot.wire import Malformed

from ..sealed import BadCheckpoint, decoded, opened, sealed
from .loans import Answer, Lent, Loan
from .offers import Properties

NAME = "kubelet_internal_checkpoint"
_NO_NUMA = "-1"


class Remembered(NamedTuple):
    loans: tuple[Loan, ...] = ()
    resources: tuple[str, ...] = ()  # that plugins have offered


class _Compute(msgspec.Struct, frozen=True):
    """As what devices were lent. Their name follows from it."""

    properties: dict[str, str]
    ids: tuple[str, ...]


class _Entry(msgspec.Struct, frozen=True, rename="pascal"):
    pod_uid: str = msgspec.field(name="PodUID")
    container_name: str
    resource_name: str
    device_ids: dict[str, tuple[str, ...]] | None = msgspec.field(name="DeviceIDs")  # by NUMA node
    alloc_resp: str | None = None  # base64 of the message
    ends: bool = msgspec.field(name="endsBeforeOthers", default=False)  # ours, and so are the next
    boot: str = msgspec.field(name="bootID", default="")
    compute: tuple[_Compute, ...] = msgspec.field(name="computeResources", default=())


class _Data(msgspec.Struct, frozen=True, rename="pascal"):
    pod_device_entries: tuple[_Entry, ...] | None
    registered_devices: dict[str, tuple[str, ...] | None] | None


def encode(loans: Iterable[Loan], resources: Iterable[str]) -> bytes:
    return sealed(_Data(tuple(map(_written, loans)), dict.fromkeys(resources, ())))


def decode(content: bytes) -> Remembered:
    """Raises BadCheckpoint."""
    data: _Data = decoded(NAME, opened(NAME, content), _Data, "its data is not a list of devices")
    loans = tuple(map(_read, data.pod_device_entries or ()))
    return Remembered(loans, tuple(data.registered_devices or ()))


def _written(loan: Loan) -> _Entry:
    answer = b64encode(loan.answer.encode()).decode() if loan.answer is not None else None
    ids = _by_numa(loan.devices)
    compute = _by_properties(loan.devices)
    return _Entry(loan.pod, loan.container, loan.resource, ids, answer, loan.ends, loan.boot, compute)


def _by_properties(devices: Sequence[Lent]) -> tuple[_Compute, ...]:
    found: dict[Properties, list[str]] = {}
    for one in devices:
        if one.properties is not None:
            found.setdefault(one.properties, []).append(one.id)
    return tuple(_Compute(dict(properties), tuple(ids)) for properties, ids in sorted(found.items()))


def _by_numa(devices: Sequence[Lent]) -> dict[str, tuple[str, ...]]:
    """A device that is near to several nodes is listed with each of them."""
    found: dict[str, tuple[str, ...]] = {}
    for one in devices:
        for node in map(str, one.numa) if one.numa else (_NO_NUMA,):
            found[node] = (*found.get(node, ()), one.id)
    return found


def _read(entry: _Entry) -> Loan:
    numa: dict[str, tuple[int, ...]] = {}
    for node, ids in sorted((entry.device_ids or {}).items()):
        for id in ids:
            numa[id] = numa.get(id, ()) if node == _NO_NUMA else (*numa.get(id, ()), _number(node))
    like = {id: tuple(sorted(one.properties.items())) for one in entry.compute for id in one.ids}
    devices = tuple(sorted(Lent(id, tuple(sorted(nodes)), like.get(id)) for id, nodes in numa.items()))
    answer = _answer(entry.alloc_resp) if entry.alloc_resp is not None else None
    place = entry.pod_uid, entry.container_name, entry.resource_name
    return Loan(*place, devices, entry.ends, answer, entry.boot)


def _number(node: str) -> int:
    try:
        return int(node)
    except ValueError:
        raise BadCheckpoint(NAME, f"it names the NUMA node {node[:100]!r}, which is no number") from None


def _answer(text: str) -> Answer:
    try:
        return Answer.decode(b64decode(text, validate=True))
    except (ValueError, Malformed) as wrong:
        raise BadCheckpoint(NAME, f"an answer of a device plugin cannot be read ({wrong})") from None
