"""Every rule of ResourceSlice."""

import pytest

from allot.api import Gates, resource
from api.context import FakeContext
from api.resource.objects import device, on_node, slice_, with_change
from api.resource.writes import ALL_GATES, create, update

SLICE = resource.RESOURCE_SLICE
EVERYTHING = FakeContext(gates=Gates(ALL_GATES))


D = "spec.devices[0]"


def test_a_plain_slice_is_fine():
    full = device(
        attributes={"model": {"string": "a"}, "other.example.com/version": {"version": "1.2.3-rc.1+b"}},
        capacity={"memory": {"value": "80Gi"}},
        taints=[{"key": "example.com/slow", "value": "very", "effect": "NoSchedule"}],
        bindingConditions=["example.com/ready"],
        bindingFailureConditions=["example.com/failed"],
        bindsToNode=True,
    )
    assert create(SLICE, slice_(full)).texts == []


SPEC_ROWS = [
    ({"driver": ""}, ["spec.driver required"]),
    ({"driver": "d" * 64}, ["spec.driver too_long"]),
    ({"driver": "d_e"}, ["spec.driver invalid"]),
    ({"driver": "GPU.example.com"}, []),
    ({"pool": {"name": "", "resourceSliceCount": 1}}, ["spec.pool.name required"]),
    ({"pool": {"name": "a/b.c", "resourceSliceCount": 1}}, []),
    ({"pool": {"name": "a//b", "resourceSliceCount": 1}}, ["spec.pool.name invalid"]),
    ({"pool": {"name": "/".join(["a" * 60] * 5), "resourceSliceCount": 1}}, ["spec.pool.name too_long"]),
    ({"pool": {"name": "p", "resourceSliceCount": 0}}, ["spec.pool.resourceSliceCount invalid"]),
    ({"pool": {"name": "p", "resourceSliceCount": 1, "generation": -1}}, ["spec.pool.generation invalid"]),
    ({"nodeName": None}, ["spec required"]),
    ({"nodeName": ""}, ["spec.nodeName invalid", "spec required"]),
    ({"nodeName": "N_1"}, ["spec.nodeName invalid"]),
    ({"nodeName": "n1", "allNodes": True}, ["spec invalid"]),
    ({"nodeName": None, "allNodes": True}, []),
    ({"nodeName": None, "allNodes": False}, ["spec.allNodes invalid", "spec required"]),
    ({"nodeName": None, "nodeSelector": on_node("n1")}, []),
    (
        {"nodeName": None, "nodeSelector": {"nodeSelectorTerms": on_node("n1")["nodeSelectorTerms"] * 2}},
        ["spec.nodeSelector.nodeSelectorTerms invalid"],
    ),
    (
        {"nodeName": None, "nodeSelector": {"nodeSelectorTerms": []}},
        ["spec.nodeSelector.nodeSelectorTerms required", "spec.nodeSelector.nodeSelectorTerms invalid"],
    ),
    ({"perDeviceNodeSelection": False}, ["spec.perDeviceNodeSelection invalid"]),
    ({"nodeName": None, "perDeviceNodeSelection": True}, []),
    ({"sharedCounters": []}, ["spec invalid"]),  # an empty list counts as set
    ({"devices": None, "sharedCounters": [{"name": "c", "counters": {"m": {"value": "1"}}}]}, []),
    (
        {"devices": None, "sharedCounters": [{"name": "", "counters": {}}]},
        ["spec.sharedCounters[0].name required", "spec.sharedCounters[0].counters required"],
    ),
    (
        {"devices": None, "sharedCounters": [{"name": "c", "counters": {"M_": {"value": "1"}}}]},
        ["spec.sharedCounters[0].counters invalid"],
    ),
    (
        {"devices": None, "sharedCounters": [{"name": "c", "counters": {"m": {"value": "1"}}}] * 2},
        ["spec.sharedCounters[1] duplicate"],
    ),
    (
        {
            "devices": None,
            "sharedCounters": [{"name": f"c{i}", "counters": {"m": {"value": "1"}}} for i in range(9)],
        },
        ["spec.sharedCounters too_many"],
    ),
    (
        {
            "devices": None,
            "sharedCounters": [{"name": "c", "counters": {f"m{i}": {"value": "1"} for i in range(33)}}],
        },
        ["spec.sharedCounters[0].counters too_many"],
    ),
    ({"skipNodeOperations": ["*"]}, []),
    ({"skipNodeOperations": ["NodeUnprepareResources"]}, []),
    ({"skipNodeOperations": ["NodePrepareResources"]}, ["spec.skipNodeOperations invalid"]),
    ({"skipNodeOperations": ["NodePrepareResources", "*"]}, []),
    ({"skipNodeOperations": ["Other"]}, ["spec.skipNodeOperations[0] unsupported"]),
    ({"skipNodeOperations": ["*", "*"]}, ["spec.skipNodeOperations[1] duplicate"]),
    ({"partitionTypeAttribute": "d.example.com/type"}, ["spec.partitionTypeAttribute invalid"]),
]


