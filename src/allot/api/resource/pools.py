"""A pool, cut into slices, and what has to be written so that the API shows it. Pure.

A driver thinks in pools; the API has slices. Readers put the slices of the newest generation
together again, and use the pool once as many are there as each of them announces. So the order
of writes decides what a reader sees when the writer is cut short, and here it is decided once for
everybody who publishes.

Cutting
    SPLIT1  A pool's slices share one generation and name their number, so that a reader
            knows when it has seen them all.
    SPLIT2  Counters and devices lie in different slices, and no slice is over its limits: 8
            counter sets, 128 devices, 64 once a device has counters, taints or list attributes.
    SPLIT3  Slices are named so that the order of names is the order of devices.

Writing
    PUBL1  What is there and right is left alone: asked a second time, there is nothing to write.
    PUBL2  The generation grows when a slice is created or more than one changes. A single slice is
           replaced in its generation: the pool is the old one, and then at once the new one.
    PUBL3  Cut short anywhere, a complete pool is the wanted one, or made only of slices as they were
           found. Never of both; and no older generation comes back.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..object import Object
from . import limits, slices
from .holds import PoolId

Fields = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Pool:
    driver: str
    name: str
    devices: Sequence[Fields]
    counters: Sequence[Fields] = ()
    node: str = ""  # the node that has the devices, or
    reached_by: Mapping[str, str] = field(default_factory=dict)  # labels of the nodes that reach them

    def slices(self, generation: int = 1) -> tuple[Fields, ...]:
        contents = list(self._contents())
        pool = {"name": self.name, "generation": generation, "resourceSliceCount": len(contents)}
        prefix = f"{self.name.replace('/', '-')}-{self.driver}"
        return tuple(
            {
                "apiVersion": "resource.k8s.io/v1",
                "kind": "ResourceSlice",
                "metadata": {"name": f"{prefix}-{at:02x}"},
                "spec": {"driver": self.driver, "pool": pool, **self._reach(), **content},
            }
            for at, content in enumerate(contents)
        )

    def _contents(self) -> Iterator[Fields]:
        """SPLIT2."""
        for sets in _cut(self.counters, limits.COUNTER_SETS_MAX):
            yield {"sharedCounters": [*sets]}
        for devices in _cut(self.devices, slices.devices_max(self.devices)):
            yield {"devices": [*devices]}

    def _reach(self) -> Fields:
        if self.node:
            return {"nodeName": self.node}
        wanted = [{"key": key, "operator": "In", "values": [value]} for key, value in self.reached_by.items()]
        return {"nodeSelector": {"nodeSelectorTerms": [{"matchExpressions": wanted}]}}


@dataclass(frozen=True, slots=True)
class Changes:
    """What to write, in this order. What is deleted or replaced is the version that was found."""

    delete: tuple[Object, ...] = ()
    replace: tuple[Fields, ...] = ()
    create: tuple[Fields, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.delete or self.replace or self.create)


def changes(wanted: Sequence[Fields], known: Sequence[Object]) -> Changes:
    """From the slices that one pool has to those that it should have.

    Slices are matched by name. The generation of `wanted` is the least that the pool gets: it never
    goes back, and where nothing else is to be done it stays.
    """
    newest = max(map(_generation, known), default=0)
    least = max((one["spec"]["pool"]["generation"] for one in wanted), default=0)
    names = {one["metadata"]["name"] for one in wanted}
    kept = {one.name: one for one in known if _generation(one) == newest and one.name in names}
    gone = sorted((one for one in known if kept.get(one.name) is not one), key=_generation)

    timed = _with_times(wanted, known)
    wrong = [one for one in timed if not _is_right(one, kept.get(_name(one)))]
    is_small = len(wrong) <= 1 and all(_name(one) in kept for one in wrong)  # PUBL2
    generation = max(newest if is_small else newest + 1, least)
    written = wrong if generation == newest else timed
    anew = [_in_generation(one, generation) for one in written]
    return Changes(
        tuple(gone),
        tuple(_over(one, kept[_name(one)]) for one in anew if _name(one) in kept),
        tuple(one for one in anew if _name(one) not in kept),
    )


def by_pool(slices: Iterable[Fields]) -> dict[PoolId, list[Fields]]:
    found: dict[PoolId, list[Fields]] = {}
    for one in slices:
        found.setdefault(pool_of(one), []).append(one)
    return found


def pool_of(slice: Mapping[str, Any]) -> PoolId:
    return slice["spec"]["driver"], slice["spec"]["pool"]["name"]


def _cut(items: Sequence[Fields], most: int) -> Iterator[Sequence[Fields]]:
    for start in range(0, len(items), most):
        yield items[start : start + most]


def _name(slice: Fields) -> str:
    return str(slice["metadata"]["name"])


def _generation(known: Object) -> int:
    return int(known.fields["spec"]["pool"].get("generation") or 0)


def _is_right(wanted: Fields, known: Object | None) -> bool:
    if known is None:
        return False
    metadata, found = wanted["metadata"], known.fields["metadata"]
    if any(found.get(name) != metadata.get(name) for name in ("labels", "ownerReferences")):
        return False
    return bool(_in_generation(wanted, _generation(known))["spec"] == known.fields["spec"])


def _in_generation(slice: Fields, generation: int) -> Fields:
    spec = slice["spec"]
    return {**slice, "spec": {**spec, "pool": {**spec["pool"], "generation": generation}}}


def _over(slice: Fields, known: Object) -> Fields:
    """In place of what was found, and of nothing that came after it."""
    found = {"uid": known.uid, "resourceVersion": known.resource_version}
    return {**slice, "metadata": {**slice["metadata"], **found}}


def _with_times(wanted: Sequence[Fields], known: Iterable[Object]) -> list[Fields]:
    """A taint that does not say since when has been there since it was first written."""
    if not any(device.get("taints") for one in wanted for device in one["spec"].get("devices", ())):
        return list(wanted)
    since = {
        (device["name"], *_same_taint(taint)): taint["timeAdded"]
        for one in known
        for device in one.fields["spec"].get("devices") or ()
        for taint in device.get("taints") or ()
        if "timeAdded" in taint
    }

    def timed(device: Fields) -> Fields:
        taints = device.get("taints")
        if not taints:
            return device
        keys = ((device["name"], *_same_taint(taint)) for taint in taints)
        found = ({"timeAdded": since[key]} if key in since else {} for key in keys)
        return {**device, "taints": [{**more, **taint} for more, taint in zip(found, taints, strict=True)]}

    return [
        {**one, "spec": {**one["spec"], "devices": [timed(device) for device in one["spec"]["devices"]]}}
        if "devices" in one["spec"]
        else one
        for one in wanted
    ]


def _same_taint(taint: Mapping[str, Any]) -> tuple[str, str, str]:
    return taint["key"], taint.get("value") or "", taint["effect"]
