"""Hollow nodes in a made-up world: their requests are lost, their watches break, they are killed.

N1 and N2 hold at every revision; once things are quiet every pod has ended that should
have, and no node lists a claim that nobody uses.
"""

import asyncio
import random
from collections.abc import Iterator
from typing import Any

import pytest

from allot import controllers, hollow, scheduler
from allot.api import Gates, Object
from allot.apiserver import ApiServer, Options, identities
from allot.base import Metrics, RandomIds
from allot.client import Client, InProcessTransport
from allot.fleet import fleet
from allot.informers import Informers, Pace, Telemetry
from allot.sim.checkers import judge
from allot.sim.checkers.nothing_leaks import NothingLeaks
from allot.sim.checkers.released import Released
from allot.sim.checkers.running_pods import RunningPods
from allot.sim.checkers.started import Started
from allot.sim.component import Component
from allot.sim.faults import Faults
from allot.sim.journal import Journal
from allot.sim.loop import VirtualClock, run
from allot.sim.lots import Lots
from allot.sim.recording import Recorder
from allot.store import MemoryStore
from node.objects import NS

PODS, TROUBLE_S, QUIET_S = 24, 600.0, 600.0
PACE = Pace(first_s=0.2, longest_s=5.0, absent_s=60, watch_s=60)


class World:
    def __init__(self, seed: int) -> None:
        self.lots = Lots(seed)
        self.rng = self.lots.generator("people")

    async def live(self) -> tuple[list[str], int]:
        loop = asyncio.get_running_loop()
        self.clock = VirtualClock(loop)
        self.store = MemoryStore()
        ids = RandomIds(self.lots.generator("ids"))
        self.api = ApiServer(self.store, Options(clock=self.clock, ids=ids, watch_loop=False))
        await self.api.start()
        self.faults = Faults(self.lots, Journal(loop.time), self.compact)
        record = Recorder(self.client())
        record.start()
        rest = asyncio.create_task(self.everybody_else())
        nodes = Component("hollow", self.play, self.connect, self.faults)
        nodes.start()
        await asyncio.gather(self.people(), self.trouble(nodes))
        self.faults.active = False
        await asyncio.sleep(QUIET_S)
        found = [*self.at_rest(record), *map(repr, nodes.failures)]
        await nodes.stop()
        rest.cancel()
        await asyncio.wait([rest])
        started = Started()
        found += judge(await record.stop(), [started, Released(), RunningPods(), NothingLeaks()])
        await self.api.close()
        assert self.faults.struck.total() > 20
        return found, started.starts

    async def play(self, connect: Any) -> None:
        component = Client(connect(identities.HOLLOW_NODES))
        actors = hollow.Actors(
            component,
            lambda name: Client(connect(identities.node(name))),
            self.clock,
            hollow.Renewing(),
        )
        async with Informers(component, self.lots.generator("hollow"), pace=PACE) as informers:
            process = hollow.Process(actors, informers, Telemetry(Metrics(), self.clock))
            await hollow.run(process, fleet("gpu", 2), hollow.Stages(start_s=1, run_s=20, stop_s=2))

    async def everybody_else(self) -> None:
        """Controllers and scheduler, which have no faults here: others try that."""
        rng, metrics = random.Random(1), Metrics()
        async with Informers(self.client(identities.CONTROLLER_MANAGER), rng, pace=PACE) as informers:
            process = controllers.Process.of(
                informers,
                lambda controller: self.client(identities.controller(controller.account)),
                self.clock,
                rng,
                RandomIds(rng),
                metrics,
            )
            around = scheduler.Dependencies(
                self.client(identities.SCHEDULER),
                informers,
                self.clock,
                process.ids,
                metrics,
                process.telemetry,
                Gates(),
            )
            await asyncio.gather(controllers.run(process, controllers.ALL), scheduler.run(around))

    async def people(self) -> None:
        await asyncio.gather(*(self.person(f"p{number}") for number in range(PODS)))

    async def person(self, name: str) -> None:
        pods = self.client().resource("", "v1", "pods")
        await asyncio.sleep(self.rng.uniform(20, TROUBLE_S * 0.8))
        lives = self.rng.random() < 0.5
        spec = {
            "restartPolicy": "Always" if lives else "Never",
            "resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "one-gpu"}],
            "containers": [{"name": "main", "image": "app:1"}],
        }
        await pods.create({"metadata": {"name": name, "namespace": NS}, "spec": spec})
        if lives:
            await asyncio.sleep(self.rng.uniform(0, 60))
            force = 0 if self.rng.random() < 0.3 else None
            await pods.delete(name, NS, grace_period_s=force)

    async def trouble(self, nodes: Component) -> None:
        rng = self.lots.generator("trouble")
        for _ in range(6):
            await asyncio.sleep(rng.uniform(10, TROUBLE_S / 6))
            await nodes.kill_at_work(rng.randrange(1, 10), rng.randrange(0, 6), 30.0)
            await asyncio.sleep(rng.uniform(0, 10))
            nodes.start()

    def at_rest(self, record: Recorder) -> Iterator[str]:
        used = set()
        for pod in record.all("pods"):
            phase = pod.fields["status"]["phase"]
            if phase != "Succeeded":
                yield f"at rest: {pod.name} is {phase}"
        for listed in record.all("preparedclaims"):
            extra = {one["uid"] for one in listed.fields["status"]["claims"]} - used
            if extra:
                yield f"N2: {listed.name} still lists {extra}"
        nodes: list[Object] = record.all("nodes")
        for node in nodes:
            known = {one["type"]: one["status"] for one in node.fields["status"]["conditions"]}
            if known["Ready"] != "True":
                yield f"at rest: {node.name} is not ready"
        if len(nodes) != 2:
            yield f"at rest: {len(nodes)} nodes"

    def connect(self, user: Any) -> InProcessTransport:
        return InProcessTransport(self.api.handle, user)

    def client(self, user: Any = identities.ADMIN) -> Client:
        return Client(self.connect(user))

    async def compact(self) -> None:
        revision = await self.store.revision()
        await asyncio.sleep(0.01)
        await self.store.compact(revision)


@pytest.mark.parametrize("seed", [*range(6), 136, 180])
def test_whatever_strikes_no_pod_starts_too_early_and_no_claim_is_kept_too_long(seed):
    """136 and 180: a write of a killed process came late, over the list of the next one."""
    wrong, starts = run(World(seed).live())
    assert not wrong, "\n".join(wrong)
    assert starts > PODS / 3  # a world in which nothing starts shows nothing
