"""How much of each resource: whole numbers, cpu in thousandths.

What a pod takes is rounded up and what a node has is rounded down, so that rounding
never puts too much on a node.
"""

from collections.abc import Mapping
from functools import lru_cache

from allot.api import Quantity, core, podresources

Amounts = Mapping[str, int]

PODS = "pods"
_NANO = 1_000_000_000
_MILLI_RESOURCES = ("cpu",)


def pod_requests(spec: core.PodSpec) -> Amounts:
    """What a pod takes of a node, itself included."""
    amounts = {name: _up(name, quantity.nano) for name, quantity in podresources.requests(spec).items()}
    amounts[PODS] = 1
    return amounts


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
