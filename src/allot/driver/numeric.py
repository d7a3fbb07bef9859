"""Numeric claims (KEP-4381) as the author of a driver sees them: what it has, what is reserved of it. Pure.

    counter("frobnicators", 8, {"speed": "fast"})         declares eight of them
    reserved.data["count"], reserved.claim_parameters     what a claim has of them, and how to set it up

The driver chooses in which version of a type it publishes: one that every scheduler understands which an
administrator may go back to. Allocations come in the versions of the capacity that they were taken from.
"""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import msgspec

from allot.api import encode, numeric
from allot.numeric import BadData, Model, Registry, TypeId, read_instances
from allot.wire import capacity

from .claims import NotUsable
from .handed import Handed, UnknownResource

Fields = Mapping[str, Any]


class Instance(NamedTuple):
    """One discrete resource. Its id names it among all of the driver's on the node."""

    id: str
    api_version: str  # of the type in `data`
    kind: str
    data: Fields

    @property
    def message(self) -> capacity.Instance:
        return capacity.Instance(self.id, self.api_version, self.kind, encode(self.data))


def counter(
    id: str, count: int, labels: Mapping[str, str] | None = None, version: str = "v1alpha1"
) -> Instance:
    """So many equal things, of which claims may have some each."""
    return _typed(id, "counter.dra.config.k8s.io", version, labels, count=count)


def partition(
    id: str,
    slots: int,
    profiles: Mapping[str, Fields],
    labels: Mapping[str, str] | None = None,
    version: str = "v1",
) -> Instance:
    """A device in slots. A profile says how many it takes side by side, and where it may begin:
    `{"half": {"slots": 4, "starts": [0, 4]}}`."""
    return _typed(id, "partition.dra.config.k8s.io", version, labels, slots=slots, profiles=dict(profiles))


def topology(
    id: str, zones: Mapping[str, int], labels: Mapping[str, str] | None = None, version: str = "v1"
) -> Instance:
    """Things in zones: how many in each."""
    return _typed(id, "topology.dra.config.k8s.io", version, labels, zones=dict(zones))


def _typed(id: str, group: str, version: str, labels: Mapping[str, str] | None, **amounts: Any) -> Instance:
    api_version, kind = f"{group}/{version}", "Capacity"
    data = {
        "apiVersion": api_version,
        "kind": kind,
        "metadata": {"labels": dict(labels or {})},
        **amounts,
    }
    return Instance(id, api_version, kind, data)


class Reserved(NamedTuple):
    """A claim, and what was reserved for it."""

    namespace: str
    name: str
    uid: str
    handle: str  # as it was handed over
    instance: str  # by its id
    data: Fields  # the whole allocation, in its model's type
    resource_class: Fields
    class_parameters: Fields | None
    claim_parameters: Fields

    @property
    def api_version(self) -> str:
        return str(self.data["apiVersion"])

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


def read(claim: Handed) -> Reserved:
    """Raises NotUsable."""
    return reserved(claim.namespace, claim.name, claim.uid, claim.handle)


def reserved(namespace: str, name: str, uid: str, handle: str) -> Reserved:
    """Raises NotUsable."""
    try:
        data = msgspec.json.decode(handle.encode(), type=dict[str, Any])
    except (msgspec.MsgspecError, RecursionError):
        raise NotUsable(f"claim {namespace}/{name}: its handle is not a JSON object") from None
    for part in ("apiVersion", "kind", "instance"):
        if not isinstance(data.get(part), str) or not data[part]:
            raise NotUsable(f"claim {namespace}/{name}: its allocation says no {part}")
    for part in ("resourceClass", "classParameters", "claimParameters"):
        if not isinstance(data.get(part), dict | None):
            raise NotUsable(f"claim {namespace}/{name}: {part} of its allocation is not an object")
    return Reserved(
        namespace,
        name,
        uid,
        handle,
        data["instance"],
        data,
        data.get("resourceClass") or {},
        data.get("classParameters"),
        data.get("claimParameters") or {},
    )


def require(
    wanted: Reserved, offered: Mapping[str, Instance], others: Iterable[Reserved], models: Registry
) -> None:
    """What was reserved is still there, beside what the others have: capacity may have shrunk while the
    scheduler decided. Of a model that is not known here only the instance is looked for. Raises NotUsable."""
    instance = offered.get(wanted.instance)
    if instance is None:
        raise UnknownResource(f"claim {wanted}: instance {wanted.instance} is not there")
    model = models.for_capacity(TypeId(instance.api_version, instance.kind))
    if model is None:
        return
    there = _amounts(instance, models)
    used = [_taken(model, one) for one in others if one.instance == wanted.instance]
    for name, amount in _taken(model, wanted).items():
        has, taken = there.get(name, 0), sum(one.get(name, 0) for one in used)
        if taken + amount > has:
            short = name.rpartition("/")[2]
            raise NotUsable(
                f"claim {wanted}: instance {wanted.instance} has {has} of {short}, "
                f"other claims use {taken}, and {amount} was given to this one"
            )


def _amounts(instance: Instance, models: Registry) -> Mapping[str, int]:
    shown = numeric.NodeResourceInstance(
        id=instance.id, api_version=instance.api_version, kind=instance.kind, data=instance.data
    )
    read, wrong = read_instances([shown], models)
    if wrong:
        raise NotUsable(f"instance {instance.id} cannot be read: {wrong[0].why}")
    return read[0].amounts


def _taken(model: Model, one: Reserved) -> Mapping[str, int]:
    if one.api_version.rpartition("/")[0] != model.types.group:
        raise NotUsable(f"claim {one}: instance {one.instance} is no longer of {one.api_version}")
    try:
        return model.taken(one.data)
    except BadData as wrong:
        raise NotUsable(f"claim {one}: {wrong}") from None
