"""Names of classes as resources, and of compute resources."""

import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from allot.api import compute
from allot.api.compute import naming

PROPERTIES = st.dictionaries(st.text(min_size=1, max_size=4), st.text(max_size=4), max_size=4)


def test_the_hash_is_the_documented_one():
    """14-NODE-03"""
    said = hashlib.sha256(b'{"model":"v100"}').hexdigest()[:16]
    assert compute.compute_resource_name("a.com/gpu", {"model": "v100"}) == f"a.com/gpu-{said}"
    assert compute.property_hash({}) == hashlib.sha256(b"{}").hexdigest()[:16]
    assert compute.property_hash({"é": "ü"}) == hashlib.sha256('{"é":"ü"}'.encode()).hexdigest()[:16]


@given(PROPERTIES, st.randoms())
def test_the_order_of_keys_does_not_matter(properties, random):
    """14-NODE-02"""
    shuffled = list(properties.items())
    random.shuffle(shuffled)
    assert compute.property_hash(dict(shuffled)) == compute.property_hash(properties)


@given(PROPERTIES, PROPERTIES)
def test_different_properties_have_different_hashes(left, right):
    """14-NODE-03: keys and values are kept apart."""
    assert (compute.property_hash(left) == compute.property_hash(right)) == (left == right)


def test_keys_are_told_from_values():
    """14-NODE-03"""
    assert compute.property_hash({"a": "bc"}) != compute.property_hash({"ab": "c"})


def test_bare_and_qualified_names_mean_the_same_class():
    """14-ASK-08"""
    assert compute.class_of("gpu-gold") == "gpu-gold"
    assert compute.class_of("resourceclass.compute.allot.dev/gpu-gold") == "gpu-gold"


@pytest.mark.parametrize("name", ["cpu", "pods", "hugepages-2Mi", "nvidia.com/gpu", "requests.x", "GPU", ""])
def test_other_resources_name_no_class(name):
    """14-API-13: raw names have a slash, names of classes have none."""
    assert compute.class_of(name) == ""


@pytest.mark.parametrize(
    "name",
    [
        "cpu",
        "memory",
        "pods",
        "storage",
        "hugepages-2Mi",
        "requests.gpu",
        "limits.cpu",
        "count.x",
        "a/b",
        "A",
    ],
)
def test_names_that_no_class_can_have(name):
    """14-API-12"""
    assert naming.wrong_class_name(name)


def test_a_class_name_is_at_most_63_characters():
    """14-API-12"""
    assert not naming.wrong_class_name("g" * 63)
    assert naming.wrong_class_name("g" * 64)


@pytest.mark.parametrize("name", ["cpu", "gpu", "kubernetes.io/x", "a.kubernetes.io/x", "a.com/", "/gpu"])
def test_names_that_no_plugin_can_register(name):
    """14-API-04, 14-NON-04"""
    assert naming.wrong_raw_name(name)
