"""What the API shows of a driver's devices: as declared, whoever changes it."""

import asyncio
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from allot.api import Gates, Object, encode, resource
from allot.apiserver import Options, identities
from allot.driver import BadPools, Capacity, Device, DeviceStatus, Places, Pool, Ready, Taint, Version
from allot.driver.devices import check
from allot.driver.publishing import Settled, dropped
from driver.world import NAME, NODE, tell, until


def gpus(count, **more):
    return [Device(f"gpu-{at}", **more) for at in range(count)]


def test_a_device_says_all_that_can_be_said_of_one():
    device = Device(
        "gpu-0",
        {"model": "H100", "index": 3, "ok": True, "firmware": Version("1.2.3"), "links": ("a", "b")},
        capacity={"memory": "80Gi", "slots": Capacity("8", default="1", min="1", max="4", step="1")},
        consumes={"board": {"memory": "40Gi"}},
        taints=(Taint("broken", "NoSchedule", "yes"),),
        shared=True,
        binding_conditions=("Ready",),
        binding_failure_conditions=("Failed",),
        binds_to_node=True,
    )
    assert device.fields() == {
        "name": "gpu-0",
        "attributes": {
            "model": {"string": "H100"},
            "index": {"int": 3},
            "ok": {"bool": True},
            "firmware": {"version": "1.2.3"},
            "links": {"strings": ["a", "b"]},
        },
        "capacity": {
            "memory": {"value": "80Gi"},
            "slots": {
                "value": "8",
                "requestPolicy": {"default": "1", "validRange": {"min": "1", "max": "4", "step": "1"}},
            },
        },
        "consumesCounters": [{"counterSet": "board", "counters": {"memory": {"value": "40Gi"}}}],
        "taints": [{"key": "broken", "effect": "NoSchedule", "value": "yes"}],
        "allowMultipleAllocations": True,
        "bindingConditions": ["Ready"],
        "bindingFailureConditions": ["Failed"],
        "bindsToNode": True,
    }
    assert Device("plain").fields() == {"name": "plain"}


@pytest.mark.parametrize(
    ("pools", "words"),
    [
        ([Pool("p", []), Pool("p", [])], "there are two pools 'p'"),
        ([Pool("p", [Device("a"), Device("a")])], "pool 'p' has two devices 'a'"),
        (
            [Pool("p", [Device("a", consumes={"x": {}})])],
            "device 'a' consumes counters of 'x', which",
        ),
        (
            [Pool("p", [Device("a", consumes={"x": {"m": "1"}})], {"x": {"n": "1"}})],
            "device 'a' consumes the counter 'm', which 'x' does not have",
        ),
        ([Pool("p", [Device("a", binding_conditions=("R",))])], "device 'a' needs both binding conditions"),
    ],
)
def test_pools_that_contradict_themselves_are_refused(pools, words):
    with pytest.raises(BadPools, match=words):
        check(pools)


@settings(max_examples=30)
@given(st.integers(0, 300), st.booleans(), st.integers(0, 20))
def test_a_pool_of_any_size_becomes_slices_that_say_it_all(count, tainted, sets):
    taints = (Taint("t", "NoSchedule"),) if tainted else ()
    counters = {f"s{at}": {"m": "1"} for at in range(sets)}
    slices = Pool("p", gpus(count, taints=taints), counters).slices(NAME, NODE)
    names = [device["name"] for one in slices for device in one["spec"].get("devices", ())]
    assert names == [f"gpu-{at}" for at in range(count)]
    assert {one["spec"]["pool"]["resourceSliceCount"] for one in slices} <= {len(slices)}
    for one in slices:
        assert len(one["spec"].get("devices", ())) <= (64 if tainted else 128)
        assert len(one["spec"].get("sharedCounters", ())) <= 8


def published(pools):
    """The pools of a list that tests change: all of them again, whenever `changed` is set."""
    changed = asyncio.Event()

    async def follow(node):
        while True:
            yield list(pools)
            await changed.wait()
            changed.clear()

    return follow, changed


