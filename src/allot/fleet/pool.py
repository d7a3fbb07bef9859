"""A pool, cut into slices.

What it promises
    F1  A pool's slices share one generation and name their number, so that a reader
        knows when it has seen them all.
    F2  Counters and devices lie in different slices, and no slice is over its limits: 8
        counter sets, 128 devices, 64 once a device draws from counters.
    F3  Slices are named so that the order of names is the order of devices.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from allot.api import resource

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
        """F2."""
        limits = resource.limits
        for sets in _cut(self.counters, limits.COUNTER_SETS_MAX):
            yield {"sharedCounters": [*sets]}
        draws = any("consumesCounters" in device for device in self.devices)
        most = limits.SLICE_ADVANCED_DEVICES_MAX if draws else limits.SLICE_DEVICES_MAX
        for devices in _cut(self.devices, most):
            yield {"devices": [*devices]}

    def _reach(self) -> Fields:
        if self.node:
            return {"nodeName": self.node}
        wanted = [{"key": key, "operator": "In", "values": [value]} for key, value in self.reached_by.items()]
        return {"nodeSelector": {"nodeSelectorTerms": [{"matchExpressions": wanted}]}}


def _cut(items: Sequence[Fields], most: int) -> Iterator[Sequence[Fields]]:
    for start in range(0, len(items), most):
        yield items[start : start + most]
