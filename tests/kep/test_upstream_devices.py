"""What upstream asks of devices: alternatives, partitions, shares, taints and pools.

Names and coverage are in docs/upstream-tests.md.
"""

from functools import partial

import pytest

from allot.scheduler.plugins.devices import DynamicResources
from kep.cluster import Place, to_a_cluster
from kep.objects import NS, claim_with, direct, with_claims
from scheduler.cluster import slice_of

CLAIMS = "resourceclaims"
WANTED = {"name": "r", "exactly": {"deviceClassName": "gpu"}}


async def results(here: Place, claim: str):
    found = await here.resource(CLAIMS).get(claim, NS)
    return found.fields["status"]["allocation"]["devices"]["results"]


async def one_node(here: Place, count: int = 1) -> None:
    """The class `gpu`, and so many devices of it."""
    await here.device_class()
    await here.node("n1")
    await here.devices("n1", count)


# -- alternatives ----------------------------------------------------------------------------------


async def either(here: Place, *drivers: str) -> None:
    """A claim that prefers the first of these kinds of devices, each behind a class of its own."""
    for at, driver in enumerate(drivers):
        await here.device_class(f"class-{at}", driver=driver)
    options = [{"name": f"option-{at}", "deviceClassName": f"class-{at}"} for at in range(len(drivers))]
    spec = {"devices": {"requests": [{"name": "r", "firstAvailable": options}]}}
    await here.put(claim_with("c", spec))


@to_a_cluster()
async def test_the_first_alternative_that_can_be_had_is_taken(here: Place):
    await either(here, "nobody.example.com", "gpu.example.com", "nic.example.com")
    await here.node("n1")
    await here.devices("n1")
    await here.devices(
        "n1", driver="nic.example.com", pool={"name": "nics", "generation": 1, "resourceSliceCount": 1}
    )
    await here.put(with_claims("p", direct("c")))
    await here.settled()
    (result,) = await results(here, "c")
    assert result["request"] == "r/option-1"


@to_a_cluster()
async def test_the_node_that_serves_the_first_choice_is_preferred(here: Place):
    """PrioritizedListScoring."""
    await either(here, "gpu.example.com", "nic.example.com")
    for name in ("n1", "n2", "n3"):
        await here.node(name)
        driver = "gpu.example.com" if name == "n2" else "nic.example.com"
        await here.devices(name, driver=driver)
    await here.put(with_claims("p", direct("c")))
    assert await here.bound("p") == ["n2"]


@pytest.mark.parametrize("version", ["v1beta1", "v1beta2"])
@to_a_cluster()
async def test_claims_of_older_versions_are_scheduled(here: Place, version: str):
    """A simple claim, and one with alternatives, which is written alike in all versions."""
    await one_node(here, count=2)
    exactly = {"deviceClassName": "gpu"}
    simple = {"name": "r", **(exactly if version == "v1beta1" else {"exactly": exactly})}
    listed = {"name": "r", "firstAvailable": [{"name": "s", **exactly}]}
    claims = here.client.resource("resource.k8s.io", version, CLAIMS)
    for name, request in (("simple", simple), ("listed", listed)):
        await claims.create({"metadata": {"name": name}, "spec": {"devices": {"requests": [request]}}}, NS)
        await here.put(with_claims(f"p-{name}", direct(name)))
        await here.settled(f"p-{name}")


# -- partitions, shares, taints ----------------------------------------------------------------------


def partitioned(counters: str = "2", **more):
    """Two slices of one pool: counters for two halves, and a whole card with its halves."""
    pool = {"name": "n1", "generation": 1, "resourceSliceCount": 2}

    def drawing(name: str, amount: str):
        draws = {"counterSet": "card", "counters": {"halves": {"value": amount}}}
        return {"name": name, "consumesCounters": [draws | more.get(name, {})]}

    sets = slice_of(
        "n1", [], pool=pool, sharedCounters=[{"name": "card", "counters": {"halves": {"value": counters}}}]
    )
    del sets["spec"]["devices"]
    sets["metadata"]["name"] += "-counters"
    devices = [drawing("whole", "2"), drawing("half-0", "1"), drawing("half-1", "1")]
    return sets, slice_of("n1", devices, pool=pool)


def chosen(device: str):
    """By an attribute: a selector does not see a device's name."""
    return [{"cel": {"expression": f"device.attributes['gpu.example.com'].name == '{device}'"}}]


