"""Stories of nodes that are full: who runs, who is refused, and what becomes of the refused."""

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from allot import controllers
from allot.api import Object
from allot.apiserver import identities
from allot.base import Metrics, RandomIds, SystemClock
from allot.client import Client, InProcessTransport
from allot.fleet import fleet
from allot.hollow.machine import HollowMachine
from allot.hollow.registering import is_hollow
from allot.hollow.settings import wished
from allot.informers import Informer, Informers, ResourceId, Telemetry
from allot.informers.reflector import Report
from allot.node import FOLLOWED, Heard, Hosts, PodLoop
from node.objects import NS

from .test_pod_loop import allocate, make_claim, using
from .world import FAST, World, playing, tell, world

GPU = "example.com/gpu"


def asking(name: str = GPU, amount: str = "1") -> dict[str, Any]:
    resources = {"requests": {name: amount}, "limits": {name: amount}}
    return {"containers": [{"name": "main", "image": "app:1", "resources": resources}]}


@asynccontextmanager
async def claim_controller(here: World) -> AsyncIterator[None]:
    def client(user: Any) -> Client:
        return Client(InProcessTransport(here.server.api.handle, user))

    rng = random.Random(1)
    async with Informers(client(identities.CONTROLLER_MANAGER), rng) as informers:
        process = controllers.Process.of(
            informers,
            lambda controller: client(identities.controller(controller.account)),
            SystemClock(),
            rng,
            RandomIds(rng),
            Metrics(),
        )
        task = asyncio.create_task(controllers.run(process, [controllers.resourceclaims.CONTROLLER]))
        try:
            yield
        finally:
            task.cancel()
            await asyncio.wait((task,))


async def refused(here: World, name: str) -> tuple[str, str]:
    status = (await here.until_phase("Failed", name)).fields["status"]
    return status["reason"], status["message"]


def test_of_nine_pods_for_eight_devices_the_last_is_refused():
    """Two schedulers may both believe that the eighth device is theirs. The node knows better."""

    async def story(here: World) -> None:
        for number in range(9):
            await here.make_pod(f"p{number}", "plugin-0", spec=asking())
        assert await refused(here, "p8") == (
            f"OutOf{GPU}",
            f"Pod was rejected: Node didn't have enough resource: {GPU}, requested: 1, used: 8, capacity: 8",
        )
        for number in range(8):
            await here.until_phase("Running", f"p{number}")

        await here.pods.delete("p3", NS)
        await here.until_gone("p3")
        await here.make_pod("next", "plugin-0", spec=asking())
        await here.until_phase("Running", "next")

    tell(story, "plugin")


def test_the_room_of_a_task_is_free_when_the_task_has_ended():
    async def story(here: World) -> None:
        task = {**asking(amount="8"), "restartPolicy": "Never"}
        for name in ("first", "second"):
            await here.make_pod(name, "plugin-0", spec=task)
            await here.until_phase("Succeeded", name)

    tell(story, "plugin")


@pytest.mark.parametrize("name", ["cpu", "memory"])
def test_nobody_gets_more_of_a_machine_than_it_has(name):
    async def story(here: World) -> None:
        offered = (await here.nodes.get("plain-0")).fields["status"]["allocatable"][name]
        await here.make_pod("all", spec=asking(name, offered))
        await here.make_pod("more", spec=asking(name, "1"))
        assert (await refused(here, "more"))[0] == f"OutOf{name}"
        await here.until_phase("Running", "all")
        await here.make_pod("modest")
        await here.until_phase("Running", "modest")

    tell(story)


def test_a_pod_that_was_put_by_hand_where_its_resource_is_unknown_does_not_run_without_it():
    async def story(here: World) -> None:
        await here.make_pod(spec=asking())
        assert (await refused(here, "p"))[0] == f"OutOf{GPU}"

    tell(story)


