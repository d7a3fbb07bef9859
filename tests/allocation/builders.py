"""Small worlds for tests: every argument has a default, so a test says only what it is about."""

from collections.abc import Iterable, Mapping
from typing import Any

from allot.allocation import (
    FIRST_FIT,
    Answer,
    Demand,
    Features,
    Inventory,
    Ledger,
    Node,
    Plan,
    Policy,
    allocate,
    read_demand,
)
from allot.api import meta, resource

DRIVER = "gpu.example.com"

EVERYTHING = Features(
    admin_access=True,
    prioritized_list=True,
    partitionable_devices=True,
    device_taints=True,
    device_binding_and_status=True,
    consumable_capacity=True,
    list_type_attributes=True,
)

HERE = Node("here", {"zone": "a"})


def device(name: str, *, gib: int | None = None, **more: Any) -> dict[str, Any]:
    """`attributes={"model": "A"}` may be written plainly; strings and ints get their type here."""
    attributes = {key: _typed(value) for key, value in more.pop("attributes", {}).items()}
    fields: dict[str, Any] = {"name": name, "attributes": attributes, **more}
    if gib is not None:
        fields["capacity"] = {"memory": {"value": f"{gib}Gi"}}
    return fields


def partition(name: str, card: str, gib: int, **more: Any) -> dict[str, Any]:
    """A part of a card that draws its memory from the card's counter set."""
    draws = [{"counterSet": card, "counters": {"memory": {"value": f"{gib}Gi"}}}]
    return device(name, gib=gib, consumesCounters=draws, **more)


def slice_of(*devices: Mapping[str, Any], name: str = "slice", **spec: Any) -> resource.ResourceSlice:
    """On the node `here`, alone in its pool, unless told otherwise."""
    pool = {"name": spec.pop("pool", "pool"), "generation": spec.pop("generation", 1)}
    pool["resourceSliceCount"] = spec.pop("slices", 1)
    placed = any(key in spec for key in ("nodeName", "nodeSelector", "allNodes", "perDeviceNodeSelection"))
    where = {} if placed else {"nodeName": HERE.name}
    content = {"devices": list(devices)} if devices else {}
    fields = {"driver": spec.pop("driver", DRIVER), "pool": pool, **where, **content, **spec}
    return meta.view(resource.ResourceSlice, {"metadata": {"name": name}, "spec": fields})


def cards(*gib: int, pool: str = "pool", **where) -> resource.ResourceSlice:
    """The counter sets card-0, card-1, ... with so much memory each."""
    sets = [
        {"name": f"card-{at}", "counters": {"memory": {"value": f"{amount}Gi"}}}
        for at, amount in enumerate(gib)
    ]
    return slice_of(name="counters", slices=2, pool=pool, sharedCounters=sets, **where)


def stocked(*slices: resource.ResourceSlice, features: Features = EVERYTHING) -> Inventory:
    inventory = Inventory(features)
    for published in slices:
        inventory.apply(published)
    return inventory


def wants(name: str = "request", count: int = 1, *selectors: str, **more: Any) -> dict[str, Any]:
    return {"name": name, "exactly": {**_form(count, selectors), **more}}


def prefers(name: str, *forms: Mapping[str, Any]) -> dict[str, Any]:
    """A request with alternatives, best first; each is what `wants` returns."""
    return {"name": name, "firstAvailable": [{"name": one["name"], **one["exactly"]} for one in forms]}


def claim(*requests: Mapping[str, Any], name: str = "claim", **devices: Any) -> resource.ResourceClaim:
    spec = {"devices": {"requests": list(requests), **devices}}
    return meta.view(resource.ResourceClaim, {"metadata": {"name": name}, "spec": spec})


def device_class(name: str = "any", **spec: Any) -> resource.DeviceClass:
    return meta.view(resource.DeviceClass, {"metadata": {"name": name}, "spec": spec})


def demanded(*claims: resource.ResourceClaim, features: Features = EVERYTHING) -> Demand:
    demand = read_demand(claims, {"any": device_class()}, features)
    assert isinstance(demand, Demand), demand
    return demand


def given(
    inventory: Inventory,
    *claims: resource.ResourceClaim,
    ledger: Ledger | None = None,
    policy: Policy = FIRST_FIT,
    node: Node = HERE,
) -> Answer:
    """What the node answers."""
    return allocate(
        node, inventory, ledger or Ledger(), demanded(*claims, features=inventory.features), policy
    )


def chosen(answer: Answer) -> list[str]:
    """The devices of a plan, in order."""
    assert isinstance(answer, Plan), answer
    return [pick.device.id.name for pick in answer.picks]


def attribute(name: str, value: str) -> str:
    return f'device.attributes["{DRIVER}"].{name} == "{value}"'


def larger_than(gib: int) -> str:
    return f'device.capacity["{DRIVER}"].memory.compareTo(quantity("{gib}Gi")) >= 0'


def _form(count: int, selectors: Iterable[str]) -> dict[str, Any]:
    fields: dict[str, Any] = {"deviceClassName": "any", "allocationMode": "ExactCount", "count": count}
    if not count:
        fields = {"deviceClassName": "any", "allocationMode": "All"}
    if selectors:
        fields["selectors"] = [{"cel": {"expression": one}} for one in selectors]
    return fields


def _typed(value: Any) -> Any:
    if isinstance(value, list):
        return {"ints" if isinstance(value[0], int) else "strings": value}
    return {"int": value} if isinstance(value, int) else {"string": value}
