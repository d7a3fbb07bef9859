"""The driver of cores. Pure, but for the ports.

Cores that share a NUMA node and a cache are one device, whose capacity `cores` claims share: each takes
so many whole cores, with all their threads, and no two claims have the same. Which ones is decided when
a claim is prepared, and noted in a file before anything is done with it.

    CPU1  A core has one claim at most: what is noted is taken, until its claim is unprepared.
    CPU2  A claim keeps its cores, however often it is prepared.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Final, Protocol

import msgspec

from allot.api import Quantity
from allot.base import Files
from allot.driver import (
    Allocated,
    Capacity,
    Claim,
    Device,
    Driver,
    Edits,
    Entry,
    Given,
    Hook,
    Node,
    NotUsable,
    Pool,
    capitals,
)

from .topology import Core, Group, TooFew, choose, groups, written

DRIVER: Final = "cpu.allot.dev"
CORES: Final = "cores"
_TAKEN = msgspec.json.Decoder(dict[str, tuple[int, ...]])


class Pinning(Protocol):
    """The port: what keeps containers to their CPUs."""

    def hook(self, cpus: Sequence[int]) -> Hook: ...

    def sweep(self) -> None:
        """What ended containers have left."""


def driver(cores: Sequence[Core], pinning: Pinning, notes: Path, files: Files) -> Driver:
    """`notes` is the directory for what claims have."""
    one = _Cpu(groups(cores), pinning, notes, files)
    return Driver(DRIVER, one.pools, one.prepare, one.unprepare)


class _Cpu:
    def __init__(self, found: Sequence[Group], pinning: Pinning, notes: Path, files: Files) -> None:
        self._groups = {one.name: one for one in found}
        self._pinning, self._notes, self._files = pinning, notes, files

    def pools(self, node: Node) -> list[Pool]:
        return [Pool(node.name, [_device(one) for one in self._groups.values()])]

    def prepare(self, claim: Claim) -> Given:
        """CPU1, CPU2."""
        self._files.make_directory(self._notes, 0o700)
        own = self._read(f"{claim.uid}.json")
        for one in claim.devices:
            if _key(one) not in own:
                own[_key(one)] = self._chosen(claim, one, [cpu for cpus in own.values() for cpu in cpus])
        self._files.write(self._notes / f"{claim.uid}.json", msgspec.json.encode(own))
        return {one: self._given(one, own[_key(one)]) for one in claim.devices}

    def unprepare(self, entry: Entry) -> None:
        self._pinning.sweep()
        self._files.remove(self._notes / f"{entry.uid}.json")

    def _chosen(self, claim: Claim, one: Allocated, own: Sequence[int]) -> tuple[int, ...]:
        group, asked = self._groups.get(one.device), one.consumed.get(CORES)
        if group is None:
            raise NotUsable(f"claim {claim} has {one.device}, and this machine has {', '.join(self._groups)}")
        if asked is None:
            raise NotUsable(f"claim {claim}: its allocation does not say how many {CORES} it has")
        try:
            return choose(group, [*own, *self._taken()], Quantity.parse(asked).as_int())
        except TooFew as few:
            raise NotUsable(f"claim {claim}: {few}") from None

    def _given(self, one: Allocated, cpus: tuple[int, ...]) -> Edits:
        text = written(cpus)
        return Edits(env=(f"CPUS_{capitals(one.request)}={text}",), hooks=(self._pinning.hook(cpus),))

    def _taken(self) -> list[int]:
        names = [name for name in self._files.names(self._notes) if name.endswith(".json")]
        return [cpu for name in names for cpus in self._read(name).values() for cpu in cpus]

    def _read(self, name: str) -> dict[str, tuple[int, ...]]:
        content = self._files.read(self._notes / name)
        return _TAKEN.decode(content) if content is not None else {}


def _device(one: Group) -> Device:
    about: dict[str, int | str] = {
        "type": "cores",
        "resource.kubernetes.io/numaNode": one.first.numa_node,
        "socketID": one.first.socket,
        "threadsPerCore": len(one.first.cpus),
        "cpus": written([cpu for core in one.cores for cpu in core.cpus])[:64],
    }
    if one.first.cache is not None:
        about["cacheL3ID"] = one.first.cache
    cores = Capacity(str(len(one.cores)), default="1", min="1", step="1")
    return Device(one.name, about, {CORES: cores}, shared=True)


def _key(one: Allocated) -> str:
    return one.share_id or f"{one.request}/{one.device}"