def test_a_pod_whose_resource_is_served_by_a_claim_runs():
    async def story() -> None:
        async with world() as here:
            claim = await make_claim(here)
            pod = await here.pods.create(
                {"metadata": {"name": "p", "namespace": NS}, "spec": {**asking(), "schedulerName": "none"}}
            )
            owner = {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": pod.uid, "controller": True}
            await here.claims.patch("c", {"metadata": {"ownerReferences": [owner]}}, NS)
            await allocate(here, claim, pod)
            mapping = {"containerName": "main", "resourceName": GPU, "requestName": "r"}
            extended = {"resourceClaimName": "c", "requestMappings": [mapping]}
            status = {"status": {"extendedResourceClaimStatus": extended}}
            await here.pods.patch("p", status, NS, subresource="status")
            async with playing(here, fleet("plain", 1)):
                await here.pods.bind("p", NS, "plain-0")
                await here.until_phase("Running")

    asyncio.run(story())


def test_those_that_run_still_run_when_the_node_has_become_smaller():
    """Their room is theirs, also after a restart, and nobody else gets it."""

    async def story() -> None:
        async with world() as here:
            async with playing(here, fleet("plugin", 1)):
                for number in range(3):
                    await here.make_pod(f"p{number}", "plugin-0", spec=asking())
                    await here.until_phase("Running", f"p{number}")
                smaller = {"status": {"allocatable": {GPU: "2"}, "capacity": {GPU: "2"}}}
                await here.nodes.patch("plugin-0", smaller, subresource="status")
            await here.make_pod("a-newcomer", "plugin-0", spec=asking())  # the first by name
            async with playing(here, fleet("plugin", 1)):
                _, message = await refused(here, "a-newcomer")
                assert "requested: 1, used: 3, " in message
                for number in range(3):
                    assert await here.phase(f"p{number}") == "Running"

    asyncio.run(story())


def test_a_pod_that_is_refused_gives_its_claim_back():
    async def story(here: World) -> None:
        claim = await make_claim(here)
        pod = await here.make_pod(node="plugin-0", spec={**using("c"), **asking(amount="9")})
        await allocate(here, claim, pod)
        await refused(here, "p")
        assert await here.listed("plugin-0") == []
        async with claim_controller(here):

            async def given_back() -> bool:
                status = (await here.claims.get("c", NS)).fields.get("status") or {}
                return not status.get("reservedFor") and "allocation" not in status

            await here.until(given_back)

    tell(story, "plugin")


class Told:
    """An informer that hears what the story tells it, as far as the story says."""

    def __init__(self, what: ResourceId) -> None:
        self.informer = Informer(what)
        self.position = ""
        self._audience = self.informer.audience(Report, lambda: self.position, lambda: None)

    def tell(self, object: Object) -> None:
        for change in self.informer.cache.put(object):
            self._audience.changed(change)


def test_nobody_is_refused_while_the_end_of_another_may_not_have_been_told_yet():
    """A list is taken over piece by piece: `early` is told before the end of `late`, whose room it has."""

    async def story() -> None:
        async with world() as here:
            (machine,) = fleet("plugin", 1).members()
            await here.nodes.create(machine.node)
            told = pods, _, nodes, _ = [Told(what) for what in FOLLOWED]

            def of_node(name: str) -> Client:
                return Client(InProcessTransport(here.server.api.handle, identities.node(name)))

            clock = SystemClock()
            hosts = Hosts(is_hollow, of_node, clock, Telemetry(Metrics(), clock))
            machine = HollowMachine(clock, lambda pod: wished(pod, FAST))
            life = PodLoop(hosts, Heard(*(one.informer for one in told)), machine)
            nodes.informer.handle(life.on_node)
            pods.informer.handle(life.on_pod)
            playing = asyncio.create_task(life.playing.run())
            try:
                nodes.tell(await here.nodes.get("plugin-0"))
                late = await here.make_pod("late", "plugin-0", spec=asking(amount="8"))
                pods.position = late.resource_version
                pods.tell(late)
                await here.until_phase("Running", "late")
                pods.tell(await here.pods.get("late", NS))
                await here.pods.patch("late", {"status": {"phase": "Succeeded"}}, NS, subresource="status")

                pods.tell(await here.make_pod("early", "plugin-0", spec=asking(amount="8")))
                await asyncio.sleep(0.1)
                assert await here.phase("early") == "Pending"
                pods.tell(await here.pods.get("late", NS))
                await here.until_phase("Running", "early")
            finally:
                playing.cancel()
                await asyncio.wait((playing,))

    asyncio.run(story())


def test_a_node_that_has_more_by_now_is_asked_before_anybody_is_refused():
    async def story(here: World) -> None:
        await here.freeze("nodes")
        await here.nodes.patch("plain-0", {"status": {"allocatable": {GPU: "1"}}}, subresource="status")
        await here.make_pod(spec=asking())
        await here.until_phase("Running")

    tell(story)
