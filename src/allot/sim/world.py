"""A whole cluster in one made-up hour, from one seed.

    report = simulate(seed=7)

Two copies of every controller stand for election on a real API server, in some worlds on
two of them that share a store, which is in memory and lets others go first now and then.
In some worlds servers have transactions, in some they have none, and in some only the first; in half of them
servers make the claims of new pods.
For an hour of made-up time people and nodes do what the script says while faults strike:
requests fail in every way (`faults`), components die at work and come back, freeze until
their lease has run out, clocks are set. Then the faults stop, a quiet time passes, and the
checkers judge all that was seen.
"""

import asyncio
import logging
import random
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from allot.api import User
from allot.apiserver import ApiServer, Options, identities
from allot.base import Metrics, RandomIds
from allot.client import Client, InProcessTransport, LeaseSettings
from allot.controllers import ALL, Controller, Process, run
from allot.informers import Election, Informers, Pace

from . import script
from .agents import RENEWING, Agents, wishes
from .autoscaling import autoscalers
from .checkers import all_checkers, judge
from .classic_drivers import drive
from .classic_things import DRIVERS
from .component import Component, Connect, Main
from .faults import Faults
from .group_things import BOASTER
from .group_things import KINDS as GROUPS
from .journal import Entry, Journal
from .loop import VirtualClock, VirtualLoop
from .loop import run as run_virtual
from .lots import Lots
from .machines import Machine
from .node_groups import NodeGroups
from .nodes import Nodes
from .people import People
from .recording import EVENTS, FOLLOWED, PROVIDER, Notes, Recorder, Seen
from .schedulers import schedulers
from .step import AUTOSCALERS, CLASSIC_DRIVERS, Scope, Step
from .together import Together
from .trouble import KINDS, OF_MACHINES, Trouble
from .unsteady import UnsteadyStore

QUIET_S = 900.0
AFTERWARDS_S = 30.0
"""How long faults go on after the last step of a script that was cut short."""

SHARE_WITH_TWO_SERVERS = 0.25
SHARE_WITH_CLAIMS_MADE = 0.5
"""Of the worlds, in which servers make the claims of a pod with it."""
SHARE_WITH_BOASTERS = 0.5
"""Of worlds with an autoscaler: one of its groups promises more than its nodes have."""
STILL_S = 120.0
"""At the end of the quiet time, when nobody asks for nodes any more."""
_HEARD_S = 0.5
_PACE = Pace(watch_s=1800)
_HOUSEKEEPING_S, _BOOKMARK_S = 10.0, 300.0
"""Hours are made up, and events are not: what happens every second in production costs most here."""


@dataclass(frozen=True, slots=True)
class Cut:
    """Which part of a seed's story is played: all of it, unless somebody looks for a shorter one."""

    steps: int | None = None  # so many from the beginning
    without_steps: Collection[int] = ()  # by their place in the script
    without_faults: Collection[str] = ()  # kinds, or single ones


@dataclass
class Report:
    seed: int
    wrong: list[str]
    struck: Counter[str]
    steps: int
    pods: int
    events: int
    history: Sequence[Seen] = field(repr=False, default=())
    journal: Sequence[Entry] = field(repr=False, default=())

    @property
    def good(self) -> bool:
        return not self.wrong


def simulate(
    seed: int,
    *,
    scope: Scope | None = None,
    cut: Cut | None = None,
    controllers: Sequence[Controller] = ALL,
    schedulers: Mapping[str, Main] | None = None,
) -> Report:
    """Run one world to its end. The same arguments give the same report, in any process."""
    world = World(seed, scope or Scope(), cut or Cut(), controllers, schedulers)
    report: Report = run_virtual(world.live())
    return report


