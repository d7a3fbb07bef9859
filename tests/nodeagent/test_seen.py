"""What others see of a pod's devices: health in its status, and what monitoring agents are told."""

from typing import Any

import pytest

from allot.nodeagent import health_loop
from allot.nodeagent.podresources import SOCKET
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


def test_a_driver_that_tells_nothing_of_health_leaves_it_unknown():
    async def play(here: World) -> None:
        async with here.agent():
            await running(here)
            assert await shown(here) == expected("Unknown")

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
