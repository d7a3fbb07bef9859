"""The drivers of one node of a fleet."""

import asyncio
import random
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from allot.base import Clock, Files, MachineFiles, SystemClock
from allot.driver import (
    Allocated,
    Claim,
    DeviceHealth,
    DevicePlugin,
    Driver,
    Edits,
    Entry,
    Given,
    Mount,
    Node,
    Pool,
    variable,
)
from allot.fleet import CATALOGUE, Build, fleet

from .counted import counted
from .declared import pool
from .faults import Faults

IN_CONTAINER: Final = "/run/allot/devices"
LOOK_S: Final = 0.5
"""Between two looks at what is lost."""
REPORT_S: Final = 10.0
"""Between two reports of health, which hold for thirty seconds."""
BUILD_HELP: Final = "a machine of the fleet; default: the one whose nodes are called so, else the first"


class UnknownBuild(ValueError):
    """The fleet has no such machine."""


def drivers(
    name: str,
    node: str,
    build: str = "",
    faults: Faults | None = None,
    files: Path | None = None,
    *,
    seed: int = 0,
    clock: Clock | None = None,
) -> list[Driver]:
    """Of the node's machine in fleet `name`. With `files` each prepared device is a file there too, which
    is mounted into containers. Raises UnknownFleet, UnknownBuild."""
    by_driver: dict[str, list[Pool]] = {}
    for given in _machine(name, node, build).pools(node):
        by_driver.setdefault(given.driver, []).append(pool(given))
    kept = Kept(files) if files is not None else None
    return [
        simulated(one, own, faults or Faults(), kept, random.Random(seed), clock or SystemClock())
        for one, own in by_driver.items()
    ]


def plugins(
    name: str, node: str, build: str = "", faults: Faults | None = None, *, clock: Clock | None = None
) -> list[DevicePlugin]:
    """Of what the node's machine in fleet `name` has counted. Raises UnknownFleet, UnknownBuild."""
    machine = _machine(name, node, build).machine
    return [
        counted(resource, count, faults or Faults(), clock or SystemClock())
        for resource, count in machine.plugins.items()
    ]


@dataclass(frozen=True, slots=True)
class Kept:
    """Where prepared devices are files."""

    directory: Path
    files: Files = field(default_factory=MachineFiles)


def simulated(
    name: str, pools: Sequence[Pool], faults: Faults, kept: Kept | None, rng: random.Random, clock: Clock
) -> Driver:
    """A driver of these devices, which are not there."""
    one = _Simulated(name, tuple(pools), faults, kept, rng, clock)
    return Driver(name, one.follow, one.prepare, one.unprepare, health=one.reports)


def offers(name: str) -> list[dict[str, Any]]:
    """Device classes and claim templates that fit the fleet, for an administrator to apply."""
    whole = fleet(name, 1)
    return [*whole.classes, *whole.templates]


def _machine(name: str, node: str, build: str) -> Build:
    fleet(name, 1)  # raises UnknownFleet, with the names that there are
    builds = {one.name: one for one in CATALOGUE[name].builds}
    chosen = build or next((one for one in builds if node.startswith(f"{one}-")), next(iter(builds)))
    if chosen not in builds:
        raise UnknownBuild(f"fleet {name!r} has no machine {chosen!r}; there are {', '.join(builds)}")
    return builds[chosen]


@dataclass(frozen=True, slots=True)
class _Simulated:
    driver: str
    pools: tuple[Pool, ...]
    faults: Faults
    kept: Kept | None
    rng: random.Random
    clock: Clock

    async def follow(self, node: Node) -> AsyncIterator[Sequence[Pool]]:
        """The pools, without what is lost just now."""
        told: Sequence[Pool] | None = None
        while True:
            there = tuple(self._without_lost(one) for one in self.pools)
            if there != told:
                yield there
                told = there
            if not self.faults.lose_s:
                return
            await asyncio.sleep(min(LOOK_S, self.faults.lose_s / 4))

    async def reports(self) -> AsyncIterator[Sequence[DeviceHealth]]:
        while True:
            now_s = self.clock.monotonic_s()
            sick = {(one.name, self.faults.sick(_names(one), now_s)) for one in self.pools}
            yield [
                DeviceHealth(one.name, device.name, False, "made up")
                if (one.name, device.name) in sick
                else DeviceHealth(one.name, device.name, True)
                for one in self.pools
                for device in one.devices
            ]
            await asyncio.sleep(min(REPORT_S, self.faults.flap_s / 4 or REPORT_S))

    async def prepare(self, claim: Claim) -> Given:
        if self.faults.slow_s:
            await asyncio.sleep(self.faults.slow_s)
        if self.faults.fails(self.rng):
            raise RuntimeError("this prepare fails, as was asked for")
        return {one: await asyncio.to_thread(self._given, claim, one) for one in claim.devices}

    def unprepare(self, entry: Entry) -> None:
        if self.kept is not None:
            for held in entry.devices:
                self.kept.files.remove(self._file(self.kept, entry.uid, held.device))

    def _given(self, claim: Claim, one: Allocated) -> Edits:
        edits = Edits(env=(variable(claim, one),))
        if self.kept is None:
            return edits
        path = self._file(self.kept, claim.uid, one.device)
        self.kept.files.make_directory(path.parent)
        self.kept.files.write(path, f"{claim.driver}/{one.pool}/{one.device}\n".encode())
        mount = Mount(str(path), f"{IN_CONTAINER}/{one.device}", ("ro", "bind"))
        return Edits(env=edits.env, mounts=(mount,))

    def _file(self, kept: Kept, claim: str, device: str) -> Path:
        return kept.directory / f"{claim}-{device}"

    def _without_lost(self, one: Pool) -> Pool:
        lost = self.faults.lost(_names(one), self.clock.monotonic_s())
        return replace(one, devices=[device for device in one.devices if device.name != lost])


def _names(one: Pool) -> list[str]:
    return [device.name for device in one.devices]
