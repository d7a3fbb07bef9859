"""Device plugins on a real node: registered over a real socket, scheduled, allocated, run as processes."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from allot.api import Object
from allot.nodeagent import BadCheckpoint
from allot.nodeagent.registering import measured
from allot.wire import CallFailed, UnixSockets, podresources, registration
from allot.wire import deviceplugin as wire

from ..plugins import until
from ..world import NODE, NS, World, tell
from .plugin import GPU, RawPlugin


@asynccontextmanager
async def plugin(here: World, **more: Any) -> AsyncIterator[RawPlugin]:
    one = RawPlugin(here.root, **more)
    await one.start()
    try:
        yield one
    finally:
        await one.stop()


async def until_counted(here: World, capacity: int, allocatable: int, node: str = NODE) -> None:
    said: list[Any] = []

    async def is_so() -> bool:
        status = (await here.nodes.get(node)).fields["status"]
        said[:] = [status["capacity"].get(GPU), status["allocatable"].get(GPU)]
        return said == [str(capacity), str(allocatable)]

    await until(is_so, said)


def asking(script: str, count: int = 1, name: str = "main", **more: Any) -> dict[str, Any]:
    resources = {"limits": {GPU: str(count)}}
    return {"name": name, "image": "none", "command": ["sh", "-c", script], "resources": resources, **more}


async def pod(here: World, script: str, name: str = "p", count: int = 1, **spec: Any) -> Object:
    return await here.pod("", name, **{"containers": [asking(script, count)], **spec})


async def inject_one(here: World, *names: str) -> bool:
    """A CDI spec for the claim that the scheduler made for one of the pods, if it has."""
    for name in names:
        found = (await here.status(name)).get("extendedResourceClaimStatus") or {}
        if found:
            here.inject(found["resourceClaimName"])
            return True
    return False


WAIT = "while :; do sleep 0.05; done"


def test_a_pod_gets_the_devices_that_it_asks_for_and_gives_them_back():
    """Registration, capacity, scheduling, Allocate, the container's variables; then the next one has them."""

    async def play(here: World) -> None:
        async with here.agent(), plugin(here) as gpu:
            await until_counted(here, 2, 2)
            await pod(here, "env", count=2)
            await here.until_phase("Succeeded")
            assert "GPUS=a,b\n" in await here.log()
            await pod(here, "env", "next", count=2)
            await here.until_phase("Succeeded", "next")
            assert gpu.asked == ["allocate a,b", "allocate a,b"]

    tell(play)


def test_two_pods_have_different_devices_and_a_third_waits_for_one_of_them():
    """LOAN1, end to end."""

    async def play(here: World) -> None:
        async with here.agent(), plugin(here):
            await until_counted(here, 2, 2)
            for name in ("p", "q"):
                await pod(here, f"echo $GPUS; {WAIT}", name)
                await here.until_phase("Running", name)
            assert {await here.first_words("p"), await here.first_words("q")} == {"a\n", "b\n"}
            await pod(here, "echo $GPUS", "r")
            first = await here.log("p")
            await here.pods.delete("p", NS, grace_period_s=1)
            await here.until_phase("Succeeded", "r")
            assert await here.log("r") == first

    tell(play)


def test_everything_of_the_answer_reaches_the_container():
    """Variables, device nodes, mounts, and CDI devices by name."""
    answer = wire.ContainerAllocateResponse(
        {"FROM_PLUGIN": "1"},
        (wire.Mount("/tmp", "/tmp"),),
        (wire.DeviceSpec("/dev/null", "/dev/null", "rw"),),
        {"note": "1"},
        (wire.CdiDevice("example.com/gpu=c"),),
    )

    async def play(here: World) -> None:
        here.inject("c")
        async with here.agent(), plugin(here, answer=answer):
            await until_counted(here, 2, 2)
            await pod(here, "env; echo x >/dev/null && echo written")
            await here.until_phase("Succeeded")
            printed = await here.log()
            assert "FROM_PLUGIN=1\n" in printed
            assert "GPU=c\n" in printed
            assert printed.endswith("written\n")

    tell(play)


def test_a_device_that_the_plugin_says_is_unhealthy_is_given_to_nobody():
    async def play(here: World) -> None:
        async with here.agent(), plugin(here, devices={"a": False, "b": True}) as gpu:
            await until_counted(here, 2, 1)
            await pod(here, f"echo $GPUS; {WAIT}")
            await here.until_phase("Running")
            assert await here.first_words() == "b\n"
            status = (await here.state())["allocatedResourcesStatus"]
            assert status == [{"name": GPU, "resources": [{"resourceID": "b", "health": "Healthy"}]}]
            gpu.devices["b"] = False
            await until_counted(here, 2, 0)

            async def is_told() -> bool:
                ((shown,),) = (one["resources"] for one in (await here.state())["allocatedResourcesStatus"])
                return bool(shown["health"] == "Unhealthy")

            await until(is_told)
            assert (await here.status())["phase"] == "Running"  # what it has it keeps

    tell(play)