@pytest.mark.parametrize(("spec", "causes"), SPEC_ROWS)
def test_the_spec_of_a_slice(spec, causes):
    assert create(SLICE, slice_(**spec), context=EVERYTHING).causes == causes


def counters(**more):
    return {"counterSet": "c", "counters": {"m": {"value": "1"}}, **more}


def taint(**more):
    return {"key": "k", "effect": "NoExecute", **more}


DEVICE_ROWS = [
    ({"name": "D_"}, [f"{D}.name invalid"]),
    ({"name": ""}, [f"{D}.name invalid"]),
    ({"attributes": {f"a{i}": {"int": i} for i in range(33)}}, [f"{D} invalid"]),
    (
        {
            "attributes": {f"a{i}": {"int": i} for i in range(20)},
            "capacity": {f"c{i}": {"value": "1"} for i in range(13)},
        },
        [f"{D} invalid"],
    ),
    ({"attributes": {"a": {"ints": list(range(49))}}}, [f"{D} invalid"]),
    ({"attributes": {"a": {"ints": list(range(48))}}}, []),
    ({"attributes": {"a": {}}}, [f"{D}.attributes[a] invalid"]),
    ({"attributes": {"a": {"int": 1, "bool": True}}}, [f"{D}.attributes[a] invalid"]),
    ({"attributes": {"a": {"strings": []}}}, [f"{D}.attributes[a].strings invalid"]),
    ({"attributes": {"a": {"strings": ["x" * 65]}}}, [f"{D}.attributes[a].strings[0] too_long"]),
    ({"attributes": {"a": {"versions": ["1"]}}}, [f"{D}.attributes[a].versions[0] invalid"]),
    ({"attributes": {"a": {"string": ""}}}, []),
    ({"attributes": {"a": {"string": "x" * 65}}}, [f"{D}.attributes[a].string too_long"]),
    ({"attributes": {"a": {"version": "v1.2"}}}, [f"{D}.attributes[a].version invalid"]),
    ({"attributes": {"a": {"version": "01.0.0"}}}, [f"{D}.attributes[a].version invalid"]),
    ({"attributes": {"a": {"version": "1.0.0-" + "x" * 64}}}, [f"{D}.attributes[a].version too_long"]),
    ({"attributes": {"a-b": {"int": 1}}}, [f"{D}.attributes invalid"]),
    ({"attributes": {"a" * 33: {"int": 1}}}, [f"{D}.attributes too_long"]),
    ({"attributes": {"/a": {"int": 1}}}, [f"{D}.attributes invalid"]),
    ({"attributes": {"x.example.com/": {"int": 1}}}, [f"{D}.attributes invalid"]),
    ({"attributes": {"x_y/a": {"int": 1}}}, [f"{D}.attributes invalid"]),
    ({"attributes": {"x/y/z": {"int": 1}}}, []),  # 2.3: upstream lets a second slash through
    ({"capacity": {"m": {"value": "-1"}, "n": {}}}, []),  # 2.2: values are not judged
    ({"capacity": {"m-": {"value": "1"}}}, [f"{D}.capacity invalid"]),
    ({"capacity": {"m": {"value": "1", "requestPolicy": {}}}}, [f"{D}.capacity[m].requestPolicy forbidden"]),
    ({"taints": [taint(key="")]}, [f"{D}.taints[0].key invalid", f"{D}.taints[0].key invalid"]),
    ({"taints": [taint(value="-")]}, [f"{D}.taints[0].value invalid"]),
    ({"taints": [taint(effect="")]}, [f"{D}.taints[0].effect required"]),
    ({"taints": [taint(effect="PreferNoSchedule")]}, [f"{D}.taints[0].effect unsupported"]),
    ({"taints": [taint(effect="None")]}, []),
    ({"taints": [taint()] * 2}, []),  # 2.2: the same taint twice is not judged
    ({"taints": [taint(key=f"k{i}") for i in range(17)]}, [f"{D}.taints too_many"]),
    ({"consumesCounters": [counters()]}, []),
    ({"consumesCounters": [counters(counterSet="C_")]}, [f"{D}.consumesCounters[0].counterSet invalid"]),
    ({"consumesCounters": [counters(), counters()]}, [f"{D}.consumesCounters[1] duplicate"]),
    (
        {"consumesCounters": [counters(counterSet=f"c{i}") for i in range(3)]},
        [f"{D}.consumesCounters too_many"],
    ),
    (
        {"consumesCounters": [counters(counterSet="", counters={})]},
        [f"{D}.consumesCounters[0].counterSet required", f"{D}.consumesCounters[0].counters required"],
    ),
    (
        {"consumesCounters": [counters(counters={f"m{i}": {"value": "1"} for i in range(33)})]},
        [f"{D}.consumesCounters[0].counters too_many"],
    ),
    (
        {"consumesCounters": [counters(compatibilityGroups=["a", "b", "c"])]},
        [f"{D}.consumesCounters[0].compatibilityGroups too_many"],
    ),
    ({"nodeName": "n1"}, [f"{D} invalid"]),  # only with perDeviceNodeSelection
    ({"bindingConditions": ["a"]}, [f"{D}.bindingFailureConditions invalid"]),
    ({"bindingFailureConditions": ["a"]}, [f"{D}.bindingConditions invalid"]),
    (
        {"bindingConditions": ["a", "a"], "bindingFailureConditions": ["b"]},
        [f"{D}.bindingConditions[1] duplicate"],
    ),
    (
        {"bindingConditions": ["a"], "bindingFailureConditions": ["a"]},
        [f"{D}.bindingFailureConditions[0] invalid"],
    ),
    (
        {"bindingConditions": ["a/"], "bindingFailureConditions": ["b"]},
        [f"{D}.bindingConditions[0] invalid", f"{D}.bindingConditions[0] invalid"],
    ),
    (
        {"bindingConditions": list("abcde"), "bindingFailureConditions": ["x"]},
        [f"{D}.bindingConditions too_many"],
    ),
]