@to_a_cluster()
async def test_partitions_consume_counters_and_give_them_back(here: Place):
    """Two halves leave nothing for the whole; when they go, it can be had."""
    await here.device_class()
    await here.node("n1")
    counters, devices = partitioned()
    for one in devices["spec"]["devices"]:
        one["attributes"] = {"name": {"string": one["name"]}}
    await here.put(counters, devices)
    for name in ("half-0", "half-1", "whole"):
        await here.claim(name, selectors=chosen(name))
        await here.put(with_claims(f"p-{name}", direct(name)))
        if name != "whole":
            await here.settled(f"p-{name}")
    await here.why_not("p-whole")
    await here.delete_pod("p-half-0")
    await here.quiet()
    assert not await here.node_of("p-whole")
    await here.delete_pod("p-half-1")
    await here.settled("p-whole")


@to_a_cluster(DRADeviceCompatibilityGroups=True)
async def test_partitions_of_groups_that_do_not_go_together(here: Place):
    await here.device_class()
    await here.node("n1")
    groups = {"half-0": {"compatibilityGroups": ["a"]}, "half-1": {"compatibilityGroups": ["b"]}}
    groups["whole"] = {"compatibilityGroups": ["a"]}
    counters, devices = partitioned("4", **groups)
    for one in devices["spec"]["devices"]:
        one["attributes"] = {"name": {"string": one["name"]}}
    await here.put(counters, devices)
    for name in ("half-0", "half-1", "whole"):
        await here.claim(name, selectors=chosen(name))
        await here.put(with_claims(f"p-{name}", direct(name)))
        if name != "half-1":
            await here.settled(f"p-{name}")
        else:
            await here.why_not(f"p-{name}")


@to_a_cluster()
async def test_a_device_is_shared_until_its_capacity_is_used_up(here: Place):
    await here.device_class()
    await here.node("n1")
    policy = {"default": "1", "validRange": {"min": "1"}}
    shared = {
        "name": "nic",
        "allowMultipleAllocations": True,
        "capacity": {"bandwidth": {"value": "10", "requestPolicy": policy}},
    }
    await here.put(slice_of("n1", [shared]))
    for name, amount in (("six", "6"), ("four", "4"), ("one", "1")):
        await here.claim(name, capacity={"requests": {"bandwidth": amount}})
        await here.put(with_claims(name, direct(name)))
        if name != "one":
            await here.settled(name)
    await here.why_not("one")
    consumed = [(await results(here, name))[0] for name in ("six", "four")]
    assert [one["consumedCapacity"]["bandwidth"] for one in consumed] == ["6", "4"]
    assert len({one["shareID"] for one in consumed}) == 2
    await here.delete_pod("four")
    await here.settled("one")


@pytest.mark.parametrize("effect", ["NoSchedule", "NoExecute"])
@to_a_cluster()
async def test_a_taint_keeps_pods_away_that_do_not_tolerate_it(here: Place, effect: str):
    await here.device_class()
    await here.node("n1")
    taint = {"key": "example.com/broken", "value": "yes", "effect": effect}
    await here.put(slice_of("n1", [{"name": "gpu-0", "taints": [taint]}]))
    await here.claim("plain")
    await here.put(with_claims("p", direct("plain")))
    assert await here.why_not()
    tolerated = {"key": "example.com/broken", "operator": "Exists", "effect": effect}
    await here.claim("brave", tolerations=[tolerated])
    await here.put(with_claims("q", direct("brave")))
    await here.settled("q")
    assert not await here.node_of("p")


@pytest.mark.parametrize("version", ["v1", "v1beta2"])
@to_a_cluster()
async def test_a_taint_rule_keeps_pods_away(here: Place, version: str):
    """Until it is deleted."""
    await one_node(here)
    rules = here.client.resource("resource.k8s.io", version, "devicetaintrules", namespaced=False)
    spec = {"deviceSelector": {"pool": "n1"}, "taint": {"key": "example.com/broken", "effect": "NoSchedule"}}
    await rules.create({"metadata": {"name": "r"}, "spec": spec})
    await here.quiet()
    await here.claim("c")
    await here.put(with_claims("p", direct("c")))
    await here.why_not()
    await rules.delete("r")
    await here.settled()


@to_a_cluster()
async def test_an_invalid_pool_is_passed_over(here: Place):
    """InvalidResourceSlices: one pool lists a device twice, another on the same node is sound."""
    await one_node(here)
    pool = {"name": "twice", "generation": 1, "resourceSliceCount": 2}
    for at in range(2):
        broken = slice_of("n1", [{"name": "a"}], pool=pool)
        broken["metadata"]["name"] = f"broken-{at}"
        await here.put(broken)
    await here.claim("c")
    await here.put(with_claims("p", direct("c")))
    await here.settled()
    (result,) = await results(here, "c")
    assert result["pool"] == "n1"


# -- devices of several nodes --------------------------------------------------------------------------


