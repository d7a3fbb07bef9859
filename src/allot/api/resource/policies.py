"""How a shareable device's capacity may be requested. KEP-5075.

Amounts are exact. Steps are counted in whole units, each bound rounded up, as
upstream does while its gate for fractions is off; with the gate on a fraction
anywhere makes it count in thousandths, and then every bound must be one.
"""

from collections.abc import Mapping, Sequence
from itertools import pairwise

from .. import field
from ..field import Path
from ..kind import Fields
from ..quantity import INT64_MAX, Quantity
from . import limits
from .found import Found, each_unique


def check(found: Found, policy: Fields, value: str, path: Path, fractional: bool) -> None:
    capacity = Quantity.parse(value)
    values, bounds = policy.get("validValues"), policy.get("validRange")
    default = Quantity.parse(policy["default"]) if policy.get("default") is not None else None
    if values and bounds is not None:
        text = 'at most one policy can be specified, not both "validValues" and "validRange"'
        found.add(field.forbidden(path, text))
    elif values and default is None:
        found.add(field.required(path / "default", "required when validValues is defined"))
    elif bounds is not None and default is None:
        found.add(field.required(path / "default", "required when validRange is defined"))
    elif values and default is not None:
        options = [Quantity.parse(one) for one in values]
        _values(found, options, default, capacity, path / "validValues", fractional)
    elif bounds is not None and default is not None:
        parsed = {name: Quantity.parse(bounds[name]) for name in ("min", "max", "step") if name in bounds}
        _range(found, parsed, default, capacity, path / "validRange", fractional)


def _values(
    found: Found,
    values: Sequence[Quantity],
    default: Quantity,
    capacity: Quantity,
    path: Path,
    fractional: bool,
) -> None:
    for at, (before, value) in enumerate(pairwise(values), start=1):
        if before > value:
            found.add(field.invalid(path[at], str(value), "values must be sorted in ascending order"))

    def fits(value: Quantity, here: Path) -> None:
        if value > capacity:
            found.add(field.invalid(here, str(value), f"option is larger than capacity value: {capacity}"))

    each_unique(
        found, values, limits.VALID_VALUES_MAX, path, fits,
        lambda value: str(value.nano if fractional else value.as_int()), declared=False,
    )  # fmt: skip
    if len(values) > limits.VALID_VALUES_MAX or default not in values:
        text = "default value is not valid according to the requestPolicy"
        found.add(field.invalid(path, str(default), text))


def _range(
    found: Found,
    bounds: Mapping[str, Quantity],
    default: Quantity,
    capacity: Quantity,
    path: Path,
    fractional: bool,
) -> None:
    low, high, step = bounds.get("min"), bounds.get("max"), bounds.get("step")
    if low is None:
        found.add(field.required(path / "min", "required when validRange is defined"))
        return
    _bounds(found, low, high, default, capacity, path)
    named = {"default": default, **bounds}
    thousandths = fractional and not all(amount.is_integer for amount in named.values())
    if thousandths and not _all_thousandths(found, named, path):
        return
    if step is None:
        return
    if step.sign <= 0:
        found.add(field.invalid(path / "step", str(step), "must be greater than zero"))
        return
    if low + step > capacity:
        text = f"one step {low + step} is larger than capacity value: {capacity}"
        found.add(field.invalid(path / "step", str(step), text))
    if thousandths or _all_countable(found, named, path):
        _steps(found, [default] if high is None else [default, high], low, step, path / "step", thousandths)


def _bounds(
    found: Found, low: Quantity, high: Quantity | None, default: Quantity, capacity: Quantity, path: Path
) -> None:
    if low > capacity:
        found.add(field.invalid(path / "min", str(low), f"min is larger than capacity value: {capacity}"))
    if default < low:
        found.add(field.invalid(path / "default", str(default), f"default is less than min: {low}"))
    if high is None:
        return
    if low > high:
        found.add(field.invalid(path / "max", str(low), f"min is larger than max: {high}"))
    if high > capacity:
        found.add(field.invalid(path / "max", str(high), f"max is larger than capacity value: {capacity}"))
    if default > high:
        found.add(field.invalid(path / "default", str(default), f"default is more than max: {high}"))


def _all_thousandths(found: Found, named: Mapping[str, Quantity], path: Path) -> bool:
    fine = True
    for name, amount in named.items():
        if amount.nano % 1_000_000 or abs(amount.milli()) > INT64_MAX:
            found.add(field.invalid(path / name, str(amount), "value cannot be represented as a milli value"))
            fine = False
    return fine


def _all_countable(found: Found, named: Mapping[str, Quantity], path: Path) -> bool:
    fine = True
    for name, amount in named.items():
        if amount.sign < 0:
            text = "must be greater than or equal to 0"
        elif amount > Quantity.of(INT64_MAX):
            text = f"must not be larger than {INT64_MAX}"
        else:
            continue
        found.add(field.invalid(path / name, str(amount), text))
        fine = False
    return fine


def _steps(
    found: Found, values: Sequence[Quantity], low: Quantity, step: Quantity, path: Path, thousandths: bool
) -> None:
    for value in values:
        whole = [one.milli() if thousandths else one.as_int() for one in (value, low, step)]
        if (whole[0] - whole[1]) % whole[2]:
            text = f"value is not a multiple of a given step ({step}) from ({low})"
            found.add(field.invalid(path, str(value), text))