def test_devices_are_published_and_follow_the_driver_s_pools():
    async def story(world):
        pools = [Pool(NODE, gpus(200)), Pool(f"{NODE}-x", gpus(1))]
        follow, changed = published(pools)
        async with world.driver(pools=follow):

            async def shows(*counts):
                slices = [one["spec"] for one in await world.slices()]
                by_pool = {}
                for one in slices:
                    by_pool.setdefault(one["pool"]["name"], []).append(len(one["devices"]))
                return sorted(by_pool.values()) == sorted(counts)

            await until(lambda: shows([128, 72], [1]))
            (node,) = {one["metadata"]["ownerReferences"][0]["uid"] for one in await world.slices()}
            nodes = world.client.resource("", "v1", "nodes", namespaced=False)
            assert node == (await nodes.get(NODE)).uid
            pools[:] = [Pool(NODE, gpus(2))]
            changed.set()
            await until(lambda: shows([2]))
            pools[:] = []
            changed.set()
            await until(lambda: shows())

    tell(story)


def written(kubelet):
    return [line for line in kubelet.metrics.text().splitlines() if "slice_writes_total{" in line]


def test_slices_that_somebody_deleted_or_changed_are_repaired():
    async def story(world):
        slices = world.client.of(resource.RESOURCE_SLICE)
        async with world.driver() as kubelet:

            async def whole():
                found = await world.slices()
                return [one for one in found if len(one["spec"].get("devices", ())) == 4]

            (one,) = await until(whole)
            await asyncio.sleep(0.5)  # it has looked at its own writes, and is quiet
            await slices.delete_collection(field_selector=f"spec.nodeName={NODE}")
            (again,) = await until(whole)
            assert again["metadata"]["uid"] != one["metadata"]["uid"]
            await asyncio.sleep(0.5)
            again["spec"]["devices"].pop()
            await slices.update(again)
            await until(whole)
            await asyncio.sleep(0.3)
            writes = written(kubelet)
            await asyncio.sleep(0.5)
            assert written(kubelet) == writes, "it is quiet when all is right"

    tell(story)


def test_fields_that_the_server_drops_are_named_once_and_written_once(caplog):
    """Taints are behind a gate. Lost ones are no reason to write the same slice for ever."""

    def gpu(index):
        return Pool(NODE, [Device("gpu-0", {"index": index}, taints=(Taint("t", "NoSchedule"),))])

    async def story(world):
        pools = [gpu(1)]
        follow, changed = published(pools)
        async with world.driver(pools=follow) as kubelet:
            await until(world.slices)
            await asyncio.sleep(0.5)
            shown = kubelet.metrics.text()
            assert 'allot_driver_slice_writes_total{verb="create"} 1' in shown
            assert 'allot_driver_slice_writes_total{verb="update"}' not in shown
            assert "allot_driver_dropped_fields_total 1" in shown
            pools[:] = [gpu(2)]
            changed.set()

            async def follows():
                (one,) = await world.slices()
                return one["spec"]["devices"] == [{"name": "gpu-0", "attributes": {"index": {"int": 2}}}]

            await until(follows)
            await asyncio.sleep(0.5)
            assert 'allot_driver_slice_writes_total{verb="update"} 1' in kubelet.metrics.text()

    tell(story, Options(gates=Gates({"DRADeviceTaints": False, "DRADeviceTaintRules": False})))
    lines = [one.getMessage() for one in caplog.records if "dropped fields" in one.getMessage()]
    assert len(lines) == 2
    assert all("spec.devices[0].taints" in line for line in lines)


def test_what_the_server_drops_stays_known_when_the_slice_is_written_again():
    """Somebody deleted it. What is written anew is what the server takes, and that is not news either."""
    wish = {
        "metadata": {"name": "s"},
        "spec": {"pool": {"generation": 1}, "devices": [{"name": "a"}], "x": 1},
    }
    stored = Object(encode({"spec": {"pool": {"generation": 1}, "devices": [{"name": "a"}]}}))
    settled = Settled()
    assert settled.note(wish, stored) == ("spec.x",)
    again = settled.adjusted(wish)
    assert "x" not in again["spec"]
    assert settled.note(again, stored) == ()
    assert settled.adjusted(wish) == again, "not written for ever"


def test_what_is_dropped_is_found_at_its_place():
    wished = {"a": 1, "b": {"c": [{"d": 1, "e": 2}]}, "f": [1, 2]}
    stored = {"a": 1, "b": {"c": [{"d": 1}]}, "f": [1], "added": 1}
    assert list(dropped(wished, stored)) == ["spec.b.c[0].e", "spec.f"]


