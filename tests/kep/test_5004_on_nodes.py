"""Extended resources by DRA on a real node: the agent, a driver over its socket, processes."""

from typing import Any

from allot.nodeagent.podresources import SOCKET
from allot.wire import UnixSockets, podresources
from nodeagent.plugins import DRIVER, until
from nodeagent.world import NS, World, tell

NAME = "example.com/gpu"


async def offered(here: World, devices: int = 2) -> None:
    await here.publish(devices)
    classes = here.client.resource("resource.k8s.io", "v1", "deviceclasses", namespaced=False)
    await classes.patch("gpu", {"spec": {"extendedResourceName": NAME}})


def container(name: str, script: str, amount: int = 1) -> dict[str, Any]:
    made: dict[str, Any] = {"name": name, "image": "none", "command": ["sh", "-c", script]}
    if amount:
        made["resources"] = {"limits": {NAME: str(amount)}}
    return made


async def special(here: World) -> str:
    """The claim that stands for the pod's extended resources."""

    async def is_there() -> bool:
        return bool((await here.status()).get("extendedResourceClaimStatus"))

    await until(is_there)
    return str((await here.status())["extendedResourceClaimStatus"]["resourceClaimName"])


def test_a_pod_gets_the_devices_of_its_extended_resources_on_a_node():
    """5004-ACT-01, 5004-ACT-03, 5004-ACT-07, 5004-ACT-08: `allocatable` does not name the resource,
    and an ordinary driver is told once of the claim, which is unprepared when the pod has ended."""

    async def play(here: World) -> None:
        async with here.agent():
            gpu = await here.driver(delay_s=0.3, requests=())
            await offered(here)
            init = [container("first", "echo first=$GPU")]
            both = [container("main", "echo main=$GPU"), container("side", "echo side=$GPU", 0)]
            pod = await here.pod("", containers=both, initContainers=init)
            name = await special(here)
            here.inject(name)
            await here.until_phase("Succeeded")
            assert await here.log(container="first") == f"first={name}\n"
            assert await here.log(container="main") == f"main={name}\n"
            assert await here.log(container="side") == "side=\n"
            assert gpu.told == [f"prepare {name}", f"unprepare {name}"]
            assert pod.name == "p"

    tell(play)


def test_a_pod_whose_special_claim_is_not_its_own_does_not_start():
    """5004-ACT-04: missing, not allocated, or not reserved for it."""

    async def play(here: World) -> None:
        async with here.agent():
            gpu = await here.driver()
            pod = await here.pods.create(
                {
                    "metadata": {"name": "p", "namespace": NS},
                    "spec": {"schedulerName": "nobody", "containers": [container("main", "true")]},
                }
            )
            mapping = {"containerName": "main", "resourceName": NAME, "requestName": "r"}
            extended = {"resourceClaimName": "special", "requestMappings": [mapping]}
            await here.pods.patch(
                "p", {"status": {"extendedResourceClaimStatus": extended}}, NS, subresource="status"
            )
            await here.pods.bind("p", NS, "worker")
            assert "claim special does not exist" in await here.until_waiting("ClaimsNotReady")
            owner = {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": pod.uid, "controller": True}
            await here.claims.create(
                {
                    "metadata": {"name": "special", "namespace": NS, "ownerReferences": [owner]},
                    "spec": {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "gpu"}}]}},
                }
            )

            async def says() -> bool:
                waiting = ((await here.state()).get("state") or {}).get("waiting") or {}
                return "claim special is not allocated" in waiting.get("message", "")

            await until(says)
            assert gpu.told == []

    tell(play)


def test_a_container_that_restarts_keeps_its_devices_and_others_see_them_under_the_special_claim():
    """5004-ACT-09, 5004-ACT-10."""

    async def play(here: World) -> None:
        async with here.agent():
            gpu = await here.driver(delay_s=0.3, requests=())
            await offered(here)
            go = here.folder / "go"
            script = f"echo $GPU; if [ -e {go} ]; then sleep 300; fi; touch {go}; exit 1"
            await here.pod("", containers=[container("main", script)], restartPolicy="Always")
            name = await special(here)
            here.inject(name)

            async def restarted() -> bool:
                state = await here.state()
                return bool(state.get("restartCount") == 1 and "running" in state["state"])

            await until(restarted)
            assert await here.first_words() == f"{name}\n"
            assert await here.log(previous="true") == f"{name}\n"
            assert gpu.told == [f"prepare {name}"]
            (shown,) = (await here.state())["allocatedResourcesStatus"]
            assert shown["name"].startswith(f"claim:{name}/")
            channel = UnixSockets().dial(str(here.root / SOCKET))
            asked = podresources.GetPodResourcesRequest("p", NS)
            answer = await channel.call(podresources.GET, asked, timeout_s=20)
            await channel.close()
            (claim,) = answer.pod_resources.containers[0].dynamic_resources
            assert (claim.claim_name, claim.claim_resources[0].driver_name) == (name, DRIVER)

    tell(play)
