"""Nodes whose machines follow a script: they come and go, fall silent, and their pods run and end.

A pod lives on them as on any node (`node`), with the rights of a node. How long its containers
take to start, to run and to stop, and how they end, is decided by lot; and a machine that is lost
takes with it whatever ran there. The nodes' way to the server has no faults: what the server
cannot do for them is somebody's bug.
"""

import asyncio
import contextlib
import random
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from allot.api import Object, Transport, User, age, core, errors
from allot.apiserver import identities
from allot.base import Clock, Metrics
from allot.client import Client
from allot.hollow import HollowMachine, Wishes
from allot.informers import Informers, Pace, Telemetry
from allot.node import FOLLOWED, Heard, Hosts, LeaseLoop, PodLoop, lead

from . import things
from .agents import RENEWING, Agents
from .compute_things import exported
from .lots import Lots
from .recording import Recorder
from .step import NODES, name_of
from .things import Fields, Things
from .ways import NodeWay, tell_of_failure

DEVICES_PER_NODE = 4
_PACE = Pace(first_s=0.2, longest_s=5.0, absent_s=60.0, watch_s=3600)


class Nodes:
    def __init__(
        self,
        connect: Callable[[User], Transport],
        record: Recorder,
        lots: Lots,
        clock: Clock,
        *,
        shares: bool = False,
        agents: Agents | None = None,
        exports: bool = False,
    ) -> None:
        """With `shares` nodes have devices in parts as well, for a scheduler that knows how to; with
        `exports` they have compute resources.

        `agents` are nodes that are more than a script.
        """
        self._shares = shares
        self._exports = exports
        self._agents = agents if agents is not None else Agents()
        self._connect = connect
        self._things = Things(Client(connect(identities.ADMIN)))
        self._record = record
        self._lots = lots
        self._clock = clock
        self._up: set[str] = set()
        self._silent: set[str] = set()
        self._clients: dict[str, Client] = {}
        self._machine = HollowMachine(clock, self._script)
        self._publishes = lots.draw("nodes publish what they prepare")[0] < 0.7
        self._task: asyncio.Task[None] | None = None

    # -- coming and going -----------------------------------------------------------------------

    async def furnish(self) -> None:
        listening = asyncio.Event()
        self._task = asyncio.create_task(self._lead(listening), name="nodes")
        self._task.add_done_callback(_tell_of_failure)
        await listening.wait()
        for number in range(NODES):
            await self.join(name_of(number))

    async def join(self, node: str) -> None:
        """A node comes, or comes back with nothing running."""
        if node in self._agents:
            self._agents.join(node)
            return
        if node in self._up:
            return
        self._up.add(node)
        self._silent.discard(node)
        made = things.node(node, [])
        if self._exports:
            made["status"]["computeResources"] = exported()
        await self._register(made)
        await self.publish(node, DEVICES_PER_NODE)
        if self._shares:
            await self.share(node)

    async def join_as(self, made: Fields) -> None:
        """A node comes that somebody was asked for; it has published nothing yet."""
        self._up.add(made["metadata"]["name"])
        await self._register(made)

    async def _register(self, made: Fields) -> None:
        made["status"]["conditions"] = [_ready(self._clock)]
        with contextlib.suppress(errors.Conflict):
            await self._things.nodes.create(made)

    async def share(self, node: str) -> None:
        """It has devices in parts as well."""
        for shared in things.sharing_slices(node):
            await _insist(self._things.resourceslices.create(shared))

    async def export(self, node: str, resources: list[dict[str, Any]]) -> None:
        """Its device plugin says otherwise what it has."""
        if node in self._agents:
            self._agents.export(node, resources)
        elif node in self._up:
            patch = {"status": {"computeResources": resources}}
            await _insist(self._things.nodes.patch(node, patch, subresource="status"))

    async def lose(self, node: str) -> None:
        """The machine is gone, and so is its Node. What ran there runs no more."""
        if node in self._agents:
            await self._agents.lose(node, self._things.nodes)
            return
        if node not in self._up:
            return
        self._up.discard(node)
        self._machine.lose(node)
        await _insist(self._things.nodes.delete(node))
        for one in self._record.all("resourceslices"):
            if one.fields["spec"]["nodeName"] == node:
                await _insist(self._things.resourceslices.delete(one.name))

    def slices(self, node: str) -> list[Object]:
        """Of its plain devices."""
        published = self._record.all("resourceslices")
        return [one for one in published if one.fields["spec"]["pool"]["name"] == node]

    async def publish(self, node: str, devices: int, generation: int = 0, pause_s: float = 0.0) -> None:
        """As a driver does: the new slices first, in parts perhaps, then the old ones go."""
        if node in self._agents:
            self._agents.publish(node, devices, generation if pause_s else 0)
            return
        old = self.slices(node)
        least = max((one.fields["spec"]["pool"]["generation"] for one in old), default=0) + 1
        number = max(generation, least)
        for part in things.slices_of(node, devices, number, 2 if pause_s else 1):
            part["metadata"]["name"] += f"-{number}"
            await _insist(self._things.resourceslices.create(part))
            await asyncio.sleep(pause_s)
        for one in old:
            await _insist(self._things.resourceslices.delete(one.name))

    def is_up(self, node: str) -> bool:
        return node in self._up or node in self._agents

    def silence(self, node: str) -> None:
        """It runs, and nobody hears of it."""
        self._silent.add(node)
        self._agents.silence(node, True)

    def hear(self, node: str) -> None:
        self._silent.discard(node)
        self._agents.silence(node, False)

    async def reboot(self, node: str, down_s: float) -> None:
        if node in self._agents:
            await self._agents.reboot(node, down_s)

    async def take_driver_away(self, node: str, driver: str, seconds: float) -> None:
        if node in self._agents:
            await self._agents.take_away(node, driver, seconds)

    def count(self, node: str, counts: Mapping[str, int]) -> None:
        """What is there of counters, on a machine that has some."""
        if node in self._agents:
            self._agents.count(node, counts)

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    # -- their life -----------------------------------------------------------------------------

    async def _lead(self, listening: asyncio.Event) -> None:
        """All of them, as hollow nodes are led: one set of informers, and each writes as itself."""
        rng: random.Random = self._lots.generator("nodes")
        client = Client(self._connect(identities.HOLLOW_NODES))
        async with Informers(client, rng, pace=_PACE) as informers:
            heard = Heard.of(informers, FOLLOWED)
            await informers.synced()
            telemetry = Telemetry(Metrics(), self._clock)
            hosts = Hosts(lambda node: node.name in self._up, self._client, self._clock, telemetry)
            leases = LeaseLoop(hosts, heard, RENEWING, _awake)
            pods = PodLoop(hosts, heard, self._machine, publishes=self._publishes)
            await lead(heard, leases, pods, listening.set)

    def _client(self, node: str) -> Client:
        if node not in self._clients:
            way = self._connect(identities.node(node))
            self._clients[node] = Client(NodeWay(way, lambda: node in self._silent))
        return self._clients[node]

    def _script(self, pod: core.Pod) -> Wishes:
        """What a lot decides about a pod."""
        metadata = pod.metadata
        lot = self._lots.draw(f"life of {metadata.namespace}/{metadata.name} {metadata.creation_timestamp}")
        lasts_s = None if pod.spec.restart_policy == "Always" else 5 + 600 * lot[1] ** 2
        return Wishes(1 + 9 * lot[0], lasts_s, 20 * lot[2], int(lot[3] < 0.15))


def _ready(clock: Clock) -> Fields:
    return {"type": "Ready", "status": "True", "lastHeartbeatTime": age.timestamp(clock.now())}


def _awake(node: Object, now: str) -> list[Fields] | None:
    """Who was given up on says that it is there."""
    conditions = (node.fields.get("status") or {}).get("conditions") or ()
    if all(one["status"] == "True" for one in conditions if one["type"] == "Ready"):
        return None
    ready = {"type": "Ready", "status": "True", "lastHeartbeatTime": now, "lastTransitionTime": now}
    return [ready, *(one for one in conditions if one["type"] != "Ready")]


async def _insist(done: Awaitable[Any]) -> None:
    with contextlib.suppress(errors.Conflict, errors.NotFound, errors.Forbidden):
        await done


def _tell_of_failure(task: "asyncio.Task[None]") -> None:
    if not task.cancelled() and (failure := task.exception()) is not None:
        tell_of_failure(task.get_name(), failure)