def test_the_plugin_says_which_devices_it_likes_best():
    options = wire.DevicePluginOptions(get_preferred_allocation_available=True)

    async def play(here: World) -> None:
        three = dict.fromkeys("abc", True)
        async with (
            here.agent(),
            plugin(here, devices=three, options=options, likes=("c", "nothing", "b")) as gpu,
        ):
            await until_counted(here, 3, 3)
            await pod(here, "echo $GPUS", count=2)
            await here.until_phase("Succeeded")
            assert gpu.asked == ["prefer 2 of a,b,c with ", "allocate b,c"]
            await pod(here, "echo $GPUS", "all", count=3)
            await here.until_phase("Succeeded", "all")
            assert gpu.asked[2:] == ["allocate a,b,c"]  # where there is no choice it is not asked

    tell(play)


def test_pods_for_which_the_plugin_likes_the_same_device_have_different_ones_all_the_same():
    """LOAN1: both are asked about while the device is free, and one of them comes first."""
    options = wire.DevicePluginOptions(get_preferred_allocation_available=True)

    async def play(here: World) -> None:
        three = dict.fromkeys("abc", True)
        async with (
            here.agent(),
            plugin(here, devices=three, options=options, likes=("c",), thinks_s=1.0) as gpu,
        ):
            await until_counted(here, 3, 3)
            await asyncio.gather(*(pod(here, "echo $GPUS; sleep 3", name) for name in ("p", "q")))
            for name in ("p", "q"):
                await here.until_phase("Succeeded", name)
            assert {await here.log("p"), await here.log("q")} == {"a\n", "c\n"}
            assert gpu.asked[:2] == ["prefer 1 of a,b,c with "] * 2

    tell(play)


def test_a_plugin_that_wants_to_is_told_of_each_start_and_the_container_waits_for_its_word():
    options = wire.DevicePluginOptions(pre_start_required=True)

    async def play(here: World) -> None:
        async with here.agent(), plugin(here, options=options, fails_start="not yet") as gpu:
            await until_counted(here, 2, 2)
            go = here.folder / "go"
            await pod(here, f"[ -e {go} ] || {{ touch {go}; exit 1; }}", restartPolicy="OnFailure")
            says = await here.until_waiting("DevicesNotReady")
            assert "PreStartContainer of the device plugin of example.com/gpu failed" in says
            assert "not yet" in says
            gpu.fails_start = ""
            gpu.devices["c"] = True  # whatever it says, those who wait try again
            await here.until_phase("Succeeded")
            assert gpu.asked[0] == "allocate a"
            assert [one for one in gpu.asked if one.startswith("allocate")] == ["allocate a"]
            assert gpu.asked[-2:] == ["start a", "start a"]

    tell(play)


def test_a_pod_whose_plugin_refuses_fails_with_its_words_and_costs_nobody_a_device():
    """UnexpectedAdmissionError, as a kubelet says it."""

    async def play(here: World) -> None:
        async with here.agent(), plugin(here, fails="out of luck") as gpu:
            await until_counted(here, 2, 2)
            await pod(here, "true", count=2)
            await here.until_phase("Failed")
            status = await here.status()
            assert status["reason"] == "UnexpectedAdmissionError"
            assert status["message"] == (
                "Pod was rejected: Allocate failed due to UNKNOWN: out of luck, which is unexpected"
            )
            gpu.fails = ""
            await pod(here, "true", "next", count=2)
            await here.until_phase("Succeeded", "next")

    tell(play)


def test_a_pod_that_somebody_put_on_a_node_without_enough_devices_fails():
    """OutOf…, and, where the count says yes and the devices say no, UnexpectedAdmissionError."""

    async def play(here: World) -> None:
        async with here.agent(), plugin(here) as gpu:
            await until_counted(here, 2, 2)
            await pod(here, "true", "much", count=3, nodeName=NODE, nodeSelector={})
            await here.until_phase("Failed", "much")
            status = await here.status("much")
            assert status["reason"] == f"OutOf{GPU}"
            assert "requested: 3, used: 0, capacity: 2" in status["message"]
            await gpu.stop()
            await until_counted(here, 2, 0)
            patch = {"status": {"allocatable": {GPU: "1"}}}
            await here.nodes.patch(NODE, patch, subresource="status")
            await pod(here, "true", "late", nodeName=NODE, nodeSelector={})
            await here.until_phase("Failed", "late")
            assert (await here.status("late"))["reason"] in ("UnexpectedAdmissionError", f"OutOf{GPU}")

    tell(play)


