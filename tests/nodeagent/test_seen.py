"""What others see of a pod's devices: health in its status, and what monitoring agents are told."""

import asyncio
from contextlib import suppress
from typing import Any

import pytest

from allot.api import Object, encode
from allot.nodeagent import health_loop
from allot.nodeagent.podresources import SOCKET, Allowance, Standing
from allot.nodeagent.podresources import shown as shown_of
from allot.wire import CallFailed, UnixSockets, health, podresources

from .plugins import DRIVER, V1, Plugin, until
from .world import NS, World, tell


async def shown(here: World, name: str = "p") -> list[dict[str, Any]]:
    return list((await here.state(name)).get("allocatedResourcesStatus") or ())


async def running(here: World, **more: Any) -> Plugin:
    gpu = await here.driver(names=["dev-c"], **more)
    await here.publish()
    here.inject("c")
    await here.claim("c")
    await here.pod("sleep 300", claim="c")
    await here.until_phase("Running")
    return gpu


def expected(how: str, **message: str) -> list[dict[str, Any]]:
    return [
        {"name": "claim:gpu", "resources": [{"resourceID": "example.com/gpu=c", "health": how, **message}]}
    ]


@pytest.mark.parametrize("version", [health.V1.name, health.V1ALPHA1.name])
def test_the_health_of_a_pods_devices_is_in_its_status(version, monkeypatch):
    """changes reflected; v1alpha1-only; v1-only; Unknown on stop and recover"""
    monkeypatch.setattr(health_loop, "AGAIN_S", 0.1)

    async def play(here: World) -> None:
        async def says(*wanted: object) -> None:
            async def is_so() -> bool:
                return await shown(here) in wanted

            try:
                await until(is_so)
            except AssertionError:
                raise AssertionError((wanted, await shown(here))) from None

        async with here.agent():
            gpu = await running(here, versions=(V1, version), sick=[])
            await says(expected("Healthy"))
            gpu.sick = ["dev-c"]
            await says(expected("Unhealthy", message="too hot"))
            await gpu.stop()
            await says(expected("Unknown"))
            await gpu.start()
            await says(expected("Unhealthy", message="too hot"))

    tell(play)


def test_a_share_of_a_device_is_as_well_as_the_device_and_monitoring_agents_hear_which_it_is():
    """health: ShareID devices"""

    async def play(here: World) -> None:
        async with here.agent():
            gpu = await running(here, versions=(V1, health.V1.name), sick=["dev-c"], share="5f0d")

            async def is_sick() -> bool:
                return await shown(here) == expected("Unhealthy", message="too hot")

            await until(is_sick)
            channel = UnixSockets().dial(str(here.root / SOCKET))
            asked = podresources.ListPodResourcesRequest()
            (pod,) = (await channel.call(podresources.LIST, asked, timeout_s=20)).pod_resources
            await channel.close()
            (device,) = pod.containers[0].dynamic_resources[0].claim_resources
            assert (device.device_name, device.share_id) == ("dev-c", "5f0d")
            assert gpu.told == ["prepare c"]

    tell(play)


def test_prepare_unprepare_and_health_go_over_one_connection():
    """one gRPC connection for all calls; health: one connection, concurrent operations"""

    async def play(here: World) -> None:
        folder = here.folder / "way"
        folder.mkdir()
        connections = []

        async def pass_on(reader: Any, writer: Any) -> None:
            connections.append(writer)
            inner, outer = await asyncio.open_unix_connection(str(gpu.service))
            with suppress(ConnectionError):
                await asyncio.gather(_copied(reader, outer), _copied(inner, writer))

        async with here.agent():
            way = await asyncio.start_unix_server(pass_on, str(folder / "s"))
            gpu = Plugin(here.root, versions=(V1, health.V1.name), sick=[], endpoint=str(folder / "s"))
            here.plugins.append(gpu)
            await gpu.start()
            await here.publish(devices=4)
            names = [f"c{number}" for number in range(4)]
            gpu.names = [f"dev-{name}" for name in names]
            for name in names:
                here.inject(name)
                await here.claim(name)
                await here.pod("sleep 300", name, claim=name)
            for name in names:
                await here.until_phase("Running", name)

            async def is_well() -> bool:
                every = [await shown(here, name) for name in names]
                return all(one and one[0]["resources"][0]["health"] == "Healthy" for one in every)

            await until(is_well)
            for name in names:
                await here.pods.delete(name, NS, grace_period_s=0)
            await until(lambda: sum(told.startswith("unprepare") for told in gpu.told) == len(names))
            assert len(connections) == 1
            way.close()

    tell(play)


