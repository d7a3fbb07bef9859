"""Compute resources on a real node: plugins over real sockets, records heeded, pods as processes."""

from typing import Any

from allot.api import Object, compute
from allot.nodeagent.loop import Looking
from allot.wire import deviceplugin as wire

from ..plugins import until
from ..world import NODE, NS, World, tell
from .plugin import GPU
from .test_device_plugins import WAIT, plugin, until_counted

K80, V100 = {"model": "k80"}, {"model": "v100"}
FOUR = {"a": K80, "b": K80, "c": V100, "d": V100}


def named(properties: dict[str, str]) -> str:
    return compute.compute_resource_name(GPU, properties)


def four(here: World, **more: Any) -> Any:
    return plugin(here, devices=dict.fromkeys(FOUR, True), properties=dict(FOUR), **more)


async def exported(here: World, node: str = NODE) -> dict[str, tuple[list[str], list[str]]]:
    status = (await here.nodes.get(node)).fields["status"]
    return {
        one["name"]: (one.get("devices", []), one.get("allocatableDevices", []))
        for one in status.get("computeResources") or ()
    }


async def until_exported(here: World, *wanted: tuple[dict[str, str], str, str]) -> None:
    """By properties: devices, and which of them can be had."""
    said: list[Any] = []
    meant = {named(like): ([*devices], [*healthy]) for like, devices, healthy in wanted}

    async def is_so() -> bool:
        said[:] = [await exported(here)]
        return bool(said == [meant])

    await until(is_so, said)


def asking(script: str, record: dict[str, dict[str, int]] | None, **limits: int) -> dict[str, Any]:
    container = {"name": "main", "image": "none", "command": ["sh", "-c", script]}
    asked = {name.replace("_", "-"): str(count) for name, count in limits.items()}
    entries = {
        name: [{"computeResourceName": one, "count": count} for one, count in chosen.items()]
        for name, chosen in (record or {}).items()
    }
    return {
        **container,
        "resources": {"limits": asked},
        **({"allocatedComputeResources": entries} if entries else {}),
    }


async def put(here: World, name: str, container: dict[str, Any], **spec: Any) -> Object:
    """On the node by hand, whatever a scheduler thinks of it."""
    return await here.pod("", name, containers=[container], nodeName=NODE, **spec)


async def refusal(here: World, name: str) -> tuple[str, str]:
    await here.until_phase("Failed", name)
    status = await here.status(name)
    return status["reason"], status["message"]


async def until_said(here: World, name: str, text: str) -> None:
    async def is_so() -> bool:
        return await here.log(name) == text

    await until(is_so)


def test_a_container_gets_what_is_recorded_and_nothing_else():
    """14-AGENT-01, 14-AGENT-02, 14-AGENT-03, 14-AGENT-04, 14-AGENT-05, 14-AGENT-06, 14-NODE-07, 14-NODE-11,
    14-PLUG-08, 14-BIND-09, 14-PROP-08"""
    wants = wire.DevicePluginOptions(get_preferred_allocation_available=True)

    async def play(here: World) -> None:
        async with here.agent(exports_compute=True), four(here, options=wants, likes=("d", "b")) as gpu:
            await until_exported(here, (K80, "ab", "ab"), (V100, "cd", "cd"))
            status = (await here.nodes.get(NODE)).fields["status"]
            assert GPU not in status["capacity"].keys() | status["allocatable"].keys()
            both = {"gpu-gold": {named(K80): 1, named(V100): 1}}
            before = await put(here, "both", asking(f"echo $GPUS; {WAIT}", both, gpu_gold=2))
            await here.until_phase("Running", "both")
            await until_said(here, "both", "b,d\n")  # what the plugin likes, of each compute resource
            assert sorted(gpu.asked) == ["allocate b,d", "prefer 1 of a,b with ", "prefer 1 of c,d with "]
            after = await here.pods.get("both", NS)
            assert after.fields["spec"]["containers"] == before.fields["spec"]["containers"]

            await put(here, "none", asking("true", None, gpu_gold=1))
            reason, message = await refusal(here, "none")
            assert (reason, "container main asks for gpu-gold" in message) == (
                "NoComputeResourcesRecorded",
                True,
            )
            await put(here, "gone", asking("true", {"gpu-gold": {named({"model": "k20"}): 1}}, gpu_gold=1))
            assert (
                f"compute resource {named({'model': 'k20'})} is not on this node"
                in (await refusal(here, "gone"))[1]
            )
            await put(here, "many", asking("true", {"gpu-gold": {named(K80): 2}}, gpu_gold=2))
            assert (
                f"unavailable for {named(K80)}. Requested: 2, Available: 1"
                in (await refusal(here, "many"))[1]
            )
            assert gpu.asked[3:] == [], "nothing is given in place of what was recorded"

    tell(play)


