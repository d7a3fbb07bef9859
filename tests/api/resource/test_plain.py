"""What is plainly fine is let through at a glance; the careful rules find nothing there either.

The glance may say no to anything, and what it says no to is judged with care. So
every write is judged twice here, the second time with the glance held shut.
"""

from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from allot.api import Gates, resource
from allot.api.resource import claimstatus
from api.occasion import FakeOccasion
from api.resource.objects import allocation, alternative, claim, either, request, result
from api.resource.writes import ALL_GATES, create, write_status

CLAIM = resource.RESOURCE_CLAIM
EVERYTHING = FakeOccasion(gates=Gates(ALL_GATES))

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


def judged_result(one):
    old = create(CLAIM, claim(request(), either("either", alternative()))).hub
    return write_status(CLAIM, old, {"allocation": allocation(one)}, occasion=EVERYTHING).texts


@given(results())
def test_a_plain_result_is_one_that_nothing_is_wrong_with(one):
    with patch.object(claimstatus, "_is_plain", lambda *_: False):
        careful = judged_result(one)
    assert judged_result(one) == careful


@pytest.mark.parametrize("member", MEMBERS)
@pytest.mark.parametrize("name", NAMES)
def test_each_name_of_a_result_is_judged_as_ever(member, name):
    one = result(**{member: name}) if member != "device" else result(name)
    with patch.object(claimstatus, "_is_plain", lambda *_: False):
        careful = judged_result(one)
    assert judged_result(one) == careful


def test_a_plain_result_is_recognised():
    """Otherwise the rest of this file says nothing."""
    assert claimstatus._is_plain(result(), {"r": frozenset()})
    assert not claimstatus._is_plain(result(request="zz"), {"r": frozenset()})


def test_a_name_that_a_spec_should_never_have_had_is_not_plain():
    """Being known is not enough: names are judged where they are written."""
    assert not claimstatus._is_plain(result(request="R_"), {"R_": frozenset()})
