"""How pools stand: their devices, and which of them are taken or cannot be given. Pure."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from allot.api import resource

_KEEPS_AWAY = ("NoSchedule", "NoExecute")

DeviceName = tuple[str, str, str]
"""Driver, pool, device."""


@dataclass(frozen=True, slots=True)
class Pool:
    driver: str
    name: str
    generation: int
    slices: int
    total: int
    allocated: int
    unavailable: int  # tainted, and nobody has them
    node: str = ""
    problem: str = ""

    def written(self) -> dict[str, Any]:
        """As the status of a request has it."""
        counts = {
            "resourceSliceCount": self.slices,
            "totalDevices": self.total,
            "allocatedDevices": self.allocated,
            "availableDevices": self.total - self.allocated - self.unavailable,
            "unavailableDevices": self.unavailable,
        }
        where = {"nodeName": self.node} if self.node else {}
        wrong = {"validationError": self.problem[: resource.limits.POOL_STATUS_ERROR_MAX]}
        named = {"driver": self.driver, "poolName": self.name, "generation": self.generation}
        return {**named, **counts, **where, **(wrong if self.problem else {})}


def survey(
    slices: Iterable[resource.ResourceSlice],
    taken: Mapping[DeviceName, object],
    rules: Sequence[resource.DeviceTaintRule],
) -> list[Pool]:
    """The pools of these slices, by driver and name. Of each pool only the newest generation counts."""
    pools: dict[tuple[str, str], list[resource.ResourceSliceSpec]] = {}
    for one in slices:
        members = pools.setdefault((one.spec.driver, one.spec.pool.name), [])
        newest = members[0].pool.generation if members else one.spec.pool.generation
        if one.spec.pool.generation > newest:
            members.clear()
        if one.spec.pool.generation >= newest:
            members.append(one.spec)
    return [_pool(driver, name, pools[driver, name], taken, rules) for driver, name in sorted(pools)]


def taken_devices(claim: resource.ResourceClaim) -> list[DeviceName]:
    """What an allocation takes away from others. Administrators take nothing."""
    if claim.status.allocation is None:
        return []
    results = claim.status.allocation.devices.results
    return [(one.driver, one.pool, one.device) for one in results if not one.admin_access]


def _pool(
    driver: str,
    name: str,
    slices: Sequence[resource.ResourceSliceSpec],
    taken: Mapping[DeviceName, object],
    rules: Sequence[resource.DeviceTaintRule],
) -> Pool:
    devices = {device.name: device for one in slices for device in one.devices}
    held = [device for device in devices if (driver, name, device) in taken]
    kept_away = [
        device.name
        for device in devices.values()
        if (driver, name, device.name) not in taken and _is_kept_away(device, (driver, name), rules)
    ]
    nodes = {one.node_name or "" for one in slices}
    return Pool(
        driver,
        name,
        slices[0].pool.generation,
        len(slices),
        len(devices),
        len(held),
        len(kept_away),
        nodes.pop() if len(nodes) == 1 else "",
        _problem(slices),
    )


def _problem(slices: Sequence[resource.ResourceSliceSpec]) -> str:
    """What keeps a pool from being used; "" for one that is whole."""
    announced = {one.pool.resource_slice_count for one in slices}
    if len(announced) > 1:
        counts = ", ".join(map(str, sorted(announced)))
        return f"its slices disagree on how many there are: {counts}"
    wanted = announced.pop()
    if len(slices) != wanted:
        return f"it is incomplete: {len(slices)} of {wanted} slices are published"
    names = Counter(device.name for one in slices for device in one.devices)
    twice = [name for name, count in names.items() if count > 1]
    return f"the device {twice[0]} is published twice" if twice else ""


def _is_kept_away(
    device: resource.Device, pool: tuple[str, str], rules: Sequence[resource.DeviceTaintRule]
) -> bool:
    own = any(taint.effect in _KEEPS_AWAY for taint in device.taints)
    return own or any(
        rule.spec.taint.effect in _KEEPS_AWAY and _selects(rule.spec.device_selector, (*pool, device.name))
        for rule in rules
    )


def _selects(selector: resource.DeviceTaintSelector | None, device: DeviceName) -> bool:
    """No selector selects nothing; what a selector leaves out, it does not ask for."""
    if selector is None:
        return False
    wanted = (selector.driver, selector.pool, selector.device)
    return all(one is None or one == has for one, has in zip(wanted, device, strict=True))
