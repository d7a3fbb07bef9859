"""What `kubectl get` shows."""

from allot.api import resource
from api.context import NOW
from api.resource.objects import (
    allocation,
    alternative,
    claim,
    device,
    either,
    pod_reference,
    request,
    result,
    rule,
    slice_,
)

CLAIM = resource.RESOURCE_CLAIM


def row(kind, fields, wide=False):
    cells = kind.row(
        {**fields, "metadata": {"creationTimestamp": "2026-11-15T07:55:00Z", **fields["metadata"]}}, NOW
    )
    shown = zip(kind.columns, cells, strict=True)
    return {column.name: cell for column, cell in shown if wide or column.priority == 0}


def test_the_state_of_a_claim_lists_whatever_applies():
    made = claim()
    assert row(CLAIM, made) == {"Name": "c", "State": "pending", "Age": "5m"}
    made["status"] = {"allocation": allocation()}
    assert row(CLAIM, made)["State"] == "allocated"
    made["status"]["reservedFor"] = [pod_reference()]
    made["metadata"]["deletionTimestamp"] = "2026-11-15T08:00:00Z"
    assert row(CLAIM, made)["State"] == "deleted,allocated,reserved"


def test_a_wide_claim_shows_devices_node_class_and_pods():
    made = claim(request("a", deviceClassName="gpu"), either("b", alternative(deviceClassName="nic")))
    assert row(CLAIM, made, wide=True) == {
        "Name": "c", "State": "pending", "Age": "5m",
        "Devices": "<none>", "Node": "<none>", "Class": "gpu,nic", "Pods": "<none>",
    }  # fmt: skip
    listed = [result(f"gpu-{i}", request="a") for i in range(4)] + [
        result("x", request="a", adminAccess=True)
    ]
    made["status"] = {"allocation": allocation(*listed, node="n1"), "reservedFor": [pod_reference()]}
    shown = row(CLAIM, made, wide=True)
    assert shown["Devices"] == "d.example.com/p/gpu-0,d.example.com/p/gpu-1,d.example.com/p/gpu-2 + 2 more..."
    assert (shown["Node"], shown["Pods"]) == ("n1", "pod")


def test_a_claim_for_the_network_is_usable_anywhere():
    made = {**claim(), "status": {"allocation": allocation()}}
    assert row(CLAIM, made, wide=True)["Node"] == "<any>"


def test_slices_and_rules():
    assert row(resource.RESOURCE_SLICE, slice_(device())) == {
        "Name": "s", "Node": "n1", "Driver": "d.example.com", "Pool": "p", "Age": "5m",
    }  # fmt: skip
    assert row(resource.RESOURCE_SLICE, slice_(nodeName=None))["Node"] == ""
    assert row(resource.DEVICE_TAINT_RULE, rule(timeAdded="2026-11-15T07:00:00Z", value="v")) == {
        "Name": "r", "Key": "example.com/broken", "Value": "v", "Effect": "NoExecute", "TimeAdded": "60m",
        "Age": "5m",
    }  # fmt: skip


def test_slices_are_selected_by_node_driver_and_pool():
    select = resource.RESOURCE_SLICE.selectable
    made = slice_()
    assert {name: read(made) for name, read in select.items()} == {
        "spec.nodeName": "n1",
        "spec.driver": "d.example.com",
        "spec.pool.name": "p",
    }
    assert select["spec.nodeName"](slice_(nodeName=None, allNodes=True)) == ""
    assert not resource.RESOURCE_SLICE.selects_namespace
