"""D4 as a checker reads it: what is published, what is asked, and who got what."""

import copy
from typing import Any

import msgspec
import pytest

from allot.api import Object
from allot.sim.checkers import AsAsked
from allot.sim.recording import Seen

DRIVER = "gpu.example.com"
CLASS = {
    "metadata": {"name": "gpu"},
    "spec": {"selectors": [{"cel": {"expression": f'device.driver == "{DRIVER}"'}}]},
}


class World:
    """Objects told one after another to a checker, which must find exactly what is expected."""

    def __init__(self, lag: int = 0) -> None:
        self.checker = AsAsked(lag)
        self.revision = 0

    def tell(self, resource: str, fields: dict[str, Any], type: str = "ADDED") -> list[str]:
        self.revision += 1
        told = copy.deepcopy(fields)
        told["metadata"] = {"uid": f"uid-{told['metadata']['name']}", **told["metadata"]}
        told["metadata"]["resourceVersion"] = str(self.revision)
        seen = Seen(self.revision, resource, type, Object(msgspec.json.encode(told)))
        return list(self.checker.see(seen))

    def furnish(self, *devices: dict[str, Any], node: str = "n1", **spec: Any) -> None:
        self.tell("deviceclasses", CLASS)
        self.tell("nodes", {"metadata": {"name": node, "labels": {"zone": "a"}}})
        self.publish(*devices, node=node, **spec)

    def publish(self, *devices: dict[str, Any], node: str = "n1", type: str = "ADDED", **spec: Any) -> None:
        where = spec or {"nodeName": node}
        fields = {"driver": DRIVER, "pool": {"name": node}, "devices": [*devices], **where}
        self.tell("resourceslices", {"metadata": {"name": f"{node}-slice"}, "spec": fields}, type)

    def allocate(self, spec: dict[str, Any], *results: dict[str, Any], node: str | None = "n1") -> list[str]:
        claim = {"metadata": {"name": "c", "namespace": "d"}, "spec": {"devices": spec}}
        assert self.tell("resourceclaims", claim) == []
        allocation: dict[str, Any] = {"devices": {"results": [*results]}}
        if node:
            name = {"key": "metadata.name", "operator": "In", "values": [node]}
            allocation["nodeSelector"] = {"nodeSelectorTerms": [{"matchFields": [name]}]}
        return self.tell("resourceclaims", {**claim, "status": {"allocation": allocation}}, "MODIFIED")


def gpu(name: str, **more: Any) -> dict[str, Any]:
    attributes = {"model": {"string": "a100"}, "root": {"string": "r0"}, **more.pop("attributes", {})}
    return {"name": name, "attributes": attributes, "capacity": {"memory": {"value": "80Gi"}}, **more}


def wants(name: str = "r", **exactly: Any) -> dict[str, Any]:
    return {"name": name, "exactly": {"deviceClassName": "gpu", "count": 1, **exactly}}


def got(device: str, request: str = "r", pool: str = "n1", **more: Any) -> dict[str, Any]:
    return {"request": request, "driver": DRIVER, "pool": pool, "device": device, **more}


def test_what_was_asked_for_is_right():
    world = World()
    world.furnish(gpu("g0"), gpu("g1"))
    assert world.allocate({"requests": [wants(count=2)]}, got("g0"), got("g1")) == []


@pytest.mark.parametrize(
    ("spec", "results", "complaint"),
    [
        ({"requests": [wants(count=2)]}, [got("g0")], "got 1 of 2 devices"),
        ({"requests": [wants()]}, [got("g0"), got("g1")], "got 2 of 1 devices"),
        ({"requests": [wants(count=2)]}, [got("g0"), got("g0")], "a device twice"),
        ({"requests": [wants()]}, [got("g7")], "is not published"),
        ({"requests": [wants()]}, [got("g0", request="other")], "does not ask for"),
        ({"requests": [wants(), wants("s")]}, [got("g0")], "request s got no device"),
        ({"requests": [wants(deviceClassName="nic")]}, [got("g0")], "class nic, which does not exist"),
        (
            {
                "requests": [
                    wants(
                        selectors=[{"cel": {"expression": f'device.attributes["{DRIVER}"].model == "h100"'}}]
                    )
                ]
            },
            [got("g0")],
            "not selected by the request",
        ),
        ({"requests": [wants()]}, [got("tainted")], "taint broken, which is not tolerated"),
        ({"requests": [wants(allocationMode="All")]}, [got("g0")], "asks for all"),
        (
            {"requests": [wants(capacity={"requests": {"memory": "96Gi"}})]},
            [got("g0")],
            "80Gi of memory, not 96Gi",
        ),
        (
            {"requests": [wants(count=2)], "constraints": [{"matchAttribute": f"{DRIVER}/root"}]},
            [got("g0"), got("g1")],
            "matchAttribute",
        ),
        (
            {"requests": [wants(count=2)], "constraints": [{"distinctAttribute": f"{DRIVER}/model"}]},
            [got("g0"), got("g1")],
            "distinctAttribute",
        ),
        ({"requests": [wants()]}, [got("g0", shareID="x")], "given as a share"),
        (
            {
                "requests": [
                    {
                        "name": "r",
                        "firstAvailable": [
                            {"name": "a", "deviceClassName": "gpu", "count": 1},
                            {"name": "b", "deviceClassName": "gpu", "count": 1},
                        ],
                    }
                ]
            },
            [got("g0", request="r/a"), got("g1", request="r/b")],
            "several alternatives",
        ),
    ],
)
def test_what_was_not_asked_for_is_found(spec, results, complaint):
    world = World()
    taints = [{"key": "broken", "effect": "NoSchedule"}]
    world.furnish(gpu("g0"), gpu("g1", attributes={"root": {"string": "r1"}}), gpu("tainted", taints=taints))
    found = world.allocate(spec, *results)
    assert found and found[0].startswith("D4: claim c: "), found
    assert complaint in found[0]


