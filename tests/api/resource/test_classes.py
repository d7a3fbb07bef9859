"""DeviceClass and DeviceTaintRule. KEP-5004 for names of extended resources."""

from dataclasses import replace
from datetime import timedelta

import pytest

from allot.api import resource
from api.context import NOW, FakeContext
from api.resource.objects import class_, condition, opaque, rule, with_change
from api.resource.writes import create, update, write_status

CLASS = resource.DEVICE_CLASS
RULE = resource.DEVICE_TAINT_RULE


def selecting(*expressions):
    return [{"cel": {"expression": expression}} for expression in expressions]


CLASS_ROWS = [
    ({}, []),
    ({"selectors": selecting("true")}, []),
    ({"selectors": selecting("wrong")}, ["spec.selectors[0].cel.expression invalid"]),
    ({"selectors": [{}]}, ["spec.selectors[0].cel required"]),
    ({"selectors": selecting(*["true"] * 33)}, ["spec.selectors too_many"]),
    ({"config": [opaque(a=1)]}, []),
    ({"config": [{}]}, ["spec.config[0].opaque required"]),
    ({"config": [opaque()] * 33}, ["spec.config too_many"]),
    ({"extendedResourceName": "example.com/gpu"}, []),
    ({"extendedResourceName": "gpu"}, ["spec.extendedResourceName invalid"]),
    ({"extendedResourceName": "kubernetes.io/gpu"}, ["spec.extendedResourceName invalid"]),
    ({"extendedResourceName": "x.kubernetes.io/gpu"}, ["spec.extendedResourceName invalid"]),
    ({"extendedResourceName": "requests.example.com/gpu"}, ["spec.extendedResourceName invalid"]),
    ({"extendedResourceName": f"example.com/{'g' * 64}"}, ["spec.extendedResourceName invalid"]),
    ({"extendedResourceName": f"example.com/{'g' * 63}"}, []),
    ({"extendedResourceName": "example.com/a/b"}, ["spec.extendedResourceName invalid"]),
]


@pytest.mark.parametrize(("spec", "causes"), CLASS_ROWS)
def test_a_device_class(spec, causes):
    assert create(CLASS, class_(**spec)).causes == causes


def test_a_class_always_shows_its_spec():
    assert create(CLASS, {"metadata": {"name": "gpu"}}).hub["spec"] == {}


def test_stored_expressions_are_judged_again_only_when_the_list_changes():
    """Merely another order counts as a change."""
    stored = create(CLASS, class_(selectors=selecting("true", "false"))).hub
    stored["spec"]["selectors"][0]["cel"]["expression"] = "wrong"
    assert update(CLASS, stored, with_change(stored, "metadata.labels", {"a": "b"})).causes == []
    turned = with_change(stored, "spec.selectors", list(reversed(stored["spec"]["selectors"])))
    assert update(CLASS, stored, turned).causes == ["spec.selectors[1].cel.expression invalid"]


def test_stored_configuration_may_stay_too_large():
    stored = create(CLASS, class_(config=[opaque(a=1)])).hub
    stored["spec"]["config"][0]["opaque"]["parameters"]["a"] = "x" * 20_000
    assert update(CLASS, stored, with_change(stored, "spec.selectors", selecting("true"))).causes == []
    longer = with_change(stored, "spec.config.0.opaque.parameters.a", "x" * 20_001)
    assert update(CLASS, stored, longer).causes == ["spec.config[0].opaque.parameters too_long"]


# Taint rules


RULE_ROWS = [
    (rule(), []),
    (rule(effect=""), ["spec.taint.effect required"]),
    (rule(effect="X"), ["spec.taint.effect unsupported"]),
    (rule(key="/"), ["spec.taint.key invalid"] * 3),
    (rule(value="-"), ["spec.taint.value invalid"]),
    (with_change(rule(), "spec.deviceSelector", {"driver": "d_"}), ["spec.deviceSelector.driver invalid"]),
    (with_change(rule(), "spec.deviceSelector", {"pool": ""}), ["spec.deviceSelector.pool required"]),
    (with_change(rule(), "spec.deviceSelector", {"device": "D"}), ["spec.deviceSelector.device invalid"]),
    ({"metadata": {"name": "r"}, "spec": {"taint": rule()["spec"]["taint"]}}, []),
]


@pytest.mark.parametrize(("body", "causes"), RULE_ROWS)
def test_a_device_taint_rule(body, causes):
    assert create(RULE, body).causes == causes


def test_a_rule_is_stamped_and_has_no_status_of_its_makers():
    """2.6."""
    hub = create(RULE, {**rule(), "status": {"conditions": [condition()]}}).hub
    assert hub["spec"]["taint"]["timeAdded"] == "2026-11-15T08:00:00Z"
    assert hub["status"] == {}


def test_another_effect_counts_from_now():
    """2.5: unless the writer gives a time of its own."""
    stored = create(RULE, rule()).hub
    later = replace(FakeContext(), now=NOW + timedelta(hours=1))
    softer = with_change(stored, "spec.taint.effect", "NoSchedule")
    assert (
        update(RULE, stored, softer, context=later).hub["spec"]["taint"]["timeAdded"]
        == "2026-11-15T09:00:00Z"
    )
    given = with_change(softer, "spec.taint.timeAdded", "2026-11-15T08:30:00Z")
    assert (
        update(RULE, stored, given, context=later).hub["spec"]["taint"]["timeAdded"] == "2026-11-15T08:30:00Z"
    )
    same = with_change(stored, "spec.taint.value", "v")
    assert (
        update(RULE, stored, same, context=later).hub["spec"]["taint"]["timeAdded"] == "2026-11-15T08:00:00Z"
    )


def test_an_effect_that_was_accepted_once_stays_accepted():
    stored = create(RULE, rule()).hub
    stored["spec"]["taint"]["effect"] = "Unheard"
    assert update(RULE, stored, with_change(stored, "spec.taint.value", "v")).causes == []


def test_the_status_of_a_rule_is_conditions():
    stored = create(RULE, rule()).hub
    assert write_status(RULE, stored, {"conditions": [condition("EvictionInProgress")]}).causes == []
    many = {"conditions": [condition(f"C{i}") for i in range(9)]}
    assert write_status(RULE, stored, many).causes == ["status.conditions too_many"]
    bad = {"conditions": [condition(status="Maybe")]}
    assert write_status(RULE, stored, bad).causes == ["status.conditions[0].status unsupported"]


def test_v1_of_taint_rules_answers_differently():
    """2.1: DELETE returns a Status and PUT needs a resourceVersion, in v1 only."""
    by_name = {version.name: version for version in RULE.versions}
    assert (by_name["v1"].returns_deleted, by_name["v1"].unconditional_update) == (False, False)
    assert (by_name["v1beta2"].returns_deleted, by_name["v1beta2"].unconditional_update) == (True, True)