def test_devices_of_an_init_container_are_had_by_those_that_come_after_it():
    async def play(here: World) -> None:
        async with here.agent(), plugin(here) as gpu:
            await until_counted(here, 2, 2)
            side = asking(f"echo $GPUS; {WAIT}", 1, "side", restartPolicy="Always")
            init = [asking("echo $GPUS", 2, "init"), side]
            await pod(here, "echo $GPUS", initContainers=init)
            await here.until_phase("Succeeded")
            assert gpu.asked == ["allocate a,b", "allocate a", "allocate b"]
            assert await here.log(container="main") == "b\n"

    tell(play)


def test_a_container_that_restarts_keeps_its_devices():
    """Also while its plugin is away: what it was given holds."""

    async def play(here: World) -> None:
        async with here.agent(), plugin(here) as gpu:
            await until_counted(here, 2, 2)
            go = here.folder / "go"
            again = f"echo $GPUS >> {here.folder}/had; [ -e {go} ] || {{ touch {go}; sleep 1; exit 1; }}"
            await pod(here, again, restartPolicy="OnFailure")
            await until(go.exists)
            await gpu.stop()
            await here.until_phase("Succeeded")
            assert (here.folder / "had").read_text() == "a\na\n"
            assert gpu.asked == ["allocate a"]

    tell(play)


def test_after_an_agent_began_anew_pods_keep_their_devices_and_plugins_register_again():
    async def play(here: World) -> None:
        async with here.agent(), plugin(here) as gpu:
            await until_counted(here, 2, 2)
            await pod(here, f"echo $GPUS; {WAIT}")
            await here.until_phase("Running")
        assert not gpu.socket.exists()
        async with here.agent():
            await until_counted(here, 0, 0)
            gpu.asked.clear()
            async with plugin(here) as again:
                await until_counted(here, 2, 2)
                await pod(here, f"echo $GPUS; {WAIT}", "q")
                await here.until_phase("Running", "q")
                assert (await here.first_words("p"), await here.first_words("q")) == ("a\n", "b\n")
                assert again.asked == ["allocate b"]
                assert (await here.status())["phase"] == "Running"

    tell(play)


def test_an_agent_that_begins_removes_the_sockets_of_plugins_so_that_they_notice():
    async def play(here: World) -> None:
        left = here.root / "device-plugins" / "gpu.sock"
        lost = RawPlugin(here.root)
        await lost.serve(left)
        async with here.agent():
            await until(lambda: not left.exists())
        await lost.stop()

    tell(play)


def test_after_the_machine_was_started_anew_the_plugin_is_asked_again_and_the_pod_waits_for_it(monkeypatch):
    """The same devices: what the plugin had set up may be gone with the reboot."""
    boots = iter(("one", "two", "two"))
    boot = [next(boots)]

    def measure(root: Path) -> Any:
        return replace(measured(root), boot_id=boot[0])

    async def play(here: World) -> None:
        had = here.folder / "had"
        async with here.agent(measure=measure), plugin(here) as gpu:
            await until_counted(here, 2, 2)
            await pod(here, f"echo $GPUS >> {had}; {WAIT}", restartPolicy="Always")
            await until(had.exists)
            await here.until_phase("Running")
            await gpu.stop()
        await here.end_containers()  # as the machine goes down
        boot[0] = next(boots)
        async with here.agent(measure=measure):
            says = await here.until_waiting("DevicesNotReady")
            assert "devices a of example.com/gpu" in says
            async with plugin(here) as again:
                await until(lambda: had.read_text() == "a\na\n")
                assert again.asked == ["allocate a"]

    tell(play)


def test_of_a_plugin_that_is_gone_the_capacity_stays_for_its_grace_and_is_zero_then():
    async def play(here: World) -> None:
        async with here.agent(plugin_grace_s=2.0), plugin(here) as gpu:
            await until_counted(here, 2, 2)
            await gpu.stop()
            await until_counted(here, 2, 0)
            await until_counted(here, 0, 0)
            await gpu.start()
            await until_counted(here, 2, 2)

    tell(play)