@pytest.mark.parametrize(("fields", "causes"), DEVICE_ROWS)
def test_a_device_of_a_slice(fields, causes):
    assert create(SLICE, slice_({"name": "d", **fields}), context=EVERYTHING).causes == causes


PLACE_ROWS = [
    ({}, [f"{D} required"]),
    ({"nodeName": "n1"}, []),
    ({"nodeName": ""}, [f"{D}.nodeName invalid", f"{D} required"]),
    ({"allNodes": True}, []),
    ({"allNodes": False}, [f"{D}.allNodes invalid", f"{D} required"]),
    ({"nodeSelector": on_node("n")}, []),
    (
        {"nodeSelector": {"nodeSelectorTerms": on_node("n")["nodeSelectorTerms"] * 2}},
        [],
    ),  # not checked upstream
    ({"nodeName": "n1", "allNodes": True}, [f"{D} invalid"]),
]


@pytest.mark.parametrize(("fields", "causes"), PLACE_ROWS)
def test_each_device_says_where_it_is_when_the_slice_asks_for_it(fields, causes):
    body = slice_({"name": "d", **fields}, nodeName=None, perDeviceNodeSelection=True)
    assert create(SLICE, body).causes == causes


POLICY = f"{D}.capacity[m].requestPolicy"
BOUNDS = f"{POLICY}.validRange"