def test_a_device_of_another_node_is_found():
    world = World()
    world.furnish(gpu("g0"))
    (found,) = world.allocate({"requests": [wants()]}, got("g0"), node="n2")
    assert "cannot be reached from n2" in found


def test_no_node_selector_needs_devices_of_every_node():
    world = World()
    world.furnish(gpu("g0"))
    world.tell("nodes", {"metadata": {"name": "n2"}})
    (found,) = world.allocate({"requests": [wants()]}, got("g0"), node=None)
    assert "cannot be reached from n2" in found
    everywhere = World()
    everywhere.furnish(gpu("g0"), allNodes=True)
    assert everywhere.allocate({"requests": [wants()]}, got("g0"), node=None) == []


def test_a_tolerated_taint_is_none_and_a_rule_can_add_one():
    tolerations = [{"key": "broken", "operator": "Exists"}]
    rule = {
        "metadata": {"name": "rule"},
        "spec": {"deviceSelector": {"device": "g0"}, "taint": {"key": "broken", "effect": "NoExecute"}},
    }
    world = World()
    world.furnish(gpu("g0"))
    world.tell("devicetaintrules", rule)
    assert world.allocate({"requests": [wants(tolerations=tolerations)]}, got("g0")) == []
    other = World()
    other.furnish(gpu("g0"))
    other.tell("devicetaintrules", rule)
    (found,) = other.allocate({"requests": [wants()]}, got("g0"))
    assert "broken" in found


def test_a_form_that_the_device_had_while_the_claim_waited_counts():
    """The scheduler decided before the driver changed the device, and wrote after it."""
    claim = {"metadata": {"name": "c", "namespace": "d"}, "spec": {"devices": {"requests": [wants()]}}}
    world = World()
    world.furnish(gpu("g0"))
    world.tell("resourceclaims", claim)
    world.publish(gpu("g0", taints=[{"key": "broken", "effect": "NoSchedule"}]), type="MODIFIED")
    assert world.allocate({"requests": [wants()]}, got("g0")) == []


def test_a_form_that_was_gone_before_the_claim_came_does_not_count_unless_it_lags():
    for lag, wrong in ((0, 1), (10, 0)):
        world = World(lag)
        world.furnish(gpu("g0"))
        world.publish(type="DELETED")
        assert len(world.allocate({"requests": [wants()]}, got("g0"))) == wrong


def test_list_attributes_match_by_a_common_value():
    spec = {"requests": [wants(count=2)], "constraints": [{"matchAttribute": f"{DRIVER}/links"}]}
    world = World()
    world.furnish(
        gpu("g0", attributes={"links": {"strings": ["a", "b"]}}),
        gpu("g1", attributes={"links": {"strings": ["b", "c"]}}),
    )
    assert world.allocate(spec, got("g0"), got("g1")) == []


def test_a_share_is_as_large_as_it_was_asked_to_be():
    nic = gpu("nic", allowMultipleAllocations=True)
    asked = {"requests": [wants(capacity={"requests": {"memory": "10Gi"}})]}
    world = World()
    world.furnish(nic)
    assert world.allocate(asked, got("nic", shareID="s", consumedCapacity={"memory": "10Gi"})) == []
    other = World()
    other.furnish(nic)
    (found,) = other.allocate(asked, got("nic", shareID="s", consumedCapacity={"memory": "5Gi"}))
    assert "5Gi of memory, not 10Gi" in found


def test_a_pod_is_where_its_claim_is():
    world = World()
    world.furnish(gpu("g0"))
    world.allocate({"requests": [wants()]}, got("g0"))
    pod = {
        "metadata": {"name": "p", "namespace": "d"},
        "spec": {"nodeName": "n2", "resourceClaims": [{"name": "x", "resourceClaimName": "c"}]},
    }
    (found,) = world.tell("pods", pod)
    assert "pod p is on n2" in found
    there = {**pod, "metadata": {"name": "q", "namespace": "d"}}
    there["spec"] = {**pod["spec"], "nodeName": "n1"}
    assert world.tell("pods", there) == []
