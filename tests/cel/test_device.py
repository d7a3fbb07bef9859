"""How a published device looks from inside a selector."""

import pytest

from allot.api import Quantity, Semver
from allot.cel import CelDevice, EvaluationError, compile_selector


def test_names_without_a_domain_belong_to_the_driver():
    device = CelDevice.of("d", {"a": {"int": 1}, "x.y/b": {"bool": True}}, {"m": Quantity.parse("1")})
    assert device.attributes == {"d": {"a": 1}, "x.y": {"b": True}}
    assert device.capacity == {"d": {"m": Quantity.parse("1")}}


def test_only_the_first_slash_separates_the_domain():
    assert CelDevice.of("d", {"x/y/z": {"int": 1}}).attributes == {"x": {"y/z": 1}}


def test_values_have_their_types():
    device = CelDevice.of(
        "d",
        {"v": {"version": "1.2.3"}, "s": {"string": "x"}, "vs": {"versions": ["1.0.0"]}, "is": {"ints": []}},
    )
    assert device.attributes["d"] == {
        "v": Semver.parse("1.2.3"),
        "s": "x",
        "vs": (Semver.parse("1.0.0"),),
        "is": (),
    }


@pytest.mark.parametrize(
    "written",
    [{}, {"version": "v1"}, {"int": True}, {"int": 2**63}, {"bool": 1}, {"string": 5}, {"ints": "12"}],
)
def test_a_broken_attribute_fails_every_selector(written):
    """As upstream: the device cannot be judged, not even by an expression that never looks there."""
    device = CelDevice.of("d", {"a": written})
    with pytest.raises(EvaluationError, match="attribute a"):
        compile_selector("true").matches(device)


def test_an_unknown_domain_is_empty_and_an_unknown_name_is_an_error():
    device = CelDevice.of("d", {"a": {"int": 1}})
    assert compile_selector('device.attributes["x"].size() == 0').matches(device)
    assert not compile_selector('"x" in device.attributes').matches(device)
    with pytest.raises(EvaluationError, match="no such key: b"):
        compile_selector('device.attributes["d"].b == 1').matches(device)
    with pytest.raises(EvaluationError, match="no such key: a"):
        compile_selector('device.attributes["x"].a == 1').matches(device)


def test_looking_up_an_unknown_domain_does_not_create_it():
    device = CelDevice.of("d")
    compile_selector('device.attributes["x"].size() == 0').matches(device)
    assert not compile_selector('"x" in device.attributes').matches(device)
