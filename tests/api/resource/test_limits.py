"""Every limit of resource.k8s.io from both sides: the last that fits, and the first that does not."""

from dataclasses import dataclass
from typing import Any

import pytest

from allot.api import Fields, Gates, Kind, resource
from api.context import FakeContext
from api.resource.objects import (
    allocation,
    alternative,
    claim,
    class_,
    condition,
    device,
    either,
    opaque,
    pod_reference,
    report,
    request,
    result,
    rule,
    slice_,
)
from api.resource.writes import ALL_GATES, create, write_status

EVERYTHING = FakeContext(gates=Gates(ALL_GATES))
SLICE, CLAIM = resource.RESOURCE_SLICE, resource.RESOURCE_CLAIM
CLASS, RULE = resource.DEVICE_CLASS, resource.DEVICE_TAINT_RULE
TRUE = {"cel": {"expression": "true"}}
MATCH = {"matchAttribute": "d.example.com/a"}


@dataclass
class Limit:
    most: int
    kind: Kind
    make: Any  # a number -> the body or, for a status, the status
    field: str
    old: Fields | None = None

    def causes(self, count: int) -> list[str]:
        if self.old is not None:
            stored = create(self.kind, self.old).hub
            return write_status(self.kind, stored, self.make(count), context=EVERYTHING).causes
        return create(self.kind, self.make(count), context=EVERYTHING).causes


def many(count, make):
    return [make(i) for i in range(count)]


def counters(count):
    return {f"m{i}": {"value": "1"} for i in range(count)}


def deriving(count):
    names = many(count, lambda i: f"d.example.com/a{i}")
    derived = [{"name": name, "expression": "cost 1"} for name in names]
    return claim(request(derivedAttributes=derived), constraints=[{"matchAttribute": name} for name in names])


def costing(cost):
    return claim(
        request(derivedAttributes=[{"name": "d.example.com/a", "expression": f"cost {cost}"}]),
        constraints=[MATCH],
    )


def valued(count):
    policy = {"validValues": many(count, lambda i: str(i + 1)), "default": "1"}
    return slice_(
        device(capacity={"m": {"value": "99", "requestPolicy": policy}}, allowMultipleAllocations=True)
    )


def binding(**lists):
    return slice_(device(**{"bindingConditions": ["a"], "bindingFailureConditions": ["b"], **lists}))


def parameters(size):
    return opaque(a="x" * (size - len('{"a":""}')))


def reporting(**more):
    return {"allocation": allocation(), "devices": [report(**more)]}


def networked(**data):
    return reporting(networkData=data)


def sets(count):
    return slice_(
        devices=None, sharedCounters=many(count, lambda i: {"name": f"c{i}", "counters": counters(1)})
    )


def consuming(count):
    return slice_(
        device(consumesCounters=many(count, lambda i: {"counterSet": f"c{i}", "counters": counters(1)}))
    )


D = "spec.devices[0]"
R = "spec.devices.requests[0]"
S = "status.devices[0]"

