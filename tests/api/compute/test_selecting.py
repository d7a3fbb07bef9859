"""Which compute resources a class selects."""

import pytest

from allot.api import compute, meta


def selects(properties, *alternatives):
    spec = meta.view(
        compute.ResourceClassSpec, {"resourceSelector": [_selector(*one) for one in alternatives]}
    )
    return compute.selects(spec.resource_selector, properties)


def unmet(properties, *alternatives):
    spec = meta.view(
        compute.ResourceClassSpec, {"resourceSelector": [_selector(*one) for one in alternatives]}
    )
    return compute.unmet(spec.resource_selector, properties)


def _selector(*needs):
    return {
        "matchExpressions": [{"key": key, "operator": op, "values": values} for key, op, *values in needs]
    }


def test_without_selectors_everything_matches():
    """14-API-05, 14-SEL-02"""
    assert selects({})
    assert selects({"memory": "1"})


def test_one_alternative_is_enough():
    """14-SEL-03"""
    either = [("type", "In", "k80")], [("type", "In", "p100")]
    assert selects({"type": "p100"}, *either)
    assert selects({"type": "k80"}, *either)
    assert not selects({"type": "v100"}, *either)


def test_every_expression_of_an_alternative_must_hold():
    """14-SEL-04: a range is the same key twice."""
    between = [("memory", "Gt", "10G"), ("memory", "Lt", "20G")]
    assert [size for size in ("10G", "12G", "20G", "24G") if selects({"memory": size}, between)] == ["12G"]


def test_in_compares_texts():
    """14-SEL-05: case counts, units do not."""
    assert selects({"type": "p100"}, [("type", "In", "k80", "p100")])
    assert not selects({"type": "P100"}, [("type", "In", "p100")])
    assert not selects({"memory": "1000M"}, [("memory", "In", "1G")])


def test_not_in_holds_where_the_property_is_missing():
    """14-SEL-06"""
    assert selects({}, [("ecc", "NotIn", "true")])
    assert selects({"ecc": "false"}, [("ecc", "NotIn", "true")])
    assert not selects({"ecc": "true"}, [("ecc", "NotIn", "true")])


def test_exists_looks_at_the_key_alone():
    """14-SEL-07: an empty value exists."""
    assert selects({"ecc": ""}, [("ecc", "Exists")])
    assert not selects({"ecc": ""}, [("ecc", "DoesNotExist")])
    assert selects({}, [("ecc", "DoesNotExist")])


@pytest.mark.parametrize("operator", ["Gt", "Lt"])
def test_greater_and_less_are_strict(operator):
    """14-SEL-08"""
    assert not selects({"memory": "15G"}, [("memory", operator, "15G")])
    assert not selects({"memory": "15000M"}, [("memory", operator, "15G")])


@pytest.mark.parametrize("need", [("k", "In", "v"), ("k", "Exists"), ("k", "Gt", "1"), ("k", "Lt", "1")])
def test_a_missing_property_satisfies_none_of_these(need):
    """14-SEL-09"""
    assert not selects({"other": "1"}, [need])
    assert "no such property" in unmet({"other": "1"}, [need])


def test_what_is_no_number_is_neither_greater_nor_less():
    """14-SEL-10: no error; the explanation says so."""
    assert not selects({"memory": "lots"}, [("memory", "Gt", "1")])
    assert not selects({"memory": "lots"}, [("memory", "Lt", "1")])
    assert unmet({"memory": "lots"}, [("memory", "Gt", "1")]) == "memory Gt 1: 'lots' is not a number"
    assert "another unit" in unmet({"memory": "16GHz"}, [("memory", "Gt", "15GB")])


def test_the_example_of_gpu_memory():
    """14-SEL-12"""
    sizes = ("12G", "15G", "16G", "16GB")
    assert [one for one in sizes if selects({"memory": one}, [("memory", "Gt", "15G")])] == ["16G", "16GB"]


def test_the_example_of_nic_speed():
    """14-SEL-13"""
    speeds = ("10GBPS", "40GBPS", "100GBPS")
    assert [one for one in speeds if selects({"speed": one}, [("speed", "Gt", "40GBPS")])] == ["100GBPS"]
