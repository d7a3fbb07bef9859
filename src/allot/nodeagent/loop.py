"""The agent from its first word to the last: it registers its node, and leads the pods that are put there.

An agent on its own reads and writes with the rights of its node and no more. Agents that share a process
with others may be handed informers that read for all of them.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from allot.api import Object, Request, Response, age, errors
from allot.base import Clock, Ids, Metrics
from allot.client import Client, Credential, Resource, level_of
from allot.informers import WARNING, Events, Informers, Telemetry
from allot.node import Heard, Hosts, LeaseLoop, PodLoop, Renewing, is_awake, lead, lists_prepared, own
from allot.wire import Sockets

from . import logs, podresources, serving
from .health import Shown, Which
from .health_loop import HealthLoop
from .keeping import Keeper
from .machine import AgentMachine, Place
from .preparing import Preparing
from .registering import CONDITIONS, Measured, awake, labels, measured, status
from .registry_loop import Registry
from .runtimes import Runtime
from .wiping import Wiping

log = logging.getLogger(__name__)

T = TypeVar("T")

WORKERS = 256
"""Pods that are looked after at one moment: a driver may take its time with each."""
_WIPE_LOOK_S = 1.0
_FIRST_WAIT_S, _LONGEST_WAIT_S = 0.2, 30.0


@dataclass(frozen=True, slots=True)
class Settings:
    name: str
    root: Path
    cdi_directories: tuple[Path, ...]
    address: str = "127.0.0.1"
    port: int = 0  # of its server; 0: any that is free
    renewing: Renewing = field(default_factory=lambda: Renewing(10.0, 40))


@dataclass(frozen=True, slots=True)
class Process:
    """What an agent is handed."""

    client: Client  # with the rights of its node
    informers: Informers  # likewise
    clock: Clock
    ids: Ids
    metrics: Metrics
    telemetry: Telemetry
    sockets: Sockets
    runtime: Runtime
    credential: Credential  # to serve with; without a certificate nothing is served
    authorities: bytes


class HollowNode(Exception):
    """Somebody plays this node."""


class Agent:
    def __init__(self, settings: Settings, process: Process) -> None:
        """Raises BadCheckpoint, and OSError."""
        self._settings = settings
        self._process = process
        settings.root.mkdir(parents=True, exist_ok=True, mode=0o750)
        self._registry = Registry(process.sockets, settings.root / "plugins_registry", self._on_driver)
        preparing = Preparing(Keeper(settings.root), self._registry)
        place = Place(settings.root, settings.cdi_directories, settings.address)
        self._machine = AgentMachine(place, process.runtime, preparing, self._lookup, process.clock)
        self._wiping = Wiping()
        self._health = HealthLoop(self._registry, process.clock, self._machine.on_health)
        self._machine.health_of = self._health_of
        client, clock = process.client, process.clock
        self._events = Events(client, "kubelet", clock, process.ids, process.telemetry, process.metrics)
        self._heard: Heard | None = None

    async def run(self, ready: Callable[[], None] = lambda: None) -> None:
        """Until cancelled."""
        credential, settings = self._process.credential, self._settings
        if not credential.certificate:
            log.warning("node %s has no certificate to serve with: it shows no logs", settings.name)
            await self._run(0, ready)
            return
        tls = serving.context(credential, self._process.authorities)
        async with serving.served(self._answer, settings.address, settings.port, tls) as port:
            await self._run(port, ready)

    async def _run(self, port: int, ready: Callable[[], None]) -> None:
        socket = str(self._settings.root / podresources.SOCKET)
        answering = podresources.handlers(self._machine.standing_now)
        monitored = await self._process.sockets.serve(socket, answering)
        try:
            await self._lead(port, ready)
        finally:
            await monitored.close()

    async def _lead(self, port: int, ready: Callable[[], None]) -> None:
        await self._insist(lambda: self._register(port))
        await self._insist(self._wipe_all)
        informers, name = self._process.informers, self._settings.name
        has_lists = await self._insist(lambda: lists_prepared(self._process.client, name))
        followed = own(name) if has_lists else (*own(name)[:-1], None)
        heard = self._heard = Heard.of(informers, followed)
        try:
            await informers.synced(*heard.informers)
            hosts = Hosts(
                lambda node: node.name == name,
                lambda node: self._process.client,
                self._process.clock,
                self._process.telemetry,
                "agent",
                lambda pod, reason, message: self._events.record(pod, WARNING, reason, message),
                keeps_ended=True,
                workers=WORKERS,
            )
            leases = LeaseLoop(hosts, heard, self._settings.renewing, _awake)
            pods = PodLoop(hosts, heard, self._machine)
            async with asyncio.TaskGroup() as group:
                for work in (self._registry.run, self._health.run, self._wipe, self._events.run):
                    group.create_task(work())
                await lead(heard, leases, pods, ready)
        finally:
            for informer in heard.informers:
                informers.leave(informer)

    # -- its node -------------------------------------------------------------------------------

    async def _register(self, port: int) -> None:
        settings, machine = self._settings, measured(self._settings.root)
        nodes = self._process.client.resource("", "v1", "nodes", namespaced=False)
        try:
            node = await nodes.get(settings.name)
        except errors.NotFound:
            metadata = {"name": settings.name, "labels": labels(settings.name, machine)}
            node = await nodes.create({"metadata": metadata, "status": self._status({}, machine, port)})
        if "hollow.allot.dev/fleet" in (node.metadata.labels or {}):
            raise HollowNode(
                f"node {settings.name} is a hollow one, which somebody plays: choose another name"
            )
        patch = {"status": self._status(node.fields, machine, port)}
        await nodes.patch(settings.name, patch, subresource="status")

    def _status(self, known: Any, machine: Measured, port: int) -> dict[str, Any]:
        settings, now = self._settings, age.timestamp(self._process.clock.now())
        return status(known, settings.name, machine, settings.address, port, now)

    async def _insist(self, work: Callable[[], Awaitable[T]]) -> T:
        """Do it, and again as often as the server does not let us."""
        wait_s = _FIRST_WAIT_S
        while True:
            try:
                return await work()
            except errors.ApiError as refused:
                level = level_of(refused, logging.WARNING)
                log.log(level, "the agent cannot begin, trying again in %.1f s: %s", wait_s, refused)
                await asyncio.sleep(wait_s)
                wait_s = min(2 * wait_s, _LONGEST_WAIT_S)

    # -- drivers --------------------------------------------------------------------------------

    def _on_driver(self, driver: str) -> None:
        is_there = self._registry.drivers.is_there(driver)
        self._wiping.note(driver, is_there, self._process.clock.monotonic_s())
        if is_there:
            self._machine.look_again()

    def _health_of(self, which: Which) -> Shown:
        return self._health.healths.of(which, self._process.clock.monotonic_s())

    async def _wipe_all(self) -> None:
        """What was published before is not believed: drivers that are there publish it again."""
        await self._slices().delete_collection(field_selector=f"spec.nodeName={self._settings.name}")

    async def _wipe(self) -> None:
        """For ever: the slices of drivers that were away for long."""
        clock = self._process.clock
        while True:
            for driver in self._wiping.due(clock.monotonic_s()):
                selector = f"spec.nodeName={self._settings.name},spec.driver={driver}"
                try:
                    await self._slices().delete_collection(field_selector=selector)
                    self._wiping.done(driver)
                    log.warning("driver %s is gone: its slices are deleted", driver)
                except errors.ApiError as refused:
                    log.log(level_of(refused, logging.WARNING), "slices of %s stay: %s", driver, refused)
                    self._wiping.failed(driver, clock.monotonic_s())
            await asyncio.sleep(_WIPE_LOOK_S)

    def _slices(self) -> Resource:
        return self._process.client.resource("resource.k8s.io", "v1", "resourceslices", namespaced=False)

    # -- what it is asked -----------------------------------------------------------------------

    async def _lookup(self, plural: str, namespace: str, name: str) -> Object:
        return await self._process.client.resource("", "v1", plural).get(name, namespace)

    async def _answer(self, request: Request) -> Response:
        match request.path.strip("/").split("/"):
            case ["healthz"]:
                return Response(200, b"ok", "text/plain")
            case ["containerLogs", namespace, pod, container]:
                return self._logs(namespace, pod, container, request)
        raise errors.NotFound(f"{request.path}: this node has nothing there")

    def _logs(self, namespace: str, name: str, container: str, request: Request) -> Response:
        want = logs.wanted(request.query, self._process.clock.now())
        pod = self._heard.pods.cache.get(name, namespace) if self._heard is not None else None
        path = self._machine.log_of(pod.uid, container, previous=want.previous) if pod is not None else None
        if pod is None or path is None:
            which = "previous terminated container" if want.previous else "container"
            raise errors.BadRequest(f'{which} "{container}" in pod "{name}" is not available: it has not run')
        uid = pod.uid

        def runs() -> bool:
            return not want.previous and self._machine.runs(uid, container)

        return Response(200, content_type="text/plain", stream=logs.printed(path, want, runs))


def _awake(node: Object, now: str) -> list[dict[str, Any]] | None:
    return None if is_awake(node, CONDITIONS) else awake(node.fields, now)
