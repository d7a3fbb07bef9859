"""A whole cluster in one made-up hour, from one seed.

    report = simulate(seed=7)

Two copies of every controller stand for election on a real API server with a memory
store. For an hour of made-up time people, a scheduler and nodes do what they do while
faults strike: requests fail in every way (`faults`), components are killed at any
await and come back, one is frozen until its lease has run out, clocks jump. Then the
faults stop, a quiet time passes, and the checkers judge all that was seen.
"""

import asyncio
import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from allot.api import Transport, User
from allot.apiserver import ApiServer, Options, identities
from allot.base import Metrics, RandomIds
from allot.client import Client, InProcessTransport, LeaseSettings
from allot.controllers import ALL, Controller, Process, run
from allot.informers import Election, Informers
from allot.store import MemoryStore

from . import surroundings
from .checkers import judge
from .component import Component, Connect
from .faults import Faults
from .loop import VirtualClock, VirtualLoop
from .loop import run as run_virtual
from .recording import Recorder, Seen

HOUR_S = 3600.0
QUIET_S = 900.0
PODS = 50
_COPIES = ("a", "b")
_TROUBLE_EVERY_S = 120.0


@dataclass
class Report:
    seed: int
    wrong: list[str]
    struck: Counter[str]
    events: int
    history: Sequence[Seen] = field(repr=False, default=())

    @property
    def good(self) -> bool:
        return not self.wrong


def simulate(
    seed: int, *, seconds: float = HOUR_S, pods: int = PODS, controllers: Sequence[Controller] = ALL
) -> Report:
    """Run one world to its end. The same arguments give the same report, in any process."""
    report: Report = run_virtual(World(seed, seconds, pods, controllers).live())
    return report


class World:
    def __init__(self, seed: int, seconds: float, pods: int, controllers: Sequence[Controller]) -> None:
        self.seed = seed
        self.rng = random.Random(seed)
        self._seconds = seconds
        self._pods = pods
        self._controllers = controllers
        self._transports: list[InProcessTransport] = []

    async def live(self) -> Report:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, VirtualLoop)
        self._loop, self._clock = loop, VirtualClock(loop)
        self._store = MemoryStore()
        ids = RandomIds(random.Random(self.rng.random()))
        options = Options(clock=self._clock, ids=ids, watch_loop=False)
        self._api = ApiServer(self._store, options)
        await self._api.start()
        self._faults = Faults(random.Random(self.rng.random()), self._compact)
        await surroundings.furnish(Client(self._connect(identities.ADMIN)))
        recorder = Recorder(Client(self._connect(identities.ADMIN)))
        recorder.start()
        await self._pass()
        history = await recorder.stop()
        await self._api.close()
        wrong = judge(history) + self._failures()
        return Report(self.seed, wrong, self._faults.struck, len(history), history)

    async def _pass(self) -> None:
        """The hour with its faults, then the quiet time."""
        self._components = [self._copy(name) for name in _COPIES]
        kubelets = asyncio.create_task(
            surroundings.kubelets(self._client(), self._generator()), name="kubelets"
        )
        scheduling = self._component("scheduler", identities.SCHEDULER)
        for component in (*self._components, scheduling):
            component.start()
        trouble = asyncio.create_task(self._trouble([*self._components, scheduling]), name="trouble")
        people = surroundings.people(self._client(), self._generator(), self._pods, self._seconds)
        await asyncio.gather(people, asyncio.sleep(self._seconds))
        trouble.cancel()
        await asyncio.wait([trouble])
        self._faults.active = False
        await asyncio.sleep(QUIET_S)
        for component in (*self._components, scheduling):
            await component.stop()
        kubelets.cancel()
        await asyncio.wait([kubelets])
        self._all = [*self._components, scheduling]

    async def _trouble(self, components: Sequence[Component]) -> None:
        """Kill, freeze and jump, from time to time."""
        rng = self._generator()
        while True:
            await asyncio.sleep(rng.expovariate(1 / _TROUBLE_EVERY_S))
            victim = components[rng.randrange(len(components))]
            match rng.choice(("crash", "freeze", "jump", "crash")):
                case "crash":
                    self._faults.struck["crash"] += 1
                    await victim.kill()
                    await asyncio.sleep(rng.uniform(0, 30))
                    victim.start()
                case "freeze":  # two leaders, for a moment
                    self._faults.struck["freeze"] += 1
                    victim.freeze(self._loop.time() + rng.uniform(10, 40))
                case "jump":
                    self._faults.struck["jump"] += 1
                    self._loop.jump(rng.uniform(1, 20))

    def _copy(self, name: str) -> Component:
        async def main(connect: Connect) -> None:
            rng = self._generator()
            client = Client(connect(identities.CONTROLLER_MANAGER))
            ids, metrics = RandomIds(rng), Metrics()
            leases = client.resource("coordination.k8s.io", "v1", "leases")
            settings = LeaseSettings("kube-controller-manager", "kube-system", f"{name}-{ids.uid()}")
            async with Informers(client, rng) as informers:
                process = Process.of(
                    informers,
                    lambda controller: Client(connect(identities.controller(controller.account))),
                    self._clock,
                    rng,
                    ids,
                    metrics,
                )
                await run(process, self._controllers, Election(settings, leases, self._clock))

        return Component(f"controllers {name}", main, self._connect, self._faults)

    def _component(self, name: str, user: User) -> Component:
        async def main(connect: Connect) -> None:
            await surroundings.scheduler(Client(connect(user)), self._generator())

        return Component(name, main, self._connect, self._faults)

    def _connect(self, user: User) -> Transport:
        transport = InProcessTransport(self._api.handle, user)
        self._transports.append(transport)
        return transport

    def _client(self) -> Client:
        return Client(self._connect(identities.ADMIN))

    def _generator(self) -> random.Random:
        """A generator of its own for each actor, so that one's luck is not another's."""
        return random.Random(self.rng.random())

    async def _compact(self) -> None:
        await self._store.compact(await self._store.revision())

    def _failures(self) -> list[str]:
        return [
            f"{component.name} ended by itself: {error!r}"
            for component in self._all
            for error in component.failures
        ]