def test_a_property_changes_under_a_running_pod():
    """14-PROP-01, 14-PROP-02, 14-PROP-03, 14-PROP-04, 14-PROP-05, 14-AGENT-07, 14-AGENT-08, 14-AGENT-09,
    14-PLUG-05: through a restart of the agent in the middle."""

    async def play(here: World) -> None:
        async with here.agent(exports_compute=True), four(here) as gpu:
            await until_exported(here, (K80, "ab", "ab"), (V100, "cd", "cd"))
            await put(here, "p", asking(f"echo $GPUS; {WAIT}", {"old": {named(K80): 1}}, old=1))
            await here.until_phase("Running", "p")
            gpu.properties = dict.fromkeys("abcd", V100)
            await until_exported(here, (K80, "a", "a"), (V100, "bcd", "bcd"))
            gpu.devices["a"] = False
            await until_exported(here, (K80, "a", ""), (V100, "bcd", "bcd"))
        async with here.agent(exports_compute=True), four(here) as gpu:
            gpu.properties = dict.fromkeys("abcd", V100)
            await until_exported(here, (K80, "a", "a"), (V100, "bcd", "bcd"))
            await put(here, "q", asking("true", {"old": {named(K80): 1}}, old=1))
            assert "Requested: 1, Available: 0" in (await refusal(here, "q"))[1]
            assert (await here.status("p"))["phase"] == "Running"
            await until_said(here, "p", "a\n")
            await here.pods.delete("p", NS, grace_period_s=1)
            await until_exported(here, (V100, "abcd", "abcd"))

    tell(play)


def test_what_is_given_back_is_said_at_once():
    """14-PROP-02: nobody waits until the agent looks again."""

    async def play(here: World) -> None:
        seldom = Looking(drivers_s=600)
        async with here.agent(exports_compute=True, looking=seldom), four(here) as gpu:
            await until_exported(here, (K80, "ab", "ab"), (V100, "cd", "cd"))
            await put(here, "p", asking(WAIT, {"old": {named(K80): 1}}, old=1))
            await here.until_phase("Running", "p")
            gpu.properties = dict.fromkeys("abcd", V100)
            await until_exported(here, (K80, "a", "a"), (V100, "bcd", "bcd"))
            await here.pods.delete("p", NS, grace_period_s=1)
            await until_exported(here, (V100, "abcd", "abcd"))

    tell(play)


def test_a_node_is_switched_when_its_pods_are_over():
    """14-RAW-06, 14-NODE-08: until then devices are counted, and the node says what it waits for."""

    async def play(here: World) -> None:
        async with here.agent(), four(here):
            await until_counted(here, 4, 4)
            container = {**asking(WAIT, None), "resources": {"limits": {GPU: "1"}}}
            await put(here, "p", container)
            await here.until_phase("Running", "p")
            assert await exported(here) == {}
        async with here.agent(exports_compute=True), four(here):
            await until_counted(here, 4, 4)

            async def waits() -> list[str]:
                status = (await here.nodes.get(NODE)).fields["status"]
                return [
                    one["status"] for one in status["conditions"] if one["type"] == "ComputeResourcesPending"
                ]

            async def is_told() -> bool:
                return await waits() == ["True"]

            await until(is_told)
            await here.pods.delete("p", NS, grace_period_s=1)
            await until_exported(here, (K80, "ab", "ab"), (V100, "cd", "cd"))
            assert await waits() == ["False"]
        async with here.agent(), four(here):
            await until_counted(here, 4, 4)
            assert await exported(here) == {}
        async with here.agent(exports_compute=True), four(here):
            await until_exported(here, (K80, "ab", "ab"), (V100, "cd", "cd"))
            status = (await here.nodes.get(NODE)).fields["status"]
            assert GPU not in status["capacity"].keys() | status["allocatable"].keys()

    tell(play)


def test_where_the_server_keeps_no_compute_resources_devices_are_counted():
    """14-API-18, the node's half: what is dropped would otherwise serve nobody."""

    async def play(here: World) -> None:
        async with here.agent(exports_compute=True), four(here):
            await until_counted(here, 4, 4)
            assert await exported(here) == {}

    tell(play, gates={compute.limits.GATE: False})


def test_a_class_of_the_cluster_asks_nothing_of_a_node():
    """14-CLUS-02, AUTO-48: the node's half."""

    async def play(here: World) -> None:
        classes = here.client.resource("compute.allot.dev", "v1alpha1", "resourceclasses", namespaced=False)
        await classes.create(
            {
                "metadata": {"name": "fabric"},
                "spec": {"resourceName": "example.com/fabric", "scope": "Cluster"},
            }
        )
        async with here.agent(exports_compute=True):
            await put(here, "p", asking("true", None, fabric=1))
            await here.until_phase("Succeeded", "p")

    tell(play)
