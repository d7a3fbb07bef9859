"""Informers of a part of a resource, also with the rights of a node, over the real server."""

import asyncio
import random
from typing import Any

import pytest

from allot.api import Request, Response, errors
from allot.apiserver import identities
from allot.base import Metrics
from allot.client import Client, InProcessTransport
from allot.informers import Change, Informers, ResourceId, SyncState
from allot.testing import TestServer, api_server
from informers.world import NS, QUICK, World, config_map, soon, tell, what_and_which

RED = ResourceId("", "v1", "configmaps", label_selector="colour=red")
BLUE = ResourceId("", "v1", "configmaps", label_selector="colour=blue")


def coloured(name: str, colour: str) -> dict[str, Any]:
    made = config_map(name)
    return {**made, "metadata": {**made["metadata"], "labels": {"colour": colour}}}


def test_an_object_comes_and_goes_with_what_selects_it():
    """REFL4: whoever no longer matches has ended for those who selected it."""

    async def story(here: World) -> None:
        writing = here.client.resource("", "v1", "configmaps")
        await writing.create(coloured("a", "red"))
        await writing.create(coloured("b", "blue"))
        red = here.informers.use(RED)
        heard: list[Change] = []
        red.handle(heard.append)
        await here.informers.synced(red)
        assert [one.name for one in red.cache] == ["a"]

        await writing.patch("b", {"metadata": {"labels": {"colour": "red"}}}, NS)
        await writing.patch("a", {"metadata": {"labels": {"colour": "blue"}}}, NS)
        await soon(lambda: [one.name for one in red.cache] == ["b"])
        assert what_and_which(heard) == [("added", "a"), ("added", "b"), ("deleted", "a")]

    tell(story)


def test_each_selection_is_watched_once():
    async def story(here: World) -> None:
        writing = here.client.resource("", "v1", "configmaps")
        await writing.create(coloured("a", "red"))
        red, blue = here.informers.use(RED), here.informers.use(BLUE)
        assert here.informers.use(RED) is red
        await here.informers.synced()
        assert (len(red.cache), len(blue.cache)) == (1, 0)
        assert here.wire.open_watches == 2
        here.informers.leave(blue)
        await soon(lambda: here.wire.open_watches == 1)
        assert red.report.state is SyncState.WATCHING

    tell(story)


def test_a_resource_says_what_was_selected_of_it():
    """For logs: two informers of one resource must not read the same there."""
    own = ResourceId("", "v1", "pods", field_selector="spec.nodeName=n", label_selector="a=b")
    assert str(own) == "pods.v1 (spec.nodeName=n, a=b)"
    assert str(ResourceId("apps", "v1", "deployments")) == "deployments.v1.apps"


def test_what_several_selections_of_one_resource_set_aside_is_shown_as_one_sum():
    """The metric names the resource; of two selections the last must not hide the first."""

    def bad(change: Change) -> None:
        raise ValueError("this handler reads nothing")

    async def story() -> None:
        metrics = Metrics()
        async with api_server() as server:
            writing = server.client().resource("", "v1", "configmaps")
            await writing.create(coloured("a", "red"))
            await writing.create(coloured("b", "blue"))
            informers = Informers(server.client(), random.Random(1), pace=QUICK, metrics=metrics)
            async with informers:
                for what in (RED, BLUE):
                    informers.use(what).handle(bad)
                await informers.synced()
                shown = metrics.text()
        assert 'allot_informer_objects_set_aside{resource="configmaps"} 2' in shown

    asyncio.run(asyncio.wait_for(story(), 30))


# -- the rights of a node --------------------------------------------------------------------------


def pods_of(node: str) -> ResourceId:
    return ResourceId("", "v1", "pods", field_selector=f"spec.nodeName={node}")


def itself(node: str) -> ResourceId:
    return ResourceId("", "v1", "nodes", namespaced=False, field_selector=f"metadata.name={node}")


def pod(name: str, node: str) -> dict[str, Any]:
    spec = {"nodeName": node, "containers": [{"name": "c", "image": "i"}]}
    return {"metadata": {"name": name, "namespace": NS}, "spec": spec}


class InPages:
    """A server that cannot begin a watch with what exists."""

    def __init__(self, transport: InProcessTransport) -> None:
        self._transport = transport

    async def send(self, request: Request) -> Response:
        if "sendInitialEvents" in request.query:
            raise errors.BadRequest("sendInitialEvents is forbidden")
        return await self._transport.send(request)

    async def close(self) -> None:
        await self._transport.close()


def node_client(server: TestServer, node: str, *, pages: bool = False) -> Client:
    transport = InProcessTransport(server.api.handle, identities.node(node))
    return Client(InPages(transport) if pages else transport)


@pytest.mark.parametrize("pages", [False, True], ids=["streamed", "in pages"])
def test_a_node_follows_its_own_pods_and_its_own_node_and_no_others(pages):
    """With exactly the rights of a node, from the first list on and when a watch begins anew."""

    async def story() -> None:
        async with api_server() as server:
            admin = server.client()
            nodes = admin.resource("", "v1", "nodes", namespaced=False)
            pods = admin.resource("", "v1", "pods")
            for name in ("n-1", "n-2"):
                await nodes.create({"metadata": {"name": name}})
                await pods.create(pod(f"first-on-{name}", name))
            client = node_client(server, "n-1", pages=pages)
            async with Informers(client, random.Random(1), pace=QUICK) as informers:
                own, me = informers.use(pods_of("n-1")), informers.use(itself("n-1"))
                await informers.synced()
                assert [one.name for one in own.cache] == ["first-on-n-1"]
                assert [one.name for one in me.cache] == ["n-1"]

                for name in ("n-2", "n-1"):
                    await pods.create(pod(f"second-on-{name}", name))
                    await nodes.patch(name, {"metadata": {"labels": {"seen": "yes"}}})
                await soon(lambda: own.cache.get("second-on-n-1", NS) is not None)
                await soon(lambda: "seen" in (me.cache.get("n-1").metadata.labels or {}))
                await informers.refresh(own, me)
                assert {one.name for one in own.cache} == {"first-on-n-1", "second-on-n-1"}
                assert [one.name for one in me.cache] == ["n-1"]

    asyncio.run(asyncio.wait_for(story(), 30))


@pytest.mark.parametrize(
    "what",
    [ResourceId("", "v1", "pods"), pods_of("n-2"), ResourceId("", "v1", "nodes", False), itself("n-2")],
    ids=str,
)
def test_a_node_cannot_follow_what_is_not_its_own(what):
    """S5: the informer says what it lacks, and holds nothing."""

    async def story() -> None:
        async with api_server() as server:
            admin = server.client()
            await admin.resource("", "v1", "nodes", namespaced=False).create({"metadata": {"name": "n-2"}})
            await admin.resource("", "v1", "pods").create(pod("theirs", "n-2"))
            async with Informers(node_client(server, "n-1"), random.Random(1), pace=QUICK) as informers:
                informer = informers.use(what)
                await soon(lambda: informer.report.failures > 1)
                assert informer.report.state is SyncState.FAILING
                assert "forbidden" in informer.report.problem
                assert not informer.synced and not len(informer.cache)

    asyncio.run(asyncio.wait_for(story(), 30))
