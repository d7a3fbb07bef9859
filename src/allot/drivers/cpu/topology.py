"""Cores by what they share: a NUMA node, and a third-level cache. Pure; `machine` reads them from `/sys`."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple


class Core(NamedTuple):
    cpus: tuple[int, ...]  # its threads
    socket: int
    numa_node: int
    cache: int | None  # the third level's; None: not known


class Group(NamedTuple):
    """Cores that share a NUMA node and a cache: one device."""

    name: str
    cores: tuple[Core, ...]

    @property
    def first(self) -> Core:
        return self.cores[0]


class TooFew(ValueError):
    """The message says what was asked for, and what is free."""


def groups(cores: Iterable[Core]) -> tuple[Group, ...]:
    found: dict[tuple[int, int], list[Core]] = {}
    for core in sorted(cores):
        found.setdefault((core.numa_node, -1 if core.cache is None else core.cache), []).append(core)
    return tuple(
        Group(f"numa-{node}" if cache < 0 else f"numa-{node}-cache-{cache}", tuple(own))
        for (node, cache), own in sorted(found.items())
    )


def choose(group: Group, taken: Iterable[int], count: int) -> tuple[int, ...]:
    """The threads of so many cores that nobody has. Raises TooFew."""
    gone = frozenset(taken)
    free = [core for core in group.cores if gone.isdisjoint(core.cpus)]
    if len(free) < count:
        raise TooFew(
            f"{group.name} has {len(free)} free cores of {len(group.cores)}, and {count} are asked for"
        )
    return tuple(sorted(cpu for core in free[:count] for cpu in core.cpus))


def listed(text: str) -> tuple[int, ...]:
    """0-3,8 as numbers. Raises ValueError."""
    found: list[int] = []
    for part in filter(None, (one.strip() for one in text.split(","))):
        first, _, last = part.partition("-")
        found += range(int(first), int(last or first) + 1)
    return tuple(found)


def written(cpus: Sequence[int]) -> str:
    """The shortest list: 0-3,8."""
    runs: list[list[int]] = []
    for cpu in sorted(set(cpus)):
        if runs and runs[-1][1] == cpu - 1:
            runs[-1][1] = cpu
        else:
            runs.append([cpu, cpu])
    return ",".join(f"{first}-{last}" if first != last else str(first) for first, last in runs)
