"""How much of a device a request consumes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from allot.allocation.capacity import Capacity, CapacityError, consumed
from allot.api import Quantity, meta, resource


def offered(value: str, **policy) -> dict[str, Capacity]:
    fields = {"value": value, **({"requestPolicy": policy} if policy else {})}
    return {"memory": Capacity.read(meta.view(resource.DeviceCapacity, fields))}


def taken(request: str | None, capacity: dict[str, Capacity], *, fractional: bool = False) -> str | None:
    requested = {} if request is None else {"memory": Quantity.parse(request)}
    parts = consumed(requested, capacity, fractional=fractional)
    return None if parts is None else str(parts["memory"])


RANGE = {"default": "2", "validRange": {"min": "2", "max": "8", "step": "2"}}
VALUES = {"default": "1", "validValues": ["1", "3", "6"]}


@pytest.mark.parametrize(
    ("request_", "policy", "expected"),
    [
        (None, {}, "10"),  # nothing asked, no policy: all there is
        (None, RANGE, "2"),  # nothing asked: the default
        ("4", {}, "4"),
        ("11", {}, None),  # more than there is
        ("1", RANGE, "2"),  # never below the minimum
        ("3", RANGE, "4"),  # up to the next step
        ("9", RANGE, None),  # rounded up past the maximum
        ("1", VALUES, "1"),
        ("2", VALUES, "3"),
        ("7", VALUES, None),  # nothing that large is on offer
        ("5", {"default": "2", "validRange": {"min": "2"}}, "5"),  # without a step as it is
        ("1", {"default": "1", "validRange": {"min": "2"}}, "2"),  # nor where the default is
        (None, {"default": "1", "validRange": {"min": "2"}}, "1"),  # but who asks for nothing gets it
    ],
)
def test_what_is_consumed(request_, policy, expected):
    assert taken(request_, offered("10", **policy)) == expected


def test_a_capacity_that_the_device_does_not_have_rules_it_out():
    assert consumed({"bandwidth": Quantity.parse("1")}, offered("10"), fractional=False) is None


def test_names_are_taken_literally():
    """Unlike attributes: `driver/memory` is not `memory`."""
    assert consumed({"gpu.example.com/memory": Quantity.parse("1")}, offered("10"), fractional=False) is None


def test_thousandths_count_only_where_the_gate_says_so():
    capacity = offered("1", default="200m", validRange={"min": "200m", "max": "1", "step": "100m"})

    assert taken("250m", capacity, fractional=True) == "300m"
    assert taken("250m", capacity, fractional=False) == "1"  # whole units: everything rounds up to one


@pytest.mark.parametrize(
    ("request_", "fractional", "words"),
    [
        ("18446744073709551616", False, "exceeds MaxInt64"),
        ("9223372036854775807", False, "up to the next step passes MaxInt64"),
        ("1n", True, "not a representable milli value"),
    ],
)
def test_what_64_bits_cannot_say_is_an_error_and_not_another_device(request_, fractional, words):
    step = {"default": "0", "validRange": {"min": "0", "step": "2"}}
    with pytest.raises(CapacityError, match=words):
        taken(request_, offered("4", **step), fractional=fractional)


def test_less_than_nothing_is_an_error():
    with pytest.raises(CapacityError, match="negative"):
        taken("-1", offered("4"))
    with pytest.raises(CapacityError, match="negative"):
        taken(None, offered("-4"))


@given(st.integers(0, 60), st.integers(0, 10), st.integers(1, 7), st.integers(0, 50))
def test_a_rounded_request_is_the_smallest_allowed_that_is_enough(request_, low, step, high):
    """Against trying all of them."""
    policy = {"default": str(low), "validRange": {"min": str(low), "max": str(low + high), "step": str(step)}}
    allowed = [low + n * step for n in range(80) if low + n * step <= min(low + high, 40)]
    enough = [amount for amount in allowed if amount >= request_]

    expected = str(min(enough)) if enough else None
    assert taken(str(request_), offered("40", **policy)) == expected
