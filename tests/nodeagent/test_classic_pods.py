"""Pods with classic claims on a real node: scheduled, prepared by a plugin, run as processes (KEP-3063)."""

from typing import Any

from allot.api import Object, Request, Response, errors
from allot.client import HttpsTransport
from allot.wire import CallFailed, Code
from api.classic.objects import DRIVER, allocated, claim, class_

from . import world as nodeagent_world
from .plugins import until
from .test_classic import ClassicPlugin
from .world import NODE, NS, World, tell

ON_WORKER = {
    "nodeSelectorTerms": [
        {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [NODE]}]},
    ]
}


def of_v1alpha1(here: World, plural: str = "resourceclaims", namespaced: bool = True) -> Any:
    return here.client.resource("resource.k8s.io", "v1alpha1", plural, namespaced=namespaced)


async def plugin_of(here: World, **more: Any) -> ClassicPlugin:
    plugin = await ClassicPlugin(here.root, **more).start()
    here.plugins.append(plugin)  # type: ignore[arg-type]
    return plugin


async def allocate(here: World, name: str = "c", **allocation: Any) -> Object:
    """A claim of its own class, allocated at once as its driver does it."""
    await of_v1alpha1(here, "resourceclasses", namespaced=False).create(class_())
    claims = of_v1alpha1(here)
    made = await claims.create(claim(name=name, allocationMode="Immediate"))
    status = allocated(resourceHandle="h", availableOnNodes=ON_WORKER, **allocation)
    await claims.patch(name, {"status": status}, NS, subresource="status")
    return made


def container(name: str, script: str, *uses: str) -> dict[str, Any]:
    claims = [{"name": one} for one in uses]
    return {"name": name, "image": "none", "command": ["sh", "-c", script], "resources": {"claims": claims}}


def test_containers_share_a_claim_and_whoever_does_not_name_it_has_nothing_of_it():
    """3063-CORE-06, 3063-SHARE-01, 3063-GOAL-02, 3063-GOAL-11, 3063-GRPC-07, 3063-ALLOC-03, 3063-CLASS-06,
    3063-PARAM-08: class and parameters may be gone by then. 3063-RISK-04: the plugin has no credential at
    all. 3063-TEST-01, 3063-TEST-04: the test answers the calls."""

    async def play(here: World) -> None:
        async with here.agent():
            plugin = await plugin_of(here)
            here.inject("a")
            await allocate(here)
            await of_v1alpha1(here, "resourceclasses", namespaced=False).delete("gpu")
            script = 'echo "has $GPU"'
            containers = [container(one, script, "gpu") for one in ("one", "two")]
            entries = [{"name": "gpu", "source": {"resourceClaimName": "c"}}]
            await here.pod("", containers=[*containers, container("none", script)], resourceClaims=entries)
            await here.until_phase("Succeeded")
            said = {one: await here.log(container=one) for one in ("one", "two", "none")}
            assert said == {"one": "has a\n", "two": "has a\n", "none": "has \n"}
            assert [one.resource_handle for one in plugin.asked] == ["h"]
            assert len(plugin.released) == 1
            assert await here.listed() == []

    tell(play)


def test_a_pod_is_gone_only_when_its_claim_is_unprepared_and_only_then_is_the_claim_anybody_elses():
    """3063-FLOW-14, 3063-GRPC-16, 3063-NODE-04, 3063-NODE-05, 3063-GOAL-06."""

    async def play(here: World) -> None:
        async with here.agent():
            plugin = await plugin_of(here)
            here.inject("a")
            await allocate(here)
            made = await here.pod("exec sleep 600", claim="c", terminationGracePeriodSeconds=1)
            await here.until_phase("Running")
            plugin.fails = CallFailed(Code.INTERNAL, "not now")
            await here.pods.delete("p", NS)
            await until(lambda: len(plugin.released) >= 2)
            assert (await here.pods.get("p", NS)).metadata.deletion_timestamp
            held = (await here.claims.get("c", NS)).fields["status"]
            assert held["reservedFor"] == [{"resource": "pods", "name": "p", "uid": made.uid}]  # 3063-REF-03
            assert await here.listed() == ["c"]
            plugin.fails = None
            await here.until_gone()

            async def is_free() -> bool:
                return not (await here.claims.get("c", NS)).fields["status"].get("reservedFor")

            await until(is_free)
            left = (await here.claims.get("c", NS)).fields["status"]
            assert (left["driverName"], left["allocation"]["resourceHandle"]) == (DRIVER, "h")

    tell(play)


def test_a_pod_and_its_successor_use_one_allocation():
    """3063-GOAL-03, 3063-FLOW-18, 3063-MODE-04: it is prepared for each, and allocated once."""

    async def play(here: World) -> None:
        async with here.agent():
            plugin = await plugin_of(here)
            here.inject("a")
            made = await allocate(here)
            for name in ("p", "q"):
                await here.pod('echo "has $GPU"', name=name, claim="c")
                await here.until_phase("Succeeded", name)
                assert await here.log(name) == "has a\n"
            now = await here.claims.get("c", NS)
            assert (now.uid, now.fields["status"]["allocation"]["resourceHandle"]) == (made.uid, "h")
            assert [len(plugin.asked), len(plugin.released)] == [2, 2]

    tell(play)


def test_a_plugin_that_comes_late_is_waited_for_and_one_that_refuses_says_why():
    """3063-GRPC-12, 3063-GRPC-20: no container starts before."""

    async def play(here: World) -> None:
        async with here.agent():
            here.inject("a")
            await allocate(here)
            await here.pod('echo "has $GPU"', claim="c")
            said = await here.until_waiting("ClaimsNotReady")
            assert f"driver {DRIVER} is not registered on this node" in said
            plugin = await plugin_of(here, fails=CallFailed(Code.NOT_FOUND, "no such resource"))
            await until(lambda: len(plugin.asked) >= 1)
            assert not (await here.state()).get("containerID")
            plugin.fails = None
            await here.until_phase("Succeeded")

    tell(play)


class Cut(HttpsTransport):
    """The way of an agent to its server, which somebody may cut."""

    is_cut = False

    async def send(self, request: Request) -> Response:
        if Cut.is_cut:
            raise errors.Unavailable("the server is away")
        return await super().send(request)


def test_without_its_server_and_with_a_new_agent_containers_go_on_and_begin_again(monkeypatch):
    """3063-TROUBLE-01, 3063-PRR-09: the agent has pod and claim, and its plugin is on the node."""
    monkeypatch.setattr(nodeagent_world, "HttpsTransport", Cut)

    async def play(here: World) -> None:
        starts, over = here.folder / "starts", here.folder / "over"
        script = f'echo "$GPU" >> {starts}; while [ ! -e {over} ]; do sleep 0.05; done; rm {over}'
        try:
            async with here.agent():
                await plugin_of(here)
                here.inject("a")
                await allocate(here)
                await here.pod(script, claim="c", restartPolicy="Always")
                await here.until_phase("Running")
                Cut.is_cut = True
                over.touch()
                await until(lambda: starts.read_text() == "a\n" * 2)
                Cut.is_cut = False
                await here.until_phase("Running")
            async with here.agent():
                await here.until_phase("Running")
                assert starts.read_text() == "a\n" * 2
                over.touch()
                await until(lambda: starts.read_text() == "a\n" * 3)
        finally:
            Cut.is_cut = False

    tell(play)
