"""Who serves a resource on a node: the device plugin, DRA, or nobody. KEP-5004 "Scheduling"."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from allot.scheduler.extended import Choice, Delegation, ExtendedResources, Lacking, read_asked
from scheduler.extended.objects import EXTENDED, GPU, IMPLICIT, container, device_class, pod

NIC = "example.com/nic"


def choice(one, *classes):
    resources = ExtendedResources()
    for each in classes:
        resources.put(each)
    return Choice(read_asked(one.spec), resources)


GPU_CLASS = device_class(extended=EXTENDED)
NIC_CLASS = device_class("nic.example.com", NIC)
PLAIN = {"cpu": 4000, "memory": 2**30, "pods": 110}


@pytest.mark.parametrize("allocatable", [PLAIN, {**PLAIN, EXTENDED: 0}], ids=["absent", "zero"])
def test_dra_serves_what_the_node_does_not_have(allocatable):
    assert choice(pod(container(gpu=1)), GPU_CLASS).on(allocatable) == Delegation(((EXTENDED, GPU),))


def test_a_device_plugin_goes_before_dra():
    assert choice(pod(container(gpu=1)), GPU_CLASS).on({**PLAIN, EXTENDED: 2}) == Delegation()


def test_a_plugin_with_too_few_is_still_the_one_that_serves():
    """Nothing is mixed for one resource on one node; the fit of resources says no."""
    assert choice(pod(container(gpu=8)), GPU_CLASS).on({**PLAIN, EXTENDED: 2}) == Delegation()


def test_where_nobody_serves_a_resource_the_node_lacks_it():
    found = choice(pod(container(gpu=1, nic=1)), NIC_CLASS).on(PLAIN)
    assert found == Lacking((EXTENDED,))
    assert str(found) == "no device plugin and no device class serves example.com/gpu"


def test_two_resources_of_one_pod_may_be_served_differently():
    both = choice(pod(container(gpu=1, nic=1)), GPU_CLASS, NIC_CLASS)
    assert both.on({**PLAIN, EXTENDED: 8}) == Delegation(((NIC, "nic.example.com"),))
    assert both.on({**PLAIN, NIC: 8}) == Delegation(((EXTENDED, GPU),))


def test_implicit_names_are_served_like_explicit_ones():
    assert choice(pod(container(implicit=1)), GPU_CLASS).on(PLAIN) == Delegation(((IMPLICIT, GPU),))


def test_equal_nodes_share_one_answer():
    found = choice(pod(container(gpu=1)), GPU_CLASS)
    assert found.on(PLAIN) is found.on({**PLAIN, "cpu": 1})


def test_a_delegation_says_what_the_fit_of_resources_leaves_alone():
    delegation = choice(pod(container(gpu=1)), GPU_CLASS).on(PLAIN)
    assert EXTENDED in delegation
    assert NIC not in delegation
    assert not Delegation()


def test_ordinary_resources_are_none_of_this():
    found = choice(pod(container(cpu="1", memory="1Gi")), GPU_CLASS)
    assert found.on(PLAIN) == Delegation()


@given(
    asked=st.sets(st.sampled_from(["gpu", "nic", "fpga"]), min_size=1),
    served=st.sets(st.sampled_from(["gpu", "nic", "fpga"])),
    there=st.dictionaries(st.sampled_from(["gpu", "nic", "fpga"]), st.integers(0, 2)),
)
def test_each_resource_is_decided_for_itself(asked, served, there):
    classes = [device_class(name, f"example.com/{name}") for name in served]
    found = choice(pod(container(**dict.fromkeys(asked, 1))), *classes).on(
        {f"example.com/{name}": amount for name, amount in there.items()}
    )
    by_dra = {name for name in asked if not there.get(name)}
    if by_dra - served:
        assert found == Lacking(tuple(f"example.com/{name}" for name in sorted(by_dra - served)))
    else:
        assert found == Delegation(tuple((f"example.com/{name}", name) for name in sorted(by_dra)))
