"""What is plainly fine is let through at a glance; the careful rules find nothing there either.

The glance may say no to anything, and what it says no to is judged with care. So
every write is judged twice here, the second time with the glance held shut.
"""

from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from allot.api import Gates, resource
from allot.api.resource import claims, claimstatus
from api.context import FakeContext
from api.resource.objects import allocation, alternative, claim, either, request, result
from api.resource.writes import ALL_GATES, create, write_status

CLAIM = resource.RESOURCE_CLAIM
EVERYTHING = FakeContext(gates=Gates(ALL_GATES))

NAMES = [
    "a",
    "r",
    "0",
    "gpu-0",
    "d.example.com",
    "p/q",
    "r/s",
    "r/s/t",
    "a" * 63,
    "a" * 64,
    "a." * 31 + "a",
    "a." * 31 + "ab",
    "a." * 126 + "a",
    "a." * 126 + "ab",
    "",
    "A",
    "D.example.com",
    "a_",
    "-a",
    "a-",
    "a..b",
    "a//b",
    "é",
    "\u212a",  # the Kelvin sign: lower() makes an ASCII k of it
    "a\n",
    "a b",
]
names = st.sampled_from(NAMES)


MEMBERS = ("request", "driver", "pool", "device")
OTHERS = {
    "shareID": st.sampled_from(["", "ABC", "01234567-89ab-cdef-0123-456789abcdef"]),
    "tolerations": st.sampled_from([[], [{"operator": "X"}], [{"operator": "Exists"}]]),
    "bindingConditions": st.sampled_from([[], ["a"], ["a", "a"]]),
    "bindingFailureConditions": st.sampled_from([[], ["a"], ["b"] * 5]),
    "skipNodeOperations": st.sampled_from([[], ["*"], ["NodePrepareResources"]]),
    "consumedCapacity": st.sampled_from([{}, {"memory": "1Gi"}]),
    "adminAccess": st.booleans(),
}


@st.composite
def results(draw):
    """A good one, of which some names are another, one may be missing, and more may be there."""
    made = result(request=draw(st.sampled_from(["r", "either", "either/s"])))
    made |= draw(st.dictionaries(st.sampled_from(MEMBERS), names, max_size=2))
    for name in draw(st.sets(st.sampled_from(MEMBERS), max_size=1)):
        del made[name]
    return made | draw(st.fixed_dictionaries({}, optional=OTHERS))


def judged_results(*listed):
    old = create(CLAIM, claim(request(), either("either", alternative()))).hub
    return write_status(CLAIM, old, {"allocation": allocation(*listed)}, context=EVERYTHING).texts


def as_ever(*listed):
    with patch.object(claimstatus, "_are_plain", lambda *_: False):
        careful = judged_results(*listed)
    return judged_results(*listed) == careful


@given(st.lists(results(), min_size=1, max_size=2))
def test_nothing_is_wrong_with_plain_results(listed):
    assert as_ever(*listed)


@pytest.mark.parametrize("count", [1, 32, 33])
def test_results_are_counted_however_plain(count):
    assert as_ever(*(result(f"d{number}") for number in range(count)))


@pytest.mark.parametrize("member", MEMBERS)
@pytest.mark.parametrize("name", NAMES)
def test_each_name_of_a_result_is_judged_as_ever(member, name):
    assert as_ever({**result(), member: name})


@pytest.mark.parametrize(
    "more",
    [
        {"shareID": "ABC"},
        {"tolerations": [{"operator": "X"}]},
        {"bindingConditions": ["a"]},
        {"bindingFailureConditions": ["a"]},
        {"skipNodeOperations": ["NodePrepareResources"]},
    ],
)
def test_what_else_a_result_says_is_judged(more):
    assert judged_results(result(**more)) != []


def test_plain_results_are_recognised():
    """Otherwise the rest of this file says nothing."""
    assert claimstatus._are_plain([result("a"), result("b")], {"r": frozenset()})
    assert not claimstatus._are_plain([result("a"), result(request="zz")], {"r": frozenset()})


def test_a_name_that_a_spec_should_never_have_had_is_not_plain():
    """Being known is not enough: names are judged where they are written."""
    assert not claimstatus._is_plain(result(request="R_"), {"R_": frozenset()})


# Requests

ASKED = {
    "deviceClassName": names,
    "allocationMode": st.sampled_from(["", "All", "ExactCount", "Exact"]),
    "count": st.sampled_from([-1, 0, 1, 32]),
    "adminAccess": st.booleans(),
    "selectors": st.sampled_from([[], [{}], [{"cel": {"expression": "wrong"}}]]),
    "tolerations": st.sampled_from([[], [{"operator": "X"}]]),
    "derivedAttributes": st.sampled_from([[], [{"name": "a"}]]),
    "capacity": st.sampled_from([{}, {"requests": {"memory": "1Gi"}}]),
}
REQUEST = {
    "name": names,
    "exactly": st.fixed_dictionaries({}, optional=ASKED),
    "firstAvailable": st.sampled_from([[], [alternative()]]),
}


@st.composite
def requests(draw):
    """A good one, of which some is another, one member may be missing, and more may be there."""
    made = request(**draw(st.just({}) | st.fixed_dictionaries({}, optional=ASKED)))
    made |= draw(st.just({}) | st.fixed_dictionaries({}, optional=REQUEST))
    for name in draw(st.sets(st.sampled_from(["name", "exactly"]), max_size=1)):
        del made[name]
    return made


def judged_requests(*listed):
    return create(CLAIM, claim(*listed), context=EVERYTHING).texts


def asked_as_ever(*listed):
    with patch.object(claims, "_are_plain", lambda *_: False):
        careful = judged_requests(*listed)
    return judged_requests(*listed) == careful


@given(st.lists(requests(), max_size=3))
def test_nothing_is_wrong_with_plain_requests(listed):
    assert asked_as_ever(*listed)


@pytest.mark.parametrize("count", [32, 33])
def test_requests_are_counted_however_plain(count):
    assert asked_as_ever(*(request(f"r{number}") for number in range(count)))


def test_two_plain_requests_do_not_have_one_name():
    assert judged_requests(request("a"), request("a")) != []


@pytest.mark.parametrize("name", NAMES)
def test_each_name_of_a_request_is_judged_as_ever(name):
    assert asked_as_ever(request(name))
    assert asked_as_ever(request(deviceClassName=name))


@pytest.mark.parametrize(
    "more",
    [
        {"selectors": [{}]},
        {"tolerations": [{"operator": "X"}]},
        {"derivedAttributes": [{"name": "a"}]},
        {"adminAccess": True},
    ],
)
def test_what_else_a_request_says_is_judged(more):
    assert judged_requests(request(**more)) != []


@pytest.mark.parametrize("mode", ["", "All", "ExactCount", "Exact"])
@pytest.mark.parametrize("count", [-1, 0, 1, 32])
def test_how_many_devices_are_wanted_is_judged_as_ever(mode, count):
    assert asked_as_ever(request(allocationMode=mode, count=count))


@pytest.mark.parametrize("version", ["v1", "v1beta2", "v1beta1"])
def test_plain_requests_are_recognised_in_every_version(version):
    """Defaults have been put in by then."""
    body = claim(request())
    if version == "v1beta1":
        body = claim({"name": "r", "deviceClassName": "gpu"})
    made = create(CLAIM, body, version).hub["spec"]["devices"]["requests"]
    assert claims._are_plain(made, {"r": frozenset()})