class World:
    def __init__(
        self,
        seed: int,
        scope: Scope,
        cut: Cut,
        controllers: Sequence[Controller],
        schedulers: Mapping[str, Main] | None,
    ) -> None:
        self._seed = seed
        self._lots = Lots(seed)
        self._scope = scope
        self._cut = cut
        self._controllers = controllers
        self._schedulers = schedulers
        self._script = script.write(self._lots, scope)
        self._has_classic = scope.has_classic(self._lots)
        self._has_compute = scope.has_compute(self._lots)
        self._has_numeric = scope.has_numeric(self._lots)
        self._has_autoscaler = scope.has_autoscaler(self._lots)
        self._groups: NodeGroups | None = None
        self._together = Together.drawn(self._lots.draw("transactions")[0])
        self._makes_claims = self._lots.draw("claims with pods")[0] < SHARE_WITH_CLAIMS_MADE
        self._connections = 0
        self._clocks: dict[str, VirtualClock] = {}
        self._components: dict[str, Component] = {}

    async def live(self) -> Report:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, VirtualLoop)
        self._loop = loop
        clock = VirtualClock(loop)
        self._store = UnsteadyStore(self._lots.generator("store"))
        count = 2 if self._lots.draw("servers")[0] < SHARE_WITH_TWO_SERVERS else 1
        ids = RandomIds(self._lots.generator("ids"))
        self._servers = [
            ApiServer(
                self._store,
                Options(
                    clock=clock,
                    ids=ids,
                    housekeeping_s=_HOUSEKEEPING_S,
                    bookmark_s=_BOOKMARK_S,
                    watch_loop=False,
                    threads=False,
                    transactions=self._together.of_server(number),
                    claims_with_pods=self._makes_claims,
                ),
            )
            for number in range(count)
        ]
        for server in self._servers:
            await server.start()
        self._journal = Journal(loop.time)
        self._faults = Faults(self._lots, self._journal, self._compact, frozenset(self._cut.without_faults))
        followed = (*FOLLOWED, EVENTS) if self._has_autoscaler else FOLLOWED
        record = Recorder(self._client(), followed)
        record.start()
        machines = Notes(lambda: self._store.now)
        self._asked = Notes(lambda: self._store.now, PROVIDER)
        agents = self._agents(record, machines)
        with _Bugs() as bugs:
            shares = self._scope.real_scheduler
            nodes = Nodes(
                self._connect,
                record,
                self._lots,
                clock,
                shares=shares,
                agents=agents,
                exports=self._has_compute,
            )
            if self._has_autoscaler:
                self._groups = self._node_groups(nodes)
            people = People([self._client() for _ in self._servers], record, nodes, self._groups)
            await people.furnish()
            agents.furnish(self._add)
            if self._has_classic:
                await people.furnish_classic()
            if self._has_compute:
                await people.furnish_compute()
            if self._has_numeric:
                await people.furnish_numeric()
            await nodes.furnish()
            if self._groups is not None:
                await self._groups.furnish()
            played = await self._pass(people, nodes, agents)
            await nodes.stop()
        history = await record.stop([*machines.seen, *self._asked.seen])
        for server in self._servers:
            await server.close()
        checkers = all_checkers(
            real_scheduler=self._scope.real_scheduler,
            until_s=loop.time(),
            transactions=self._together is not Together.NONE,
            whole_placements=self._scope.real_scheduler and self._together is Together.ALL,
            machines=bool(machines.seen),
            late_autoscaler_s=self._late_s() if self._has_autoscaler else None,
        )
        wrong = [*judge(history, checkers), *self._failures(), *bugs.found]
        pods = sum(seen.resource == "pods" and seen.type == "ADDED" for seen in history)
        return Report(
            self._seed,
            wrong,
            self._faults.struck + people.misused,
            played,
            pods,
            len(history),
            history,
            self._journal.entries,
        )

    async def _pass(self, people: People, nodes: Nodes, agents: Agents) -> int:
        """The hour with its faults, then the quiet time. How many steps were played."""
        for name in ("a", "b"):
            self._add(f"controllers {name}", self._control(f"controllers {name}"))
        given = self._schedulers or schedulers(
            self._scope,
            self._luck,
            self._clocks,
            _lease,
            _PACE,
            mixed=self._together is Together.SOME,
            classic=self._has_classic,
        )
        for name, driver in zip(CLASSIC_DRIVERS, DRIVERS, strict=True) if self._has_classic else ():
            self._add(name, self._drive(name, driver))
        for name, main in given.items():
            self._add(name, main)
        if self._groups is not None:
            scaling = autoscalers(self._groups, self._asked, self._luck, self._clocks, _lease, _PACE)
            for name, main in scaling.items():
                self._add(name, main)
        for component in self._components.values():
            component.start()
        steps = self._steps()
        trouble = Trouble(self._loop, self._components, self._clocks, self._faults, nodes)
        await self._play(steps, people, trouble)
        self._faults.active = False
        await asyncio.sleep(QUIET_S - STILL_S)
        await self._let_nodes_be()
        await asyncio.sleep(STILL_S)
        agents.left()
        for component in self._components.values():
            await component.stop()
        return len(steps)

    def _steps(self) -> list[Step]:
        first = self._script[: self._cut.steps]
        return [step for place, step in enumerate(first) if place not in self._cut.without_steps]

    async def _play(self, steps: Sequence[Step], people: People, trouble: Trouble) -> None:
        began_s = self._loop.time()
        doing: list[asyncio.Task[None]] = []
        for step in steps:
            await asyncio.sleep(max(0.0, began_s + step.at_s - self._loop.time()))
            if step.deed in (*KINDS, *OF_MACHINES):
                doing.append(asyncio.create_task(trouble.do(step), name=str(step)))
            elif step.deed == "correct groups":
                self._journal.note(step.line, str(step))
                doing.append(asyncio.create_task(self._correct(), name=str(step)))
            else:
                self._journal.note(step.line, str(step))
                doing.append(asyncio.create_task(people.do(step), name=str(step)))
        is_whole = self._cut.steps is None and not self._cut.without_steps
        end_s = began_s + self._scope.seconds if is_whole else self._loop.time() + AFTERWARDS_S
        await asyncio.sleep(max(0.0, end_s - self._loop.time()))
        if doing:
            await asyncio.gather(*doing)

    # -- groups of nodes ------------------------------------------------------------------------

    def _node_groups(self, nodes: Nodes) -> NodeGroups:
        boasts = self._lots.draw("boasting")[0] < SHARE_WITH_BOASTERS
        kinds = (*GROUPS, BOASTER) if boasts else GROUPS
        return NodeGroups(nodes, self._lots, self._faults, self._asked, kinds, exports=self._has_compute)

    async def _correct(self) -> None:
        """Another groups' file: both copies begin anew with it."""
        if self._groups is not None and self._groups.correct():
            for name in AUTOSCALERS:
                await self._components[name].kill()
                self._components[name].start()

    def _late_s(self) -> list[float]:
        """When something struck after which an autoscaler sees late, or goes on where it was long ago."""
        kinds = ("stale", "freeze", "forgotten", "jump")
        whose = (*AUTOSCALERS, "every clock")
        return [one.at_s for one in self._journal.entries if one.fault in kinds and one.actor in whose]

    async def _let_nodes_be(self) -> None:
        if self._groups is not None:
            for name in AUTOSCALERS:
                await self._components[name].stop()
            await self._groups.still()

    # -- components -----------------------------------------------------------------------------

    def _add(self, name: str, main: Main, clock: VirtualClock | None = None) -> Component:
        """With a clock of its own, unless it shares that of its machine."""
        self._clocks[name] = clock or VirtualClock(self._loop)
        self._components[name] = Component(name, main, self._connect, self._faults)
        return self._components[name]

    def _agents(self, record: Recorder, machines: Notes) -> Agents:
        found = {
            node: Machine(
                node,
                VirtualClock(self._loop),
                self._faults,
                machines,
                wishes(self._lots, record, node),
                RENEWING,
                self._luck,
            )
            for node in self._scope.agent_nodes(self._lots)
        }
        return Agents(found, DRIVERS if self._has_classic else (), exports=self._has_compute)

    def _control(self, name: str) -> Main:
        async def main(connect: Connect) -> None:
            rng = self._luck(name)
            clock, ids = self._clocks[name], RandomIds(rng)
            client = Client(connect(identities.CONTROLLER_MANAGER))
            leases = client.resource("coordination.k8s.io", "v1", "leases")
            identity = f"{name.replace(' ', '-')}-{self._components[name].starts}"
            settings = _lease("kube-controller-manager", identity)
            async with Informers(client, rng, pace=_PACE) as informers:
                process = Process.of(
                    informers,
                    lambda controller: Client(connect(identities.controller(controller.account))),
                    clock,
                    rng,
                    ids,
                    Metrics(),
                )
                await run(process, self._controllers, Election(settings, leases, clock))

        return main

    def _drive(self, name: str, driver: str) -> Main:
        return lambda connect: drive(connect, driver, self._luck(name), _PACE, lambda: self._faults.active)

    def _luck(self, name: str) -> random.Random:
        """Of one life of a component."""
        return self._lots.generator(f"{name} #{self._components[name].starts}")

    def _connect(self, user: User) -> InProcessTransport:
        """To one of the servers, each in its turn."""
        self._connections += 1
        server = self._servers[self._connections % len(self._servers)]
        return InProcessTransport(server.handle, user)

    def _client(self) -> Client:
        return Client(self._connect(identities.ADMIN))

    async def _compact(self) -> None:
        """All up to now; a moment later, when the server's own caches have heard of it."""
        revision = await self._store.revision()
        await asyncio.sleep(_HEARD_S)
        await self._store.compact(revision)

    def _failures(self) -> list[str]:
        return [
            f"{component.name} ended by itself: {error!r}"
            for component in self._components.values()
            for error in component.failures
        ]


def _lease(name: str, identity: str) -> LeaseSettings:
    return LeaseSettings(
        name, "kube-system", identity, duration_s=60, renew_deadline_s=50.0, retry_period_s=24.0
    )


class _Bugs(logging.Handler):
    """What components log as an error is wrong, whatever the faults were."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.found: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        error = record.exc_info[1] if record.exc_info else None
        told = f"{record.name}: {record.getMessage()}" + (f": {error!r}" if error is not None else "")
        if told not in self.found:
            self.found.append(told)

    def __enter__(self) -> "_Bugs":
        logging.getLogger("allot").addHandler(self)
        return self

    def __exit__(self, *_: object) -> None:
        logging.getLogger("allot").removeHandler(self)
