"""What taking a device costs everybody else.

Partitions of one piece of hardware draw from the same counters, so taking one can
make others impossible. A small partition in the middle of an untouched GPU costs
all the large ones; the same partition beside others costs next to nothing.
"""

from .kind import Device
from .state import State


def loss(state: State, at: int) -> float:
    device = state.question.devices[at]
    if device.kind.consumption and state.question.demand.features.partitionable_devices:
        if device.kind.shareable and (at in state.shares or at in state.question.shared):
            return _part_consumed(state, at)
        return _partitions_lost(state, at)
    if device.kind.shareable and state.question.demand.features.consumable_capacity:
        used = at in state.shares or at in state.question.shared
        return _part_consumed(state, at) if used else 1.0
    return 1.0


def _part_consumed(state: State, at: int) -> float:
    """The fuller a shared device is already, the better it is to fill it."""
    used = state.consumed_of(at)
    capacity = state.question.devices[at].kind.capacity
    full = [used.get(name, 0) / one.value.nano for name, one in capacity.items() if one.value.nano > 0]
    return 1.0 - max(full, default=0.0)


def _partitions_lost(state: State, at: int) -> float:
    question = state.question
    pool = question.view.pool_of[at]
    left = state.left(pool)
    drawn = dict(question.devices[at].kind.draws)
    lost = 0.0
    for other in question.view.pools[pool].devices:
        draws = other.kind.draws
        if not any(key in drawn for key, amount in draws if amount):
            continue
        fits_now = all(left[key] >= amount for key, amount in draws)
        fits_then = other is not question.devices[at] and all(
            left[key] - drawn.get(key, 0) >= amount for key, amount in draws
        )
        if fits_now and not fits_then:
            lost += _part_of_whole(state, pool, other)
    return lost


def _part_of_whole(state: State, pool: int, device: Device) -> float:
    """The largest part of any counter that the device draws."""
    totals = state.question.view.pools[pool].totals
    return max(
        (amount / totals[key] for key, amount in device.kind.draws if totals[key] > 0),
        default=1.0,
    )
