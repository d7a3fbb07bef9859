"""How much of a device a request consumes, and whether the device offers that much.

A device of its own kind is taken whole; a device that several claims may share
gives each of them a part of every capacity it has. How large a part follows from
the request and from the policy published with the capacity:

    requested, no policy          what was requested
    requested, with a policy      rounded up to the next value that the policy allows
    not requested                 the policy's default, or all there is

Everything is whole numbers of nano units. Two things are not a device that does
not fit but a problem that is refused (`CapacityError`): an amount below zero, and
a request that upstream's 64-bit step arithmetic cannot express.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from allot.api import Quantity, resource

INT64_MAX = 2**63 - 1
MILLI = 10**6  # nano units in a thousandth


class CapacityError(Exception):
    """Fatal for the problem, not only for the device."""


@dataclass(frozen=True, slots=True)
class Range:
    min: Quantity
    max: Quantity | None
    step: Quantity | None


@dataclass(frozen=True, slots=True)
class Policy:
    default: Quantity | None
    values: tuple[Quantity, ...]
    range: Range | None


@dataclass(frozen=True, slots=True)
class Capacity:
    value: Quantity
    policy: Policy | None

    @classmethod
    def read(cls, published: resource.DeviceCapacity) -> "Capacity":
        """Raises ValueError on an amount that is none."""
        return cls(Quantity.parse(published.value), _policy(published.request_policy))


Consumed = Mapping[str, Quantity]


def consumed(
    requested: Mapping[str, Quantity], offered: Mapping[str, Capacity], *, fractional: bool
) -> Consumed | None:
    """What one allocation takes of each capacity, or None if the device cannot serve the request.

    Looks at the device as published; what others already consume is not its concern.
    Every capacity is resolved before one may reject, so that an error never depends
    on the order of names. Raises CapacityError.
    """
    if any(name not in offered for name in requested):
        return None
    parts: dict[str, Quantity] = {}
    for name, capacity in offered.items():
        part = _part(name, requested.get(name), capacity, fractional)
        if part.nano < 0:
            raise CapacityError(f'capacity "{name}": capacity value is negative')
        parts[name] = part
    for name, part in parts.items():
        if _violates(part, offered[name].policy, fractional) or part.nano > offered[name].value.nano:
            return None
    return parts


def _policy(published: resource.CapacityRequestPolicy | None) -> Policy | None:
    if published is None:
        return None
    span = published.valid_range
    return Policy(
        default=_amount(published.default),
        values=tuple(Quantity.parse(value) for value in published.valid_values),
        range=None
        if span is None or span.min is None
        else Range(Quantity.parse(span.min), _amount(span.max), _amount(span.step)),
    )


def _amount(text: str | None) -> Quantity | None:
    return None if text is None else Quantity.parse(text)


def _part(name: str, requested: Quantity | None, capacity: Capacity, fractional: bool) -> Quantity:
    policy = capacity.policy
    if requested is None:
        return policy.default if policy is not None and policy.default is not None else capacity.value
    if policy is None:
        return requested
    if policy.range is not None:
        try:
            return _rounded_up(requested, policy.range, fractional)
        except CapacityError as error:
            raise CapacityError(f'capacity "{name}": {error}') from None
    return next((value for value in policy.values if requested <= value), requested)


def _rounded_up(requested: Quantity, span: Range, fractional: bool) -> Quantity:
    """The next `min + n * step`, in whole units or, where the gate allows, in thousandths."""
    if requested < span.min:
        return span.min
    if span.step is None:
        return requested
    if fractional and _in_thousandths(span):
        if not _is_milli(requested):
            raise CapacityError(f"{_UNREPRESENTABLE}: request {requested} is not a representable milli value")
        value = _next(requested.milli(), span.min.milli(), span.step.milli())
        if value > INT64_MAX:
            raise CapacityError(f"{_UNREPRESENTABLE}: {_rounding(requested)} the milli-value range")
        return Quantity(value * MILLI, span.step.format)
    if requested.nano > INT64_MAX * 1000 * MILLI:
        raise CapacityError(f"{_UNREPRESENTABLE}: request {requested} exceeds MaxInt64")
    value = _next(requested.as_int(), span.min.as_int(), span.step.as_int())
    if value > INT64_MAX:
        raise CapacityError(f"{_UNREPRESENTABLE}: {_rounding(requested)} MaxInt64")
    return Quantity.of(value, span.step.format)


_UNREPRESENTABLE = "capacity request cannot be represented in the device's range arithmetic"


def _rounding(requested: Quantity) -> str:
    return f"rounding request {requested} up to the next step passes"


def _next(requested: int, smallest: int, step: int) -> int:
    if step <= 0:  # validation keeps such steps out; without one there is nothing to round to
        return requested
    return smallest + step * max(0, -(-(requested - smallest) // step))


def _violates(part: Quantity, policy: Policy | None, fractional: bool) -> bool:
    if policy is None or (policy.default is not None and part == policy.default):
        return False
    if policy.range is not None:
        return _outside(part, policy.range, fractional)
    return bool(policy.values) and part not in policy.values


def _outside(part: Quantity, span: Range, fractional: bool) -> bool:
    if span.max is not None and part > span.max:
        return True
    if span.step is None:
        return False
    if fractional and _in_thousandths(span):
        if not _is_milli(part):
            return True
        beyond, step = part.milli() - span.min.milli(), span.step.milli()
    else:
        beyond, step = part.as_int() - span.min.as_int(), span.step.as_int()
    return step > 0 and beyond % step != 0


def _in_thousandths(span: Range) -> bool:
    bounds = (span.min, span.max, span.step)
    return all(bound is None or _is_milli(bound) for bound in bounds) and (
        span.step is not None and span.step.nano >= MILLI
    )


def _is_milli(amount: Quantity) -> bool:
    return amount.nano % MILLI == 0 and abs(amount.nano) <= INT64_MAX * MILLI