def test_of_two_instances_one_publishes_and_the_other_takes_over():
    async def story(world):
        new = Places(NAME, world.places.root, world.places.cdi, instance="new")
        old_pools, new_pools = [Pool(NODE, gpus(1))], [Pool(NODE, gpus(2))]

        async def shows(count):
            return len(await world.devices()) == count

        async with world.driver(pools=lambda node: old_pools) as old:
            await until(lambda: shows(1))
            taking_over = world.driver(pools=lambda node: new_pools, places=new)
            await taking_over.__aenter__()
            await asyncio.sleep(0.7)
            assert (
                await shows(1) and 'allot_driver_slice_writes_total{verb="update"}' not in old.metrics.text()
            )
        await until(lambda: shows(2))
        await taking_over.__aexit__(None, None, None)

    tell(story)


def test_the_credentials_of_a_node_are_enough():
    """S5: a driver may run with its kubelet's rights: its own node's slices, and claims of pods there."""

    async def story(world):
        async with world.driver(user=identities.node(NODE)):
            await until(world.devices)

    tell(story)


@pytest.mark.parametrize("says_its_node", [True, False])
def test_the_role_for_drivers_is_enough(says_its_node, caplog):
    """For the status of devices the credential has to say on which node it is, as the token of a pod does."""
    user = identities.service_account("kube-system", "gpu-driver")
    if says_its_node:
        user = replace(user, extra={"authentication.kubernetes.io/node-name": (NODE,)})

    async def story(world):
        bindings = world.client.resource(
            "rbac.authorization.k8s.io", "v1", "clusterrolebindings", namespaced=False
        )
        await bindings.create(
            {
                "apiVersion": "rbac.authorization.k8s.io/v1",
                "kind": "ClusterRoleBinding",
                "metadata": {"name": "gpu-driver"},
                "roleRef": {
                    "apiGroup": "rbac.authorization.k8s.io",
                    "kind": "ClusterRole",
                    "name": "allot:driver",
                },
                "subjects": [{"kind": "ServiceAccount", "name": "gpu-driver", "namespace": "kube-system"}],
            }
        )
        claim = await world.claim("a", "gpu-0")

        def prepare(claim):
            return {claim.devices[0]: Ready(status=DeviceStatus(data={"firmware": "1.2"}))}

        async def status():
            claims = world.client.resource("resource.k8s.io", "v1", "resourceclaims")
            return (await claims.get("a", "default")).fields["status"].get("devices")

        async def refused():
            return [line for line in caplog.messages if line.startswith("status.devices of claim default/a")]

        async with world.driver(prepare, user=user) as kubelet:
            await until(world.devices)
            assert (await kubelet.prepare(claim))[claim.uid].error == ""
            if says_its_node:
                await until(status)
                return
            (line,) = await until(refused)
            assert "associated-node:patch" not in line and 'verb="[arbitrary-node:patch]"' in line
            assert await status() is None

    tell(story)


def test_a_node_that_comes_later_gets_its_slices_then():
    async def story(world):
        nodes = world.client.resource("", "v1", "nodes", namespaced=False)
        await nodes.delete(NODE)
        async with world.driver():
            await asyncio.sleep(0.3)
            assert await world.slices() == []
            await nodes.create({"apiVersion": "v1", "kind": "Node", "metadata": {"name": NODE}})
            await until(world.devices)

    tell(story)


def test_slices_that_went_with_their_node_come_back_with_the_node_that_is_there_now():
    """Owned by the old node they would be removed again, and again."""

    async def story(world):
        nodes = world.client.resource("", "v1", "nodes", namespaced=False)
        slices = world.client.of(resource.RESOURCE_SLICE)
        async with world.driver():
            await until(world.devices)
            await asyncio.sleep(0.5)
            await nodes.delete(NODE)
            new = await nodes.create({"apiVersion": "v1", "kind": "Node", "metadata": {"name": NODE}})
            await slices.delete_collection(field_selector=f"spec.nodeName={NODE}")
            await until(world.devices)
            (one,) = await world.slices()
            assert one["metadata"]["ownerReferences"][0]["uid"] == new.uid

    tell(story)


def test_ten_thousand_devices_are_published():
    async def story(world):
        async with world.driver(pools=lambda node: [Pool(node.name, gpus(10_000))]):

            async def complete():
                return len(await world.devices()) == 10_000

            await until(complete, within_s=120)
            assert len(await world.slices()) == 79

    tell(story)
