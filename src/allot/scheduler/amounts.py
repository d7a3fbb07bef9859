"""How much of each resource: whole numbers, cpu in thousandths.

What a pod takes is rounded up and what a node has is rounded down, so that rounding
never puts too much on a node.
"""

from collections.abc import Mapping
from functools import lru_cache

from allot.api import Quantity, compute, core, podresources

from .compute import HELD

Amounts = Mapping[str, int]

PODS = "pods"
_NANO = 1_000_000_000
_MILLI_RESOURCES = ("cpu",)


def pod_requests(spec: core.PodSpec) -> Amounts:
    """What a pod takes of a node, itself included."""
    amounts = {name: _up(name, quantity.nano) for name, quantity in podresources.requests(spec).items()}
    amounts[PODS] = 1
    return amounts


def with_given(requests: Amounts, pod: core.Pod, given: Mapping[str, compute.records.Given]) -> Amounts:
    """With what the containers were given of compute resources; under the names that they asked for, too."""
    if not given:
        return requests
    return plus(
        requests,
        compute.records.peak(
            [(_given(given.get(one.name, {})), one.is_sidecar) for one in pod.spec.init_containers],
            [_given(given.get(one.name, {})) for one in pod.spec.containers],
        ),
    )


def _given(record: compute.records.Given) -> Amounts:
    total: dict[str, int] = {}
    for entries in record.values():
        for one in entries:
            if one.amount:  # of something native, in a group
                name, count = one.resource_name, native_amount(one.resource_name, one.amount)
            else:
                name, count = HELD + one.compute_resource_name, one.count
            total[name] = total.get(name, 0) + count
    return total


def native_amount(name: str, written: str) -> int:
    """What so much of a resource takes of a node."""
    return _up(name, Quantity.parse(written).nano)


def measured(amounts: Mapping[str, str]) -> Amounts:
    """What a node has."""
    return {name: _parsed(name, text) for name, text in amounts.items()}


def plus(left: Amounts, right: Amounts) -> Amounts:
    total = dict(left)
    for name, amount in right.items():
        total[name] = total.get(name, 0) + amount
    return total


def less(left: Amounts, right: Amounts) -> Amounts:
    rest = dict(left)
    for name, amount in right.items():
        rest[name] = rest.get(name, 0) - amount
    return rest


@lru_cache(maxsize=4096)
def _parsed(name: str, text: str) -> int:
    return Quantity.parse(text).nano // _unit(name)


def _up(name: str, nano: int) -> int:
    return -(-nano // _unit(name))


def _unit(name: str) -> int:
    return _NANO // 1000 if name in _MILLI_RESOURCES else _NANO
