"""Fields behind gates that are off are dropped in silence, unless they are in use."""

import pytest

from allot.api import Gates, resource
from api.context import FakeContext
from api.resource.objects import (
    allocation,
    alternative,
    claim,
    class_,
    device,
    either,
    request,
    result,
    slice_,
    with_change,
)
from api.resource.writes import ALL_GATES, create, update, write_status

SHARE = "01234567-89ab-cdef-0123-456789abcdef"
COUNTERS = [{"counterSet": "c", "counters": {"m": {"value": "1"}}}]
GROUPED = [{**COUNTERS[0], "compatibilityGroups": ["a"]}]
DERIVED = [{"name": "d.example.com/a", "expression": "cost 1"}]


def off(*names):
    """Everything on but these."""
    return FakeContext(gates=Gates({**ALL_GATES, **dict.fromkeys(names, False)}))


ON = off()

SLICE_ROWS = [
    (("DRADeviceTaints", "DRADeviceTaintRules"), "taints", [{"key": "k", "effect": "None"}]),
    (("DRADeviceBindingConditions",), "bindsToNode", True),
    (("DRAConsumableCapacity",), "allowMultipleAllocations", True),
    (("DRANodeAllocatableResources",), "nodeAllocatableResources", {"cpu": {"overhead": {"perPod": "1"}}}),
    (
        ("DRAPartitionableDevices", "DRAPartitionableDevicesType", "DRADeviceCompatibilityGroups"),
        "consumesCounters",
        COUNTERS,
    ),
]


@pytest.mark.parametrize(("gates", "field", "value"), SLICE_ROWS)
def test_a_devices_gated_field_comes_and_goes_with_its_gate(gates, field, value):
    kind, body, context = resource.RESOURCE_SLICE, slice_(device(**{field: value})), off(*gates)
    used, unused = create(kind, body, context=ON).hub, create(kind, body, context=context).hub
    assert field in used["spec"]["devices"][0]
    assert field not in unused["spec"]["devices"][0]
    assert field in update(kind, used, body, context=context).hub["spec"]["devices"][0]
    assert field not in update(kind, unused, body, context=context).hub["spec"]["devices"][0]


def test_compatibility_groups_leave_the_rest_of_the_consumption():
    body = slice_(device(consumesCounters=GROUPED))
    hub = create(resource.RESOURCE_SLICE, body, context=off("DRADeviceCompatibilityGroups")).hub
    assert hub["spec"]["devices"][0]["consumesCounters"] == COUNTERS


def test_compatibility_groups_in_use_stay_through_off_and_on():
    kind, body = resource.RESOURCE_SLICE, slice_(device(consumesCounters=GROUPED))
    hub = create(kind, body, context=ON).hub
    for context in (off("DRADeviceCompatibilityGroups"), ON):
        hub = update(kind, hub, body, context=context).hub
        assert hub["spec"]["devices"][0]["consumesCounters"] == GROUPED


def test_request_policies_go_with_consumable_capacity():
    capacity = {"m": {"value": "1", "requestPolicy": {"default": "1"}}}
    body = slice_(device(capacity=capacity, allowMultipleAllocations=True))
    hub = create(resource.RESOURCE_SLICE, body, context=off("DRAConsumableCapacity")).hub
    assert hub["spec"]["devices"] == [{"name": "d", "capacity": {"m": {"value": "1"}}}]


def test_an_attribute_with_only_a_list_is_left_empty_and_then_refused():
    """The exception that upstream makes."""
    body = slice_(device(attributes={"a": {"ints": [1]}}))
    written = create(resource.RESOURCE_SLICE, body)
    assert written.causes == ["spec.devices[0].attributes[a] invalid"]


@pytest.mark.parametrize(
    ("gate", "field", "value"),
    [
        ("DRAOptionalNodeOperations", "skipNodeOperations", ["*"]),
        ("DRAPartitionableDevicesType", "partitionTypeAttribute", "d.example.com/a"),
    ],
)
def test_a_slices_own_gated_fields(gate, field, value):
    assert (
        field not in create(resource.RESOURCE_SLICE, slice_(**{field: value}), context=off(gate)).hub["spec"]
    )