POLICY_ROWS = [
    ({}, []),
    ({"default": "99"}, []),  # 2.3: a default alone is not compared with the capacity
    ({"validValues": ["1"], "validRange": {"min": "1"}}, [f"{POLICY} forbidden"]),
    ({"validValues": ["1"]}, [f"{POLICY}.default required"]),
    ({"validValues": ["1", "2"], "default": "1"}, []),
    ({"validValues": ["1", "2"], "default": "3"}, [f"{POLICY}.validValues invalid"]),
    ({"validValues": ["2", "1"], "default": "1"}, [f"{POLICY}.validValues[1] invalid"]),
    ({"validValues": ["1", "1"], "default": "1"}, [f"{POLICY}.validValues[1] duplicate"]),
    ({"validValues": ["1", "11"], "default": "1"}, [f"{POLICY}.validValues[1] invalid"]),
    (
        {"validValues": [str(i) for i in range(11)], "default": "1"},
        [f"{POLICY}.validValues too_many", f"{POLICY}.validValues invalid"],
    ),
    ({"validRange": {"min": "1"}}, [f"{POLICY}.default required"]),
    ({"validRange": {}, "default": "1"}, [f"{BOUNDS}.min required"]),
    ({"validRange": {"min": "1"}, "default": "1"}, []),
    ({"validRange": {"min": "1"}, "default": "99"}, []),  # 2.3: nor without a max
    ({"validRange": {"min": "11"}, "default": "11"}, [f"{BOUNDS}.min invalid"]),
    ({"validRange": {"min": "2"}, "default": "1"}, [f"{BOUNDS}.default invalid"]),
    ({"validRange": {"min": "1", "max": "11"}, "default": "1"}, [f"{BOUNDS}.max invalid"]),
    (
        {"validRange": {"min": "3", "max": "2"}, "default": "3"},
        [f"{BOUNDS}.max invalid", f"{BOUNDS}.default invalid"],
    ),
    ({"validRange": {"min": "1", "max": "5"}, "default": "6"}, [f"{BOUNDS}.default invalid"]),
    ({"validRange": {"min": "1", "step": "0"}, "default": "1"}, [f"{BOUNDS}.step invalid"]),
    ({"validRange": {"min": "1", "step": "10"}, "default": "1"}, [f"{BOUNDS}.step invalid"]),
    ({"validRange": {"min": "1", "step": "2"}, "default": "8"}, [f"{BOUNDS}.step invalid"]),
    ({"validRange": {"min": "1", "step": "2", "max": "8"}, "default": "3"}, [f"{BOUNDS}.step invalid"]),
    ({"validRange": {"min": "1", "step": "2", "max": "9"}, "default": "3"}, []),
    ({"validRange": {"min": "-1", "step": "1"}, "default": "1"}, [f"{BOUNDS}.min invalid"]),
    ({"validRange": {"min": "500m", "step": "500m"}, "default": "700m"}, []),  # rounded up, gate off
    (
        {"validRange": {"min": "1", "step": "16E"}, "default": "1"},
        [f"{BOUNDS}.step invalid", f"{BOUNDS}.step invalid"],
    ),
]


@pytest.mark.parametrize(("policy", "causes"), POLICY_ROWS)
def test_the_request_policy_of_a_shareable_capacity(policy, causes):
    shared = device(capacity={"m": {"value": "10", "requestPolicy": policy}}, allowMultipleAllocations=True)
    assert create(SLICE, slice_(shared)).causes == causes


