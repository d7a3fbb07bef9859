"""Devices of the catalogue, which has them as the API shows them, as the kit's values. Pure."""

from collections.abc import Mapping
from typing import Any

from allot.api import resource
from allot.driver import Capacity, Device, Pool, Version

Fields = Mapping[str, Any]


def pool(given: resource.pools.Pool) -> Pool:
    counters = {one["name"]: _amounts(one["counters"]) for one in given.counters}
    return Pool(given.name, tuple(map(_device, given.devices)), counters)


def _device(fields: Fields) -> Device:
    return Device(
        fields["name"],
        {name: _attribute(value) for name, value in fields.get("attributes", {}).items()},
        {name: _capacity(value) for name, value in fields.get("capacity", {}).items()},
        {one["counterSet"]: _amounts(one["counters"]) for one in fields.get("consumesCounters", ())},
        shared=fields.get("allowMultipleAllocations", False),
    )


def _attribute(value: Fields) -> Any:
    ((kind, inner),) = value.items()
    return Version(inner) if kind == "version" else inner


def _capacity(value: Fields) -> str | Capacity:
    policy = value.get("requestPolicy")
    if policy is None:
        return str(value["value"])
    bounds = policy.get("validRange", {})
    return Capacity(
        value["value"],
        policy.get("default", ""),
        tuple(policy.get("validValues", ())),
        bounds.get("min", ""),
        bounds.get("max", ""),
        bounds.get("step", ""),
    )


def _amounts(counters: Fields) -> dict[str, str]:
    return {name: one["value"] for name, one in counters.items()}