@to_a_cluster()
async def test_each_device_says_on_which_nodes_it_can_be_used(here: Place):
    """PartitionableDevices, PerDeviceNodeSelection: one slice, a device for each node."""
    await here.device_class()
    for name in ("n1", "n2"):
        await here.node(name)
    listed = [{"name": f"gpu-{name}", "nodeName": name} for name in ("n1", "n2")]
    await here.put(slice_of("shared", listed, perDeviceNodeSelection=True))
    for name in ("a", "b"):
        await here.claim(name)
        await here.put(with_claims(name, direct(name)))
    places = await here.bound("a", "b")
    assert sorted(places) == ["n1", "n2"]
    found = [(await results(here, name))[0]["device"] for name in ("a", "b")]
    assert found == [f"gpu-{place}" for place in places]


@to_a_cluster()
async def test_one_device_for_several_hosts(here: Place):
    """PartitionableDevices, MultiHostDevice: pods that share the claim run on the nodes that reach it."""
    await here.device_class()
    for name in ("n1", "n2", "n3"):
        await here.node(name, labels={"rack": "far" if name == "n3" else "near"})
    near = {"matchExpressions": [{"key": "rack", "operator": "In", "values": ["near"]}]}
    device = {"name": "slice-2x4", "nodeSelector": {"nodeSelectorTerms": [near]}}
    await here.put(slice_of("fabric", [device], perDeviceNodeSelection=True))
    await here.claim("ours")
    for name in ("a", "b"):
        fields = with_claims(name, direct("ours"))
        fields["spec"]["containers"][0]["resources"]["requests"] = {"cpu": "5"}
        await here.put(fields)
    assert sorted(await here.bound("a", "b")) == ["n1", "n2"]


@to_a_cluster(DRADerivedAttributes=True)
async def test_devices_match_in_what_is_derived_from_them(here: Place):
    """DerivedAttributes: two devices of one board, by the first letters of their serial numbers."""
    await here.device_class()
    await here.node("n1")
    serials = ("a-1", "b-1", "c-1", "b-2")
    listed = [
        {"name": f"gpu-{at}", "attributes": {"serial": {"string": one}}} for at, one in enumerate(serials)
    ]
    await here.put(slice_of("n1", listed))
    name = "example.com/board"
    expression = "device.attributes['gpu.example.com'].serial.split('-')[0]"
    exactly = {
        "deviceClassName": "gpu",
        "count": 2,
        "derivedAttributes": [{"name": name, "expression": expression}],
    }
    devices = {"requests": [{"name": "r", "exactly": exactly}], "constraints": [{"matchAttribute": name}]}
    await here.put(claim_with("c", {"devices": devices}), with_claims("p", direct("c")))
    await here.settled()
    assert sorted(one["device"] for one in await results(here, "c")) == ["gpu-1", "gpu-3"]


@to_a_cluster(DRAOptionalNodeOperations=True)
async def test_only_a_node_that_can_skip_operations_serves_devices_that_need_it(here: Place):
    """OptionalNodeOperations, as far as scheduling goes: the result tells the node what it may skip."""
    await here.device_class()
    await here.node("n1")
    await here.put(slice_of("n1", [{"name": "gpu-0"}], skipNodeOperations=["*"]))
    await here.put(claim_with("c", {"devices": {"requests": [WANTED]}}), with_claims("p", direct("c")))
    await here.why_not()
    declared = {"status": {"declaredFeatures": ["DRAOptionalNodeOperations"]}}
    await here.resource("nodes").patch("n1", declared, subresource="status")
    await here.settled()
    assert [one["skipNodeOperations"] for one in await results(here, "c")] == [["*"]]


# -- hard nodes --------------------------------------------------------------------------------------


def on_roots(node: str, *roots: str):
    devices = [
        {"name": f"gpu-{at:02}", "attributes": {"root": {"string": root}}} for at, root in enumerate(roots)
    ]
    return slice_of(node, devices)


@pytest.mark.parametrize("budget", [50, 100_000], ids=["given up", "worked out"])
@to_a_cluster(scheduled=False)
async def test_a_node_that_is_too_hard_does_not_fail_the_pod(here: Place, monkeypatch, budget: int):
    """FilterTimeout: upstream fails the whole attempt. Five on one root are wanted, four are on each."""
    monkeypatch.setattr("allot.scheduler.plugins.DynamicResources", partial(DynamicResources, budget=budget))
    await here.start_scheduler()
    await here.device_class()
    await here.node("hard")
    await here.put(on_roots("hard", *(f"root-{at % 5}" for at in range(20))))
    requests = [{"name": f"r{at}", "exactly": {"deviceClassName": "gpu"}} for at in range(5)]
    together = [{"matchAttribute": "gpu.example.com/root"}]
    await here.put(claim_with("c", {"devices": {"requests": requests, "constraints": together}}))
    await here.put(with_claims("p", direct("c")))
    await here.why_not()
    await here.node("simple")
    await here.put(on_roots("simple", *["root"] * 5))
    assert await here.bound("p") == ["simple"]
