"""Containers of a made-up machine: each is a time to begin, to run and to end.

They are the machine's and not the agent's, so they go on while no agent is there; an agent that
begins anew finds the records of all of them (N5), and hears of those that end. When the power goes,
everything ends and the records stay.
"""

import asyncio
import contextvars
import signal
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from allot.base import Clock
from allot.nodeagent import (
    Addresses,
    Attempt,
    CannotStart,
    ContainerSpec,
    Executed,
    Report,
    SandboxSpec,
    Streams,
    Usage,
    unheard,
)

from .card_plugins import VARIABLE
from .faults import Fenced
from .recording import Notes

KILLED = 128 + signal.SIGKILL
_KILL_S = 0.2
_DEVICE = "DEVICE_"


class Lasts(NamedTuple):
    """What a lot decides about one run of a container."""

    begin_s: float
    run_s: float | None  # None: as long as nobody ends it
    stop_s: float
    exit_code: int


Which = tuple[str, str, int]  # pod, container, number
Wish = Callable[[ContainerSpec], Lasts]


class Containers:
    def __init__(self, node: str, clock: Clock, wish: Wish, machines: Notes) -> None:
        self._node = node
        self._clock = clock
        self._wish = wish
        self._machines = machines
        self.records: dict[Which, Attempt] = {}
        self.running: dict[Which, tuple[Lasts, asyncio.TimerHandle | None]] = {}
        self.agents: list[RuntimeOfAgent] = []

    def process(self, touched: Callable[[], None]) -> "RuntimeOfAgent":
        """As an agent sees them; `touched` is called before each of its deeds."""
        return RuntimeOfAgent(self, touched)

    def begin(self, spec: ContainerSpec, lasts: Lasts) -> None:
        which = spec.pod_uid, spec.name, spec.number
        self.records[which] = Attempt(*which, self._clock.now().timestamp(), crashes=spec.crashes)
        self.running[which] = lasts, None
        env = {**spec.env, **dict(one.partition("=")[::2] for one in spec.edits.env)}
        devices = sorted(value for name, value in env.items() if name.startswith(_DEVICE))
        cards = [one for one in env.get(VARIABLE, "").split(",") if one]
        self._note("STARTED", which, devices=devices, cards=cards)
        if lasts.run_s is not None:
            self._end_in(which, lasts.run_s, lasts.exit_code)

    def wish(self, spec: ContainerSpec) -> Lasts:
        return self._wish(spec)

    def signal(self, which: Which, number: int) -> None:
        found = self.running.get(which)
        if found is None:
            return
        lasts, timer = found
        if number == signal.SIGKILL:
            self._end_in(which, _KILL_S, KILLED)
        elif timer is None or lasts.run_s is not None:
            left_s = timer.when() - asyncio.get_running_loop().time() if timer is not None else lasts.stop_s
            self._end_in(which, min(left_s, lasts.stop_s), 128 + number)
            self.running[which] = lasts._replace(run_s=None), self.running[which][1]

    def power_off(self) -> None:
        for which in tuple(self.running):
            self._end(which, KILLED, tell=False)

    def _end_in(self, which: Which, wait_s: float, exit_code: int) -> None:
        lasts, timer = self.running[which]
        if timer is not None:
            timer.cancel()
        loop = asyncio.get_running_loop()
        nobody = contextvars.Context()  # a container is no part of the agent that asked for it
        self.running[which] = lasts, loop.call_later(wait_s, self._end, which, exit_code, context=nobody)

    def _end(self, which: Which, exit_code: int, tell: bool = True) -> None:
        _, timer = self.running.pop(which)
        if timer is not None:
            timer.cancel()
        self._note("ENDED", which, code=exit_code)
        record = self.records.get(which)
        if record is None:
            return
        ended = record._replace(finished_at=self._clock.now().timestamp(), exit_code=exit_code)
        self.records[which] = ended
        for agent in self.agents if tell else ():
            agent.tell(ended)

    def _note(self, what: str, which: Which, **more: object) -> None:
        pod, name, number = which
        self._machines.note(self._node, what, pod=pod, container=name, number=number, **more)


class RuntimeOfAgent:
    """The runtime that an agent is handed. It ends with its process; the containers do not."""

    has_networks = False

    def __init__(self, containers: Containers, touched: Callable[[], None]) -> None:
        self._containers = containers
        self._touched = touched
        self._context = contextvars.copy_context()
        self._hear: list[Callable[[Attempt], None]] = []
        self._is_dead = False
        containers.agents.append(self)

    def kill(self) -> None:
        self._is_dead = True
        if self in self._containers.agents:
            self._containers.agents.remove(self)

    async def attempts(self) -> Sequence[Attempt]:
        self._touch()
        return tuple(self._containers.records.values())

    async def addresses(self) -> Mapping[str, Addresses]:
        return {}

    async def address(self, pod: SandboxSpec) -> Addresses:
        return None

    async def start(self, container: ContainerSpec, report: Report = unheard) -> Attempt:
        """It begins somewhere between the question and the answer."""
        self._touch()
        lasts = self._containers.wish(container)
        which = container.pod_uid, container.name, container.number
        await asyncio.sleep(lasts.begin_s / 2)
        self._touch()
        if which not in self._containers.records:
            self._containers.begin(container, lasts)
        await asyncio.sleep(lasts.begin_s / 2)
        self._touch()
        return self._containers.records[which]

    async def signal(self, attempt: Attempt, number: int) -> None:
        self._touch()
        self._containers.signal((attempt.pod_uid, attempt.name, attempt.number), number)

    async def remove(self, pod_uid: str) -> None:
        self._touch()
        records = self._containers.records
        for which in [which for which in records if which[0] == pod_uid]:
            del records[which]

    def changed(self, hear: Callable[[Attempt], None]) -> None:
        self._hear.append(hear)

    async def execute(self, attempt: Attempt, command: Sequence[str], timeout_s: float) -> Executed:
        """Whatever it is, it works in a container that runs."""
        self._require_running(attempt)
        return Executed(0, b"")

    async def stream(self, attempt: Attempt, command: Sequence[str] | None, streams: Streams) -> int:
        self._require_running(attempt)
        await streams.write_err(b"a container of the simulator has nothing to say\n")
        return 0

    async def connect(self, pod_uid: str, port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        self._touch()
        raise ConnectionRefusedError(f"port {port}: nobody listens in a container of the simulator")

    async def usage(self) -> Sequence[Usage]:
        self._touch()
        return [Usage(pod, name, 0, 0) for pod, name, _ in self._containers.running]

    def _require_running(self, attempt: Attempt) -> None:
        self._touch()
        if (attempt.pod_uid, attempt.name, attempt.number) not in self._containers.running:
            raise CannotStart(f"container {attempt.name} does not run")

    def tell(self, attempt: Attempt) -> None:
        """In a step of the agent's own, which one that is frozen does not take."""
        for hear in self._hear:
            asyncio.get_running_loop().call_soon(hear, attempt, context=self._context)

    def _touch(self) -> None:
        if not self._is_dead:
            self._touched()
        if self._is_dead:
            raise Fenced
