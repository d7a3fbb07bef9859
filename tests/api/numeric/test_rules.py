"""What capacity of nodes and numeric classes may say, rule by rule, without a server."""

import pytest

from allot.api import Gates, classic, numeric
from api.context import FakeContext
from api.numeric.objects import capacity, class_, counter, entry
from api.resource.writes import create, update

CLASS, CAPACITY = classic.RESOURCE_CLASS, numeric.NODE_RESOURCE_CAPACITY
VERSION = "v1alpha1"
OFF = Gates({numeric.limits.GATE: False})


def causes(body, kind=CLASS):
    return create(kind, body, VERSION).causes


# Classes


@pytest.mark.parametrize("listed", [None, []])
def test_a_class_needs_no_parameter_types(listed):
    """4381-CLS-01."""
    assert causes({**class_(), "numericParameters": listed}) == []


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ({"kind": ""}, ["numericParameters[0].kind required"]),
        ({"celTemplate": ""}, ["numericParameters[0].celTemplate required"]),
        ({"apiVersion": ""}, []),
        ({"apiVersion": "v1"}, []),
        ({"apiVersion": "a/b/v1"}, ["numericParameters[0].apiVersion invalid"]),
        ({"apiVersion": "example.com/"}, ["numericParameters[0].apiVersion invalid"]),
        ({"apiVersion": "/v1"}, ["numericParameters[0].apiVersion invalid"]),
        ({"apiVersion": "example.com/one"}, ["numericParameters[0].apiVersion invalid"]),
        ({"kind": "Not A Kind"}, ["numericParameters[0].kind invalid"]),
        ({"celTemplate": "x" * (10 * 1024)}, []),
        ({"celTemplate": "x" * (10 * 1024 + 1)}, ["numericParameters[0].celTemplate too_long"]),
        ({"apiVersion": "v1", "kind": "Secret"}, ["numericParameters[0].kind forbidden"]),
        ({"apiVersion": "example.com/v1", "kind": "Secret"}, []),
    ],
)
def test_an_entry_names_a_type_and_a_template(changed, expected):
    """4381-VAL-01, 4381-VAL-02, 4381-VAL-03, 4381-SEC-08."""
    assert causes(class_("frob", entry(**changed))) == expected


def test_a_type_stands_in_a_class_once_whatever_its_version():
    """4381-CLS-09, 4381-VAL-03."""
    twice = class_("frob", entry(), entry(apiVersion="dra.e2e.example.com/v1"))
    assert causes(twice) == ["numericParameters[1] duplicate"]
    assert causes(class_("frob", entry(), entry(kind="Others"))) == []
    many = [entry(kind=f"Kind{number}") for number in range(33)]
    assert causes(class_("frob", *many[:32])) == []
    assert causes(class_("frob", *many)) == ["numericParameters too_many"]


def test_class_parameters_of_a_numeric_class_are_no_secret():
    """4381-SEC-08: allocated claims show them."""
    secret = {"kind": "Secret", "name": "s", "namespace": "ns"}
    assert causes(class_(parametersRef=secret)) == ["parametersRef.kind forbidden"]
    assert causes({**class_(parametersRef=secret), "numericParameters": []}) == []


def test_what_was_accepted_stays_acceptable():
    """4381-VAL-09: a class that an older server took may be labelled."""
    old = class_("frob", entry(kind="Not A Kind"))
    labelled = {**old, "metadata": {"name": "frob", "labels": {"a": "b"}}}
    assert update(CLASS, old, labelled, VERSION).causes == []
    changed = class_("frob", entry(kind="Not A Kind", celTemplate="other"))
    assert update(CLASS, old, changed, VERSION).causes == ["numericParameters[0].kind invalid"]


def test_with_the_gate_off_a_class_cannot_get_the_field_and_one_that_has_it_keeps_it():
    """4381-GATE-04, 4381-GATE-05, 4381-TST-05."""
    context = FakeContext(gates=OFF)
    made = create(CLASS, class_(), VERSION, context)
    assert made.errors == []
    assert "numericParameters" not in made.hub
    assert context.warnings == ["numericParameters: dropped, since feature gate DRANumericParameters is off"]
    plain = {**class_(), "numericParameters": []}
    assert "numericParameters" not in update(CLASS, plain, class_(), VERSION, FakeContext(gates=OFF)).hub
    more = class_("frob", entry(), entry(kind="Others"))
    context = FakeContext(gates=OFF)
    assert update(CLASS, class_(), more, VERSION, context).hub["numericParameters"] == [
        entry(),
        entry(kind="Others"),
    ]
    assert context.warnings == []