@pytest.mark.parametrize(
    ("bounds", "default", "causes"),
    [
        ({"min": "500m", "step": "500m"}, "700m", [f"{BOUNDS}.step invalid"]),
        ({"min": "500m", "step": "500m"}, "1500m", []),
        ({"min": "1", "step": "1"}, "1500m", [f"{BOUNDS}.step invalid"]),
        ({"min": "500u", "step": "1"}, "1", [f"{BOUNDS}.min invalid"]),
        ({"min": "1", "step": "1"}, "2", []),
    ],
)
def test_fractions_count_in_thousandths_once_their_gate_is_on(bounds, default, causes):
    policy = {"validRange": bounds, "default": default}
    shared = device(capacity={"m": {"value": "10", "requestPolicy": policy}}, allowMultipleAllocations=True)
    gates = Gates({"DRAFractionalCapacityRange": True})
    assert create(SLICE, slice_(shared), context=FakeContext(gates=gates)).causes == causes


ALLOCATABLE = f"{D}.nodeAllocatableResources"

ALLOCATABLE_ROWS = [
    ({"cpu": {"mapping": {"deviceMultiplier": "2"}}}, []),
    ({"hugepages-2Mi": {"overhead": {"perPod": "1"}}}, []),
    ({"example.com/gpu": {"overhead": {"perPod": "1"}}}, [f"{ALLOCATABLE}[example.com/gpu] invalid"]),
    ({"cpu": {}}, [f"{ALLOCATABLE}[cpu] required"]),
    (
        {"cpu": {"mapping": {"deviceMultiplier": "0"}}},
        [f"{ALLOCATABLE}[cpu].mapping.deviceMultiplier invalid"],
    ),
    ({"cpu": {"mapping": {"capacityKey": "m"}}}, [f"{ALLOCATABLE}[cpu].mapping.capacityMultiplier required"]),
    ({"cpu": {"mapping": {"capacityMultiplier": "1"}}}, [f"{ALLOCATABLE}[cpu].mapping.capacityKey required"]),
    (
        {"cpu": {"mapping": {"capacityKey": "x", "capacityMultiplier": "1"}}},
        [f"{ALLOCATABLE}[cpu].mapping.capacityKey not_found"],
    ),
    (
        {"cpu": {"mapping": {"capacityKey": "", "capacityMultiplier": "1"}}},
        [f"{ALLOCATABLE}[cpu].mapping.capacityKey invalid"],
    ),
    (
        {"cpu": {"mapping": {"capacityKey": "m", "capacityMultiplier": "-1"}}},
        [f"{ALLOCATABLE}[cpu].mapping.capacityMultiplier invalid"],
    ),
    ({"cpu": {"overhead": {}}}, [f"{ALLOCATABLE}[cpu].overhead invalid"]),
    (
        {"cpu": {"overhead": {"perPod": "-1", "perContainer": "-1"}}},
        [f"{ALLOCATABLE}[cpu].overhead.perPod invalid", f"{ALLOCATABLE}[cpu].overhead.perContainer invalid"],
    ),
]


@pytest.mark.parametrize(("resources", "causes"), ALLOCATABLE_ROWS)
def test_what_a_device_takes_from_its_node(resources, causes):
    taking = device(capacity={"m": {"value": "1"}}, nodeAllocatableResources=resources)
    assert create(SLICE, slice_(taking), context=EVERYTHING).causes == causes


def partition(**attributes):
    return device(consumesCounters=[counters()], attributes=attributes)


