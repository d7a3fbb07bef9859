"""GPUs that can be had whole or in parts: partitions that draw from shared counters.

The parts of a GPU are alternatives. A partition has a profile (how many compute slices,
how much memory) and a place: the memory slices that it covers. Every placement that the
hardware knows is a device of its own, and draws what it needs from the counters of its GPU,
one of them per memory slice; so two placements that overlap exclude each other without a
word about it in any other place.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from allot.api import resource

from .gpu import DRIVER, H100, GpuModel, described, place

Fields = dict[str, Any]

MEMORY_SLICES = 8


@dataclass(frozen=True, slots=True)
class Profile:
    name: str
    memory: str
    multiprocessors: int
    copy_engines: int
    decoders: int
    memory_slices: int  # how many
    places: tuple[int, ...]  # the first memory slice of each placement


PROFILES = (
    Profile("7g.80gb", "81152Mi", 132, 8, 7, 8, (0,)),
    Profile("4g.40gb", "40448Mi", 64, 4, 4, 4, (0,)),
    Profile("3g.40gb", "40448Mi", 60, 3, 3, 4, (0, 4)),
    Profile("2g.20gb", "19968Mi", 32, 2, 2, 2, (0, 2, 4)),
    Profile("1g.20gb", "19968Mi", 26, 1, 1, 2, (0, 2, 4, 6)),
    Profile("1g.10gb", "9856Mi", 16, 1, 1, 1, (0, 1, 2, 3, 4, 5, 6)),
)
"""Of an H100 with 80 GB, large to small."""

_WHOLE = Profile("", H100.memory, 132, 8, 7, MEMORY_SLICES, (0,))


def partitionable_gpus(node: str, count: int, model: GpuModel = H100) -> resource.pools.Pool:
    devices = [device for at in range(count) for device in _devices(model, at, count)]
    counters = [{"name": _counter_set(at), "counters": _drawn(_WHOLE, 0)} for at in range(count)]
    return resource.pools.Pool(DRIVER, node, devices, counters, node=node)


def _devices(model: GpuModel, at: int, count: int) -> Iterator[Fields]:
    common = {**described(model), **place(at, count)}
    yield _device(f"gpu-{at}", {"type": {"string": "gpu"}, **common}, at, _WHOLE, 0)
    for profile in PROFILES:
        kind = {"type": {"string": "mig"}, "profile": {"string": profile.name}, **common}
        for start in profile.places:
            name = f"gpu-{at}-mig-{profile.name.replace('.', '-')}-{start}"
            yield _device(name, kind, at, profile, start)


def _device(name: str, attributes: Fields, at: int, profile: Profile, start: int) -> Fields:
    return {
        "name": name,
        "attributes": attributes,
        "capacity": {
            "memory": {"value": profile.memory},
            "multiprocessors": {"value": str(profile.multiprocessors)},
        },
        "consumesCounters": [{"counterSet": _counter_set(at), "counters": _drawn(profile, start)}],
    }


def _drawn(profile: Profile, start: int) -> Fields:
    """What a partition takes of its GPU; the whole GPU takes all there is."""
    covered = range(start, start + profile.memory_slices)
    amounts = {
        "multiprocessors": profile.multiprocessors,
        "copy-engines": profile.copy_engines,
        "decoders": profile.decoders,
        **{f"memory-slice-{at}": 1 for at in covered},
    }
    return {name: {"value": str(amount)} for name, amount in amounts.items()}


def _counter_set(at: int) -> str:
    return f"gpu-{at}-counters"
