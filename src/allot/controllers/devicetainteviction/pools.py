"""Which taints the drivers have published, as of the newest slices of each pool.

Pure; it hears of slices one at a time, and says which devices that may concern. Only the
highest generation of a pool counts, whether it is complete or not: a device that is in
use is judged by what its driver said last.

TPOOL1  The taints of a device are those that the slices of its pool's highest generation
        publish for it, as if all slices were read anew.
TPOOL2  A device whose taints a slice changes is among those that are returned. A slice that
        changes no taint costs its own devices, never those of its pool.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from allot.allocation import DeviceId, PoolId
from allot.api import resource

from .views import NO_EXECUTE

Taints = tuple[resource.DeviceTaint, ...]


@dataclass(frozen=True, slots=True)
class _Shelf:
    """What of a slice matters here."""

    pool: PoolId
    generation: int
    tainted: dict[str, Taints]  # by device


@dataclass(slots=True)
class _Pool:
    generations: Counter[int] = field(default_factory=Counter)  # how many slices have which
    newest: int = -1
    tainted: dict[str, dict[str, _Shelf]] = field(default_factory=dict)  # device -> slice -> shelf


class Pools:
    def __init__(self) -> None:
        self._shelves: dict[str, _Shelf] = {}  # by the name of the slice
        self._pools: dict[PoolId, _Pool] = {}

    def put(self, slice: resource.ResourceSlice) -> Iterable[DeviceId]:
        """A slice is there, or is another now. Returns the devices that this may concern."""
        name = slice.metadata.name
        before, now = self._shelves.get(name), _shelf(slice)
        if before == now:
            return ()
        touched = dict.fromkeys(self.remove(name))
        self._shelves[name] = now
        pool = self._pools.setdefault(now.pool, _Pool())
        for device in now.tainted:
            pool.tainted.setdefault(device, {})[name] = now
        pool.generations[now.generation] += 1
        touched.update(dict.fromkeys(_renewed(now, pool)))
        return touched

    def remove(self, name: str) -> Iterable[DeviceId]:
        shelf = self._shelves.pop(name, None)
        if shelf is None:
            return ()
        pool = self._pools[shelf.pool]
        for device in shelf.tainted:
            del pool.tainted[device][name]
            if not pool.tainted[device]:
                del pool.tainted[device]
        pool.generations[shelf.generation] -= 1
        if not pool.generations[shelf.generation]:
            del pool.generations[shelf.generation]
        touched = _renewed(shelf, pool)
        if not pool.generations:
            del self._pools[shelf.pool]
        return touched

    def taints(self, device: DeviceId) -> Iterator[tuple[str, resource.DeviceTaint]]:
        """The NoExecute taints of a device, each with the name of its slice."""
        pool = self._pools.get(device.pool_id)
        if pool is None:
            return
        for name, shelf in pool.tainted.get(device.name, {}).items():
            if shelf.generation == pool.newest:
                yield from ((name, taint) for taint in shelf.tainted[device.name])

    def is_newest(self, slice: resource.ResourceSlice) -> bool:
        pool = self._pools.get(PoolId(slice.spec.driver, slice.spec.pool.name))
        return pool is not None and slice.spec.pool.generation == pool.newest


def evicting(device: resource.Device) -> Taints:
    return tuple(taint for taint in device.taints if taint.effect == NO_EXECUTE)


def _shelf(slice: resource.ResourceSlice) -> _Shelf:
    spec = slice.spec
    tainted = {device.name: taints for device in spec.devices if (taints := evicting(device))}
    return _Shelf(PoolId(spec.driver, spec.pool.name), spec.pool.generation, tainted)


def _renewed(shelf: _Shelf, pool: _Pool) -> list[DeviceId]:
    """Look which generation is the newest now, and whom that concerns beside the slice's own."""
    newest = max(pool.generations, default=-1)
    concerned = dict.fromkeys(shelf.tainted)
    if newest != pool.newest:
        pool.newest = newest
        concerned.update(dict.fromkeys(pool.tainted))
    return [DeviceId(shelf.pool.driver, shelf.pool.name, name) for name in concerned]