@pytest.mark.parametrize(
    ("attributes", "causes"),
    [
        ({"d.example.com/type": {"string": "big"}}, []),
        ({"type": {"string": "big"}}, []),  # the driver's own domain may be left out
        ({}, [f"{D}.attributes[d.example.com/type] required"]),
        ({"type": {"int": 1}}, [f"{D}.attributes[d.example.com/type] invalid"]),
    ],
)
def test_partitions_carry_the_attribute_that_tells_them_apart(attributes, causes):
    body = slice_(partition(**attributes), partitionTypeAttribute="d.example.com/type")
    assert create(SLICE, body, context=EVERYTHING).causes == causes


def test_a_partition_type_without_a_domain_is_said_once():
    body = slice_(partition(), partitionTypeAttribute="type")
    assert create(SLICE, body, context=EVERYTHING).causes == ["spec.partitionTypeAttribute invalid"]


@pytest.mark.parametrize(
    ("extra", "most"),
    [
        ({}, 128),
        ({"taints": [taint()]}, 64),
        ({"consumesCounters": [counters()]}, 64),
        ({"attributes": {"a": {"ints": [1]}}}, 64),
    ],
)
def test_how_many_devices_fit_into_a_slice(extra, most):
    """2.2: half as many once one of them uses something advanced."""
    for count in (most, most + 1):
        devices = [device(f"d{i}") for i in range(count)]
        devices[0].update(extra)
        expected = [] if count <= most else ["spec.devices too_many"]
        assert create(SLICE, slice_(*devices), context=EVERYTHING).causes == expected


def test_two_devices_of_one_name_are_told_by_the_name_alone():
    """2.6: unlike requests, of which the whole item is shown."""
    texts = create(SLICE, slice_(device("d"), device("d"))).texts
    assert texts == ['spec.devices[1]: Duplicate value: "d"']


def test_an_upper_case_driver_is_only_warned_about():
    warnings = SLICE.rules.warnings(slice_(driver="GPU.example.com"), None)
    assert len(warnings) == 1
    assert warnings[0].startswith("spec.driver: ")
    assert SLICE.rules.warnings(slice_(), None) == []


@pytest.mark.parametrize(
    ("path", "value", "field"),
    [
        ("spec.driver", "other.example.com", "spec.driver"),
        ("spec.pool.name", "other", "spec.pool.name"),
        ("spec.nodeName", "n2", "spec.nodeName"),
    ],
)
def test_what_identifies_a_slice_never_changes(path, value, field):
    old = create(SLICE, slice_()).hub
    assert update(SLICE, old, with_change(old, path, value)).causes == [f"{field} invalid"]


def test_a_node_name_cannot_be_exchanged_for_all_nodes():
    old = create(SLICE, slice_()).hub
    changed = slice_(nodeName=None, allNodes=True)
    assert update(SLICE, old, changed).texts == ["spec.nodeName: Invalid value: null: field is immutable"]


def test_the_other_ways_to_choose_nodes_may_be_exchanged():
    old = create(SLICE, slice_(nodeName=None, allNodes=True)).hub
    assert update(SLICE, old, slice_(nodeName=None, nodeSelector=on_node("n"))).causes == []


def test_the_pool_generation_may_go_down():
    old = create(SLICE, slice_()).hub
    assert update(SLICE, old, with_change(old, "spec.pool.generation", 0)).causes == []


def test_stored_capacity_and_taints_are_judged_again_only_when_they_change():
    """A slice may hold what an older server accepted."""
    stored = create(SLICE, slice_(device(taints=[taint()], capacity={"m": {"value": "1"}}))).hub
    stored["spec"]["devices"][0]["capacity"]["bad-"] = {"value": "1"}
    stored["spec"]["devices"][0]["taints"][0]["effect"] = "Unheard"

    assert update(SLICE, stored, with_change(stored, "spec.pool.generation", 2)).causes == []

    stricter = with_change(stored, "spec.devices.0.capacity.m.value", "2")
    assert update(SLICE, stored, stricter).causes == [f"{D}.capacity invalid"]
    renamed = with_change(stored, "spec.devices.0.name", "e")
    assert update(SLICE, stored, renamed).causes == [
        f"{D}.capacity invalid",
        f"{D}.taints[0].effect unsupported",
    ]


