"""How full a node gets with a pod on it, in each resource that ratings look at.

What a device plugin offers, and cpu and memory, the node counts itself. An extended resource of which it
offers nothing and that a device class serves is counted in devices (KEP-5004): those that the class selects
on the node are what there is, and those of them that are held are used, also if that was only decided.
"""

from collections.abc import Callable, Mapping

from allot.allocation import BadNodeSelector, selected
from allot.api import podresources, resource

from .amounts import Amounts
from .node import NodeInfo
from .snapshot import Snapshot

Count = Callable[[NodeInfo], tuple[int, int]]
"""What there is, and what is used."""


class Filling:
    """For pods with the same requests, and the classes of one moment."""

    def __init__(self, resources: Mapping[str, float], requests: Amounts, snapshot: Snapshot) -> None:
        """`resources` says how much each counts. An extended resource that the pods do not request is nothing
        to them."""
        self._asked = tuple(
            (name, weight, requests.get(name, 0), _counting(name, snapshot))
            for name, weight in resources.items()
            if requests.get(name) or not podresources.is_extended_resource(name)
        )

    def __bool__(self) -> bool:
        """Whether the pods request any of it."""
        return any(amount for _, _, amount, _ in self._asked)

    def shares(self, node: NodeInfo) -> list[tuple[float, float]]:
        """For each resource how much it counts, and how full it gets, from 0 to 1. What the node has
        nothing of is left out."""
        found = []
        allocatable, used = node.allocatable, node.used
        for name, weight, amount, count in self._asked:
            offered = allocatable.get(name, 0)
            if offered > 0:
                share = (used.get(name, 0) + amount) / offered
            elif count is None:
                continue
            else:
                offered, held = count(node)
                if not offered:
                    continue
                share = (held + amount) / offered
            found.append((weight, share if share < 1.0 else 1.0))
        return found


def extended_names(requests: Amounts) -> list[str]:
    """What is requested and may be counted in devices, if a class stands behind it."""
    return [name for name in requests if "/" in name and podresources.is_extended_resource(name)]


def _counting(name: str, snapshot: Snapshot) -> Count | None:
    device_class = snapshot.extended.class_for(name) if podresources.is_extended_resource(name) else None
    if device_class is None:
        return None
    return lambda node: _devices(device_class, node, snapshot)


def _devices(device_class: resource.DeviceClass, node: NodeInfo, snapshot: Snapshot) -> tuple[int, int]:
    try:
        found = selected(device_class, snapshot.inventory.view(node.place))
    except BadNodeSelector:
        return 0, 0
    usage = snapshot.ledger.usage
    held = sum(name in names for pool, names in found.items() for name in usage(pool))
    return sum(map(len, found.values())), held
