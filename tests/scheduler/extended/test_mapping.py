"""Which class serves a resource, whatever came before.

KEP-5004 "Device Class API".
"""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from allot.allocation import Features
from allot.api import compute, meta
from allot.scheduler.extended import ExtendedResources, implicit_name
from allot.scheduler.snapshot import Snapshot
from scheduler.extended.objects import EXTENDED, GPU, IMPLICIT, device_class


def mapping(*classes):
    found = ExtendedResources()
    for one in classes:
        found.put(one)
    return found


def server(resources, name=EXTENDED):
    found = resources.class_for(name)
    return found.metadata.name if found is not None else None


# -- names --------------------------------------------------------------------------------------


def test_a_class_serves_its_explicit_name():
    assert server(mapping(device_class(extended=EXTENDED))) == GPU


def test_every_class_serves_its_implicit_name():
    assert server(mapping(device_class()), IMPLICIT) == GPU
    assert server(mapping(device_class(extended=EXTENDED)), IMPLICIT) == GPU


def test_a_name_of_no_class_is_served_by_none():
    assert server(mapping(device_class()), EXTENDED) is None
    assert server(mapping(), IMPLICIT) is None


def test_an_implicit_name_belongs_to_its_class_alone():
    """The API server refuses such an explicit name; should one be stored, it takes nothing away."""
    thief = device_class("thief", extended=IMPLICIT, created=9)
    assert server(mapping(thief), IMPLICIT) is None
    assert server(mapping(thief, device_class()), IMPLICIT) == GPU


def test_the_class_created_last_wins():
    old, new = device_class("a", EXTENDED, created=1), device_class("b", EXTENDED, created=2)
    assert server(mapping(old, new)) == server(mapping(new, old)) == "b"


def test_of_classes_of_the_same_second_the_first_name_wins():
    one, other = device_class("a-z", EXTENDED, created=1), device_class("b-a", EXTENDED, created=1)
    assert server(mapping(one, other)) == server(mapping(other, one)) == "a-z"


def test_a_class_without_a_time_is_the_oldest():
    timeless = device_class("a", EXTENDED)
    timeless = type(timeless)(metadata=type(timeless.metadata)(name="a"), spec=timeless.spec)
    assert server(mapping(timeless, device_class("b", EXTENDED, created=1))) == "b"


# -- what upstream's cache gets wrong -------------------------------------------------------------


def test_a_class_that_lost_keeps_its_implicit_name():
    winner, loser = device_class("new", EXTENDED, created=2), device_class("old", EXTENDED, created=1)
    found = mapping(winner, loser)
    assert server(found, implicit_name("old")) == "old"
    assert server(found) == server(found, implicit_name("new")) == "new"


@pytest.mark.parametrize("leave", ["delete", "rename", "drop the name"])
def test_a_loser_that_goes_takes_nothing_from_the_winner(leave):
    winner, loser = device_class("new", EXTENDED, created=2), device_class("old", EXTENDED, created=1)
    found = mapping(loser, winner)
    if leave == "delete":
        changed = found.remove("old")
    else:
        changed = found.put(
            device_class("old", "example.com/other" if leave == "rename" else None, created=1)
        )
    assert server(found) == "new"
    assert EXTENDED not in changed


def test_an_update_that_keeps_the_name_is_not_overlooked():
    """5004-CLASS-11."""
    found = mapping(device_class(extended=EXTENDED, expression="true"))
    changed = found.put(device_class(extended=EXTENDED, expression="false"))
    assert found.class_for(EXTENDED).spec.selectors[0].cel.expression == "false"
    assert changed == {EXTENDED, IMPLICIT}


def test_when_the_winner_goes_the_next_one_serves():
    found = mapping(device_class("old", EXTENDED, created=1), device_class("new", EXTENDED, created=2))
    assert found.remove("new") == {EXTENDED, implicit_name("new")}
    assert server(found) == "old"


# -- what has changed ---------------------------------------------------------------------------


def test_who_waits_for_a_name_hears_when_it_is_served():
    found = ExtendedResources()
    assert found.put(device_class(extended=EXTENDED)) == {EXTENDED, IMPLICIT}
    assert found.put(device_class(extended="example.com/other")) == {EXTENDED, "example.com/other", IMPLICIT}
    assert found.remove(GPU) == {"example.com/other", IMPLICIT}