def test_declared_rules_answer_in_the_version_of_the_request():
    """2.1: hand-written ones always in v1."""
    body = slice_(
        {
            "name": "d",
            "basic": {"attributes": {"x": {}, "y": {"string": "s" * 65}}, "taints": [taint(effect="E")]},
        }
    )
    assert create(SLICE, body, "v1beta1").causes == [
        f"{D}.attributes[y].string too_long",
        f"{D}.basic.attributes[x] invalid",
        f"{D}.basic.taints[0].effect unsupported",
    ]


def test_taints_get_the_time_they_were_first_seen():
    """2.3: at decode time, so a PUT without the time stamps it anew."""
    stored = create(SLICE, slice_(device(taints=[taint()]))).hub
    assert stored["spec"]["devices"][0]["taints"][0]["timeAdded"] == "2026-11-15T08:00:00Z"
    given = taint(timeAdded="2026-01-01T02:00:00+01:00")
    stored = create(SLICE, slice_(device(taints=[given]))).hub
    assert stored["spec"]["devices"][0]["taints"][0]["timeAdded"] == "2026-01-01T01:00:00Z"


def test_numbers_that_typed_clients_insist_on_are_always_shown():
    counted = {"counterSet": "c", "counters": {"m": {}}}
    stored = create(
        SLICE, slice_(device(capacity={"m": {}}, consumesCounters=[counted]), pool={"name": "p"})
    ).hub
    assert stored["spec"]["pool"] == {"name": "p", "generation": 0, "resourceSliceCount": 0}
    assert stored["spec"]["devices"][0]["capacity"] == {"m": {"value": "0"}}
    assert stored["spec"]["devices"][0]["consumesCounters"][0]["counters"] == {"m": {"value": "0"}}


def test_a_key_that_cannot_be_valid_is_shown_shortened():
    (text,) = [
        error for error in create(SLICE, slice_(device(attributes={"a" * 200: {}}))).causes if "[a" in error
    ]
    assert text == f"{D}.attributes[{'a' * 47}...{'a' * 46}] invalid"


TERM = "spec.nodeSelector.nodeSelectorTerms[0]"


def need(key="k", operator="In", values=("v",)):
    return {"key": key, "operator": operator, "values": list(values)}


@pytest.mark.parametrize(
    ("requirement", "causes"),
    [
        (need(), []),
        (need(values=()), ["values required"]),
        (need(values=("-",)), ["values[0] invalid"]),
        (need(operator="NotIn"), []),
        (need(operator="Exists", values=()), []),
        (need(operator="Exists"), ["values forbidden"]),
        (need(operator="Gt", values=("1",)), []),
        (need(operator="Lt", values=("1", "2")), ["values required"]),
        (need(operator="Near"), ["operator invalid"]),
        (need(key="/k", operator="Exists", values=()), ["key invalid"]),
    ],
)
def test_expressions_of_a_node_selector(requirement, causes):
    selector = {"nodeSelectorTerms": [{"matchExpressions": [requirement]}]}
    written = create(SLICE, slice_(nodeName=None, nodeSelector=selector))
    assert written.causes == [f"{TERM}.matchExpressions[0].{cause}" for cause in causes]


@pytest.mark.parametrize(
    ("requirement", "causes"),
    [
        (need("metadata.name"), []),
        (need("metadata.name", values=("a", "b")), ["values required"]),
        (need("metadata.name", values=("N_",)), ["values[0] invalid"]),
        (need("metadata.name", "Gt"), ["operator invalid"]),
        (need("metadata.uid"), ["key invalid"]),
    ],
)
def test_fields_of_a_node_selector(requirement, causes):
    selector = {"nodeSelectorTerms": [{"matchFields": [requirement]}]}
    written = create(SLICE, slice_(nodeName=None, nodeSelector=selector))
    assert written.causes == [f"{TERM}.matchFields[0].{cause}" for cause in causes]