async def _copied(reader: Any, writer: Any) -> None:
    try:
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
    finally:
        writer.close()


def test_a_server_without_the_gate_shows_no_health():
    """health: gate off, no status"""

    async def play(here: World) -> None:
        async with here.agent():
            await running(here, versions=(V1, health.V1.name), sick=[])
            assert "allocatedResourcesStatus" not in await here.state()

    tell(play, gates={"ResourceHealthStatus": False, "ResourceHealthStatusMessage": False})


def test_a_driver_that_tells_nothing_of_health_leaves_it_unknown():
    async def play(here: World) -> None:
        async with here.agent():
            await running(here)
            assert await shown(here) == expected("Unknown")

    tell(play)


def test_monitoring_agents_hear_of_sidecars_and_of_no_other_init_container():
    """Whatever an init container had, those that come after it have."""
    containers = {
        "initContainers": [{"name": "once"}, {"name": "beside", "restartPolicy": "Always"}],
        "containers": [{"name": "main"}],
    }
    pod = Object(encode({"metadata": {"name": "p", "namespace": NS}, "spec": containers}))
    assert [one.name for one in shown_of(Standing(pod, ())).containers] == ["beside", "main"]


def test_so_many_calls_are_allowed_at_once_and_so_many_a_second():
    allowance = Allowance(at_once=3, per_s=2.0)
    assert [allowance.take(1000.0) for _ in range(4)] == [True] * 3 + [False]
    assert [allowance.take(1000.6) for _ in range(2)] == [True, False]
    assert [allowance.take(2000.0) for _ in range(4)] == [True] * 3 + [False], (
        "what is not used is not saved up"
    )


def test_a_monitoring_agent_that_asks_without_end_is_told_so_and_others_later_are_answered():
    async def play(here: World) -> None:
        async with here.agent():
            channel = UnixSockets().dial(str(here.root / SOCKET))
            asked = podresources.ListPodResourcesRequest()

            async def ask() -> str:
                try:
                    await channel.call(podresources.LIST, asked, timeout_s=30)
                except CallFailed as failed:
                    return str(failed)
                return ""

            said = await asyncio.gather(*(ask() for _ in range(1000)))
            assert set(said) == {"", "RESOURCE_EXHAUSTED: rejected by rate limit"}
            await asyncio.sleep(0.5)
            assert await ask() == ""
            await channel.close()

    tell(play)


def test_monitoring_agents_are_told_which_container_has_which_devices():
    """Over the socket of a kubelet, in its versions."""

    async def play(here: World) -> None:
        async with here.agent():
            await running(here)
            await here.pod("sleep 300", "plain")
            await here.until_phase("Running", "plain")
            channel = UnixSockets().dial(str(here.root / SOCKET))
            try:
                device = podresources.ClaimResource(
                    (podresources.CdiDevice("example.com/gpu=c"),), DRIVER, "pool", "dev-c"
                )
                claim = podresources.DynamicResource("c", NS, (device,))
                mine = podresources.PodResources(
                    "p", NS, (podresources.ContainerResources("main", dynamic_resources=(claim,)),)
                )
                asked = podresources.ListPodResourcesRequest()
                answer = await channel.call(podresources.LIST, asked, timeout_s=20)
                assert {one.name: one for one in answer.pod_resources}["p"] == mine
                assert {one.name for one in answer.pod_resources} == {"p", "plain"}
                old = await channel.call(podresources.LIST_V1ALPHA1, asked, timeout_s=20)
                assert {one.name for one in old.pod_resources} == {"p", "plain"}
                one = podresources.GetPodResourcesRequest("p", NS)
                assert (await channel.call(podresources.GET, one, timeout_s=20)).pod_resources == mine
                with pytest.raises(CallFailed, match="NOT_FOUND: pod default/none is not on this node"):
                    none = podresources.GetPodResourcesRequest("none", NS)
                    await channel.call(podresources.GET, none, timeout_s=20)
            finally:
                await channel.close()

    tell(play)