LIMITS = {
    "driver name": Limit(63, SLICE, lambda n: slice_(driver="d" * n), "spec.driver"),
    "pool name": Limit(
        253, SLICE, lambda n: slice_(pool={"name": "p" * n, "resourceSliceCount": 1}), "spec.pool.name"
    ),
    "identifier": Limit(
        32, SLICE, lambda n: slice_(device(attributes={"a" * n: {"int": 1}})), f"{D}.attributes"
    ),
    "domain": Limit(
        63, SLICE, lambda n: slice_(device(attributes={"d" * n + "/a": {"int": 1}})), f"{D}.attributes"
    ),
    "devices": Limit(128, SLICE, lambda n: slice_(*many(n, lambda i: device(f"d{i}"))), "spec.devices"),
    "attributes": Limit(
        32, SLICE, lambda n: slice_(device(attributes={f"a{i}": {"int": 1} for i in range(n)})), D
    ),
    "values": Limit(48, SLICE, lambda n: slice_(device(attributes={"a": {"ints": [1] * n}})), D),
    "string": Limit(
        64,
        SLICE,
        lambda n: slice_(device(attributes={"a": {"string": "x" * n}})),
        f"{D}.attributes[a].string",
    ),
    "taints": Limit(
        16, SLICE, lambda n: slice_(device(taints=[{"key": "k", "effect": "None"}] * n)), f"{D}.taints"
    ),
    "counter sets": Limit(8, SLICE, sets, "spec.sharedCounters"),
    "counters": Limit(
        32,
        SLICE,
        lambda n: slice_(devices=None, sharedCounters=[{"name": "c", "counters": counters(n)}]),
        "spec.sharedCounters[0].counters",
    ),
    "consumptions": Limit(2, SLICE, consuming, f"{D}.consumesCounters"),
    "consumed counters": Limit(
        32,
        SLICE,
        lambda n: slice_(device(consumesCounters=[{"counterSet": "c", "counters": counters(n)}])),
        f"{D}.consumesCounters[0].counters",
    ),
    "binding conditions": Limit(
        4, SLICE, lambda n: binding(bindingConditions=many(n, "c{}".format)), f"{D}.bindingConditions"
    ),
    "binding failures": Limit(
        4,
        SLICE,
        lambda n: binding(bindingFailureConditions=many(n, "c{}".format)),
        f"{D}.bindingFailureConditions",
    ),
    "valid values": Limit(10, SLICE, valued, f"{D}.capacity[m].requestPolicy.validValues"),
    "requests": Limit(
        32, CLAIM, lambda n: claim(*many(n, lambda i: request(f"r{i}"))), "spec.devices.requests"
    ),
    "alternatives": Limit(
        8,
        CLAIM,
        lambda n: claim(either("r", *many(n, lambda i: alternative(f"s{i}")))),
        f"{R}.firstAvailable",
    ),
    "selectors": Limit(32, CLAIM, lambda n: claim(request(selectors=[TRUE] * n)), f"{R}.exactly.selectors"),
    "constraints": Limit(32, CLAIM, lambda n: claim(constraints=[MATCH] * n), "spec.devices.constraints"),
    "config": Limit(32, CLAIM, lambda n: claim(config=[opaque()] * n), "spec.devices.config"),
    "expression": Limit(
        10_240,
        CLAIM,
        lambda n: claim(request(selectors=[{"cel": {"expression": "x" * n}}])),
        f"{R}.exactly.selectors[0].cel.expression",
    ),
    "parameters": Limit(
        10_240, CLAIM, lambda n: claim(config=[parameters(n)]), "spec.devices.config[0].opaque.parameters"
    ),
    "derived attributes": Limit(32, CLAIM, deriving, f"{R}.exactly.derivedAttributes"),
    "derived cost": Limit(1_000_000, CLAIM, costing, "spec.devices"),
    "class selectors": Limit(32, CLASS, lambda n: class_(selectors=[TRUE] * n), "spec.selectors"),
    "class config": Limit(32, CLASS, lambda n: class_(config=[opaque()] * n), "spec.config"),
    "results": Limit(
        32,
        CLAIM,
        lambda n: {"allocation": allocation(*many(n, lambda i: result(f"d{i}")))},
        "status.allocation.devices.results",
        claim(),
    ),
    "allocation config": Limit(
        64,
        CLAIM,
        lambda n: {"allocation": {"devices": {"config": [{"source": "FromClass", **opaque()}] * n}}},
        "status.allocation.devices.config",
        claim(),
    ),
    "reserved for": Limit(
        256,
        CLAIM,
        lambda n: {"allocation": {}, "reservedFor": many(n, lambda i: pod_reference(str(i)))},
        "status.reservedFor",
        claim(),
    ),
    "conditions": Limit(
        8,
        CLAIM,
        lambda n: reporting(conditions=many(n, lambda i: condition(f"C{i}"))),
        f"{S}.conditions",
        claim(),
    ),
    "reason": Limit(
        1024,
        CLAIM,
        lambda n: reporting(conditions=[condition(reason="R" * n)]),
        f"{S}.conditions[0].reason",
        claim(),
    ),
    "message": Limit(
        32_768,
        CLAIM,
        lambda n: reporting(conditions=[condition(message="m" * n)]),
        f"{S}.conditions[0].message",
        claim(),
    ),
    "data": Limit(
        10_240, CLAIM, lambda n: reporting(data=parameters(n)["opaque"]["parameters"]), f"{S}.data", claim()
    ),
    "addresses": Limit(
        16, CLAIM, lambda n: networked(ips=many(n, "10.0.0.{}/24".format)), f"{S}.networkData.ips", claim()
    ),
    "interface": Limit(
        256, CLAIM, lambda n: networked(interfaceName="i" * n), f"{S}.networkData.interfaceName", claim()
    ),
    "hardware address": Limit(
        128, CLAIM, lambda n: networked(hardwareAddress="h" * n), f"{S}.networkData.hardwareAddress", claim()
    ),
    "rule conditions": Limit(
        8, RULE, lambda n: {"conditions": many(n, lambda i: condition(f"C{i}"))}, "status.conditions", rule()
    ),
}


@pytest.mark.parametrize("limit", LIMITS.values(), ids=LIMITS)
def test_the_last_that_fits_and_the_first_that_does_not(limit):
    assert limit.causes(limit.most) == []
    refused = limit.causes(limit.most + 1)
    assert refused
    assert refused[0].split()[0] == limit.field


def test_bytes_are_counted_and_not_letters():
    assert create(SLICE, slice_(device(attributes={"a": {"string": "é" * 32}}))).causes == []
    assert create(SLICE, slice_(device(attributes={"a": {"string": "é" * 33}}))).causes != []