def test_a_plugin_that_is_replaced_by_another_is_heard_no_more():
    async def play(here: World) -> None:
        async with here.agent(), plugin(here) as old, plugin(here, name="new", devices={"c": True}):
            await until_counted(here, 1, 1)
            old.devices["d"] = True
            await pod(here, "echo $GPUS")
            await here.until_phase("Succeeded")
            assert await here.log() == "c\n"
            await until_counted(here, 1, 1)

    tell(play)


def test_a_plugin_may_be_found_like_a_driver():
    """By a socket in plugins_registry, of the type DevicePlugin."""

    async def play(here: World) -> None:
        async with here.agent():
            gpu = RawPlugin(here.root)
            announced = here.root / "plugins_registry" / "gpu-reg.sock"
            await gpu.serve(announced)
            await until_counted(here, 2, 2)
            assert gpu.statuses == [registration.RegistrationStatus(True)]
            await pod(here, "echo $GPUS")
            await here.until_phase("Succeeded")
            assert gpu.asked == ["options", "allocate a"]
            await gpu.stop()
            announced.unlink(missing_ok=True)
            await until_counted(here, 2, 0)

    tell(play)


@pytest.mark.parametrize(
    ("more", "says"),
    [
        ({"version": "v1alpha1"}, "requested API version"),
        ({"resource": "cpu"}, 'the ResourceName "cpu" is invalid'),
        ({"endpoint": "../evil.sock"}, "is not the name of a socket"),
    ],
)
def test_a_plugin_that_asks_for_what_cannot_be_is_refused_with_the_reason(more: dict[str, str], says: str):
    async def play(here: World) -> None:
        async with here.agent():
            gpu = RawPlugin(here.root, resource=more.pop("resource", GPU))
            await until((gpu.directory / "kubelet.sock").exists)
            with pytest.raises(CallFailed, match=says):
                await gpu.register(**more)

    tell(play)


def test_a_registration_socket_that_somebody_removed_is_made_again():
    async def play(here: World) -> None:
        async with here.agent():
            socket = here.root / "device-plugins" / "kubelet.sock"
            await until(socket.exists)
            socket.unlink()
            await until(socket.exists)
            async with plugin(here):
                await until_counted(here, 2, 2)

    tell(play)


def test_monitoring_agents_hear_which_container_has_which_device_and_what_there_is():
    async def play(here: World) -> None:
        async with here.agent(), plugin(here, numa={"a": (0, 1)}):
            await until_counted(here, 2, 2)
            await pod(here, WAIT)
            await here.until_phase("Running")
            channel = UnixSockets().dial(str(here.root / "pod-resources" / "kubelet.sock"))
            near = podresources.TopologyInfo((podresources.NumaNode(0), podresources.NumaNode(1)))
            there = await channel.call(
                podresources.GET_ALLOCATABLE, podresources.AllocatableResourcesRequest(), timeout_s=20
            )
            assert there.devices == (
                podresources.ContainerDevices(GPU, ("a",), near),
                podresources.ContainerDevices(GPU, ("b",)),
            )
            listed = await channel.call(
                podresources.LIST, podresources.ListPodResourcesRequest(), timeout_s=20
            )
            (container,) = listed.pod_resources[0].containers
            assert container.devices == (podresources.ContainerDevices(GPU, ("a",), near),)
            await channel.close()

    tell(play)


def test_devices_of_a_pod_that_went_while_no_agent_was_there_are_given_back():
    async def play(here: World) -> None:
        async with here.agent(), plugin(here):
            await until_counted(here, 2, 2)
            await pod(here, WAIT, count=2)
            await here.until_phase("Running")
        await here.pods.delete("p", NS, grace_period_s=0)
        async with here.agent(), plugin(here):
            await until_counted(here, 2, 2)
            await until(lambda: not list((here.root / "pods").iterdir()))  # what ran of it is ended
            await pod(here, "echo $GPUS", "q", count=2)
            await here.until_phase("Succeeded", "q")
            assert await here.log("q") == "a,b\n"

    tell(play)


def test_an_agent_does_not_begin_with_a_checkpoint_that_is_not_whole():
    async def play(here: World) -> None:
        async with here.agent(), plugin(here):
            await until_counted(here, 2, 2)
        file = here.root / "device-plugins" / "kubelet_internal_checkpoint"
        spoilt = json.loads(file.read_text())
        file.write_text(json.dumps({**spoilt, "Checksum": spoilt["Checksum"] + 1}))
        with pytest.raises(ExceptionGroup) as several:
            async with here.agent():
                pass
        (bad,) = several.value.exceptions
        assert isinstance(bad, BadCheckpoint)
        assert str(bad).startswith("kubelet_internal_checkpoint: the checksum is")

    tell(play)