def test_nobody_hears_of_what_changes_nothing():
    found = mapping(device_class(extended=EXTENDED))
    assert found.put(device_class(extended=EXTENDED)) == frozenset()
    assert found.remove("never seen") == frozenset()


def test_a_class_that_is_made_anew_is_another_class():
    found = mapping(device_class(extended=EXTENDED))
    assert EXTENDED in found.put(device_class(extended=EXTENDED, uid="another"))


# -- promises -----------------------------------------------------------------------------------

NAMES = ("a", "b", "c", "d")
RESOURCES = (None, "example.com/x", "example.com/y")
CLASSES = st.builds(
    lambda name, extended, created, text: device_class(name, extended, created, text),
    st.sampled_from(NAMES),
    st.sampled_from(RESOURCES),
    st.integers(0, 2),
    st.sampled_from(["true", "false"]),
)
STEPS = st.lists(CLASSES | st.sampled_from(NAMES), max_size=25)
ALL_NAMES = [*RESOURCES[1:], *map(implicit_name, NAMES)]


def take(resources, there, step):
    if isinstance(step, str):
        there.pop(step, None)
        return resources.remove(step)
    there[step.metadata.name] = step
    return resources.put(step)


def answers(resources):
    return {name: resources.class_for(name) for name in ALL_NAMES}


def from_nothing(there):
    """The rule of the KEP, spelled out."""
    found = {}
    for name in ALL_NAMES:
        able = [
            one
            for one in there.values()
            if name in (one.spec.extended_resource_name, implicit_name(one.metadata.name))
        ]
        by_name = sorted(able, key=lambda one: one.metadata.name)
        by_age = sorted(by_name, key=lambda one: one.metadata.creation_timestamp, reverse=True)
        found[name] = by_age[0] if by_age else None
    return found


@given(STEPS)
def test_the_answer_is_that_of_a_computation_from_nothing(steps):
    """EXTMAP1 and EXTMAP3, after every step."""
    resources, there = ExtendedResources(), {}
    for step in steps:
        before = answers(resources)
        changed = take(resources, there, step)
        assert answers(resources) == from_nothing(there)
        assert changed == {name for name, one in answers(resources).items() if one != before[name]}


@given(STEPS, STEPS)
def test_a_fork_goes_its_own_way(steps, further):
    """EXTMAP4"""
    resources, there = ExtendedResources(), {}
    for step in steps:
        take(resources, there, step)
    before, fork, there_forked = answers(resources), resources.fork(), dict(there)
    for step in further:
        take(fork, there_forked, step)
    assert answers(fork) == from_nothing(there_forked)
    assert answers(resources) == before


# -- names of compute classes -------------------------------------------------------------------


def test_a_bridge_leads_to_a_class_that_comes_later_or_goes():
    """14-MIX-04, EXTMAP3: whoever waits for the name is told of each change."""
    found = ExtendedResources()
    assert found.bridge("gpu-gold", GPU) == frozenset()
    assert found.put(device_class()) == {IMPLICIT, "gpu-gold"}
    assert server(found, "gpu-gold") == GPU
    assert found.remove(GPU) == {IMPLICIT, "gpu-gold"}
    assert server(found, "gpu-gold") is None
    found.put(device_class("other"))
    assert found.bridge("gpu-gold", "other") == {"gpu-gold"}
    assert server(found, "gpu-gold") == "other"


def test_a_compute_class_that_goes_takes_its_bridge_with_it():
    """14-MIX-04, 14-CHG-04"""
    snapshot = Snapshot(Features())
    snapshot.put_class(device_class())
    said = {"metadata": {"name": "gpu-gold"}, "spec": {"resourceName": "a.b/c", "deviceClassName": GPU}}
    snapshot.put_compute_class(meta.view(compute.ResourceClass, said))
    names = ("gpu-gold", "resourceclass.compute.allot.dev/gpu-gold")
    assert [server(snapshot.extended, name) for name in names] == [GPU, GPU]
    snapshot.drop_compute_class("gpu-gold")
    assert [server(snapshot.extended, name) for name in names] == [None, None]