CLAIM_ROWS = [
    (("DRADeviceTaints", "DRADeviceTaintRules"), "tolerations", [{"operator": "Exists"}]),
    (("DRAConsumableCapacity",), "capacity", {"requests": {"m": "1"}}),
    (("DRADerivedAttributes",), "derivedAttributes", DERIVED),
]


@pytest.mark.parametrize(("gates", "field", "value"), CLAIM_ROWS)
def test_a_requests_gated_field_comes_and_goes_with_its_gate(gates, field, value):
    body = claim(request("a", **{field: value}), either("b", alternative(**{field: value})))
    used = create(resource.RESOURCE_CLAIM, body, context=ON).hub
    unused = create(resource.RESOURCE_CLAIM, body, context=off(*gates)).hub
    for hub, present in ((used, True), (unused, False)):
        exact, other = hub["spec"]["devices"]["requests"]
        assert (field in exact["exactly"]) is present
        assert (field in other["firstAvailable"][0]) is present
    assert update(resource.RESOURCE_CLAIM, used, used, context=off(*gates)).causes == []


@pytest.mark.parametrize(
    ("gates", "field", "value"),
    [
        (("DRAConsumableCapacity",), "shareID", SHARE),
        (("DRAConsumableCapacity",), "consumedCapacity", {"m": "1"}),
        (("DRADeviceBindingConditions",), "bindingConditions", ["a"]),
        (("DRAOptionalNodeOperations",), "skipNodeOperations", ["*"]),
    ],
)
def test_a_results_gated_field_goes_with_its_gate(gates, field, value):
    kind = resource.RESOURCE_CLAIM
    old = create(kind, claim()).hub
    status = {"allocation": allocation(result(**{field: value}))}
    hub = write_status(kind, old, status, context=off(*gates)).hub
    assert field not in hub["status"]["allocation"]["devices"]["results"][0]


def test_the_status_of_a_claim_whose_spec_uses_a_gate_keeps_what_belongs_to_it():
    """The gate was on when the claim was made: its allocation may still say how much it consumes."""
    kind, body = resource.RESOURCE_CLAIM, claim(request("a", capacity={"requests": {"m": "1"}}))
    old = create(kind, body, context=ON).hub
    status = {"allocation": allocation(result(request="a", shareID=SHARE, consumedCapacity={"m": "1"}))}
    hub = write_status(kind, old, status, context=off("DRAConsumableCapacity")).hub
    assert hub["status"]["allocation"]["devices"]["results"][0]["shareID"] == SHARE


def test_distinct_constraints_go_with_consumable_capacity():
    body = claim(request(), constraints=[{"distinctAttribute": "d.example.com/a"}])
    written = create(resource.RESOURCE_CLAIM, body, context=off("DRAConsumableCapacity"))
    assert written.causes == ["spec.devices.constraints[0].matchAttribute required"]


def test_extended_resource_names_go_with_their_gate():
    kind, body, gate = (
        resource.DEVICE_CLASS,
        class_(extendedResourceName="example.com/gpu"),
        "DRAExtendedResource",
    )
    used = create(kind, body).hub
    assert create(kind, body, context=off(gate)).hub["spec"] == {}
    other = with_change(used, "spec.extendedResourceName", "example.com/other")
    assert update(kind, used, other, context=off(gate)).hub == other


def test_servers_with_other_gates_take_turns_on_one_table():
    """What is off is worked out once for each set of gates, and a process may have several."""
    kind, body = resource.RESOURCE_SLICE, slice_(device(bindsToNode=True))
    for _ in range(2):
        for context, is_kept in ((ON, True), (off("DRADeviceBindingConditions"), False)):
            stored = create(kind, body, context=context).hub
            assert ("bindsToNode" in stored["spec"]["devices"][0]) is is_kept