def test_one_device_of_a_plugin_and_a_driver_is_found_and_told():
    """KEP-5004 asks that no node offers a device both ways; who does it all the same hears of it."""

    async def play(here: World) -> None:
        async with here.agent(), plugin(here, devices={"GPU-1": True}):
            await until_counted(here, 1, 1)
            spec = {
                "driver": "dra.other.example",
                "nodeName": NODE,
                "pool": {"name": "pool", "generation": 1, "resourceSliceCount": 1},
                "devices": [{"name": "dev-0", "attributes": {"uuid": {"string": "GPU-1"}}}],
            }
            await here.slices.create({"metadata": {"name": "twice"}, "spec": spec})

            async def condition() -> dict[str, Any]:
                every = (await here.nodes.get(NODE)).fields["status"]["conditions"]
                return next((one for one in every if one["type"] == "DevicesAdvertisedTwice"), {})

            async def is_told() -> bool:
                return (await condition()).get("status") == "True"

            await until(is_told)
            assert "device GPU-1 of the device plugin for example.com/gpu is device dev-0" in (
                await condition()
            ).get("message", "")

            async def has_event() -> bool:
                events = await here.client.resource("", "v1", "events").list("default")
                return any(one.fields.get("reason") == "DevicesAdvertisedTwice" for one in events.objects)

            await until(has_event)
            await here.slices.delete("twice")

            async def is_over() -> bool:
                return (await condition()).get("status") == "False"

            await until(is_over)

    tell(play)


def test_the_same_pod_runs_where_a_plugin_counts_and_where_a_driver_publishes():
    """KEP-5004, mixed nodes: the plugin goes, its node has none any more, and the driver's devices serve.

    5004-SCHED-01 5004-SCHED-02 5004-EVENT-03 5004-ACT-08"""

    async def play(here: World) -> None:
        async with here.agent(plugin_grace_s=0.5), plugin(here, devices={"x": True}) as gpu:
            await here.driver(requests=())
            await here.publish(devices=1)
            classes = here.client.resource("resource.k8s.io", "v1", "deviceclasses", namespaced=False)
            await classes.patch("gpu", {"spec": {"extendedResourceName": GPU}})
            await until_counted(here, 1, 1)
            await pod(here, "env", "counted")
            await here.until_phase("Succeeded", "counted")
            assert "GPUS=x\n" in await here.log("counted")
            assert "extendedResourceClaimStatus" not in await here.status("counted")
            await gpu.stop()
            await until_counted(here, 0, 0)
            await pod(here, "env", "claimed")

            await until(lambda: inject_one(here, "claimed"))
            await here.until_phase("Succeeded", "claimed")
            printed = await here.log("claimed")
            assert "GPU=claimed-extended-resources-" in printed
            assert "GPUS=" not in printed
            assert gpu.asked == ["allocate x"]

    tell(play)


def test_replicas_of_one_pod_run_on_a_node_with_a_plugin_and_on_one_with_a_driver():
    """5004-SCHED-04 5004-ASK-06: two agents, and a manifest that knows nothing of either."""

    async def play(here: World) -> None:
        other = RawPlugin(here.folder / "other", devices={"x": True})
        async with here.agent(), here.agent("counting", root=other.root):
            await other.start()
            await here.driver(requests=())
            await here.publish(devices=1)
            classes = here.client.resource("resource.k8s.io", "v1", "deviceclasses", namespaced=False)
            await classes.patch("gpu", {"spec": {"extendedResourceName": GPU}})
            await until_counted(here, 1, 1, node="counting")
            for name in ("one", "two"):
                await pod(here, f"env; {WAIT}", name, nodeSelector={})
            await until(lambda: inject_one(here, "one", "two"))
            nodes = set()
            for name in ("one", "two"):
                await here.until_phase("Running", name)
                shown = await here.pods.get(name, NS)
                nodes.add(shown.fields["spec"]["nodeName"])
            assert nodes == {NODE, "counting"}
            assert other.asked == ["allocate x"]
            await other.stop()

    tell(play)


def test_many_pods_that_start_at_one_moment_have_a_device_each():
    async def play(here: World) -> None:
        eight = {f"d{number}": True for number in range(8)}
        async with here.agent(), plugin(here, devices=eight):
            await until_counted(here, 8, 8)
            names = [f"p{number}" for number in range(8)]
            await asyncio.gather(*(pod(here, "echo $GPUS; sleep 1", name) for name in names))
            for name in names:
                await here.until_phase("Succeeded", name)
            assert sorted([(await here.log(name)).strip() for name in names]) == sorted(eight)

    tell(play)