def test_a_class_is_read_as_it_was_written():
    read = classic.ResourceClass()
    assert read.numeric_parameters == ()
    one = numeric.NumericParameterType(api_version="dra.e2e.example.com/v1alpha1", kind="ClaimParameters")
    assert (one.group, one.version) == ("dra.e2e.example.com", "v1alpha1")
    core = numeric.NumericParameterType(kind="ConfigMap", cel_template="x")
    assert (core.group, core.version) == ("", "v1")  # 4381-CLS-06


# Capacity


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ({"nodeName": ""}, ["nodeName required"]),
        ({"nodeName": "No Node"}, ["nodeName invalid"]),
        ({"driverName": ""}, ["driverName required"]),
        ({"driverName": "no_driver"}, ["driverName invalid"]),
        ({"instances": None}, ["instances required"]),
        ({"instances": []}, []),
        ({"instances": [counter(), counter()]}, ["instances[1] duplicate"]),
        ({"instances": [counter(f"c{n}") for n in range(128)]}, []),
        ({"instances": [counter(f"c{n}") for n in range(129)]}, ["instances too_many"]),
    ],
)
def test_capacity_is_of_a_node_and_a_driver(changed, expected):
    """4381-VAL-04, 4381-VAL-05, 4381-VAL-07, 4381-CAP-02, 4381-CAP-12."""
    assert causes({**capacity(), **changed}, CAPACITY) == expected


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ({"id": ""}, ["instances[0].id required"]),
        ({"id": "i" * 254}, ["instances[0].id too_long"]),
        ({"apiVersion": ""}, ["instances[0].apiVersion required"]),
        ({"kind": ""}, ["instances[0].kind required"]),
        ({"data": None}, ["instances[0].data required"]),
        ({"data": "text"}, ["instances[0].data invalid"]),
        ({"data": [1]}, ["instances[0].data invalid"]),
        ({"data": {}}, []),
        ({"data": {"x": "y" * (32 * 1024 - 8)}}, []),
        ({"data": {"x": "y" * (32 * 1024 - 7)}}, ["instances[0].data too_long"]),
        ({"apiVersion": "nobody.example.com/v7", "kind": "Whatever"}, []),
    ],
)
def test_an_instance_has_an_id_a_type_and_data(changed, expected):
    """4381-VAL-04, 4381-VAL-06, 4381-CAP-09, 4381-CAP-17."""
    assert causes(capacity(instances=[{**counter(), **changed}]), CAPACITY) == expected


def test_capacity_never_moves_to_another_node_or_driver():
    """4381-CAP-13."""
    old = capacity()
    moved = update(CAPACITY, old, capacity(node="n2"), VERSION)
    assert moved.causes == ["nodeName invalid"]
    assert update(CAPACITY, old, capacity(driver="other.example.com"), VERSION).causes == [
        "driverName invalid"
    ]
    assert update(CAPACITY, old, capacity(instances=[counter(count=1)]), VERSION).causes == []


def test_an_instance_that_was_accepted_stays_acceptable():
    """4381-VAL-09: beside one that is new."""
    large = {**counter(), "data": {"x": "y" * 40_000}}
    old = capacity(instances=[large])
    assert update(CAPACITY, old, capacity(instances=[counter("c1"), large]), VERSION).causes == []
    larger = {**large, "data": {"x": "y" * 40_001}}
    assert update(CAPACITY, old, capacity(instances=[larger]), VERSION).causes == [
        "instances[0].data too_long"
    ]


def test_the_gates_of_the_feature_and_of_each_model_exist_and_are_on():
    """4381-GATE-01."""
    for model in ("Counter", "Partition", "Topology"):
        assert Gates()[f"DRANumericModel{model}"]
    assert Gates()[numeric.limits.GATE]
    assert CAPACITY in classic.served(Gates())
    assert CAPACITY not in classic.served(OFF)
    assert CAPACITY not in classic.served(Gates({classic.limits.GATE: False}))
