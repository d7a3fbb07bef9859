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

from allot.api import Object, age, compute, core, errors
from allot.base import Clock, Files, Ids, MachineFiles, Metrics
from allot.client import Client, Credential, Resource, level_of
from allot.informers import WARNING, Events, Informers, Telemetry
from allot.node import SHARED, Heard, Hosts, LeaseLoop, PodLoop, Renewing, is_awake, lead, lists_prepared, own
from allot.wire import Sockets

from . import podresources, serving, views
from .answering import Answering
from .capacity_loop import CapacityLoop
from .counting import Counts
from .deviceplugins import GRACE_S, DevicePlugins
from .dialing import MachineNetwork, Network
from .errands import Errands
from .fields import Around
from .health import Shown, Which
from .health_loop import HealthLoop
from .hooks import Hooks
from .keeping import Keeper
from .machine import AgentMachine, Parts
from .messages import Messages
from .mounting import Sources, Volumes
from .preparing import Preparing
from .probing import Probing
from .registering import CONDITIONS, Burden, Measured, awake, burden, labels, measured, status
from .registry_loop import Registry
from .runtimes import Runtime
from .starting import Place, Starting
from .stopping import Stopping
from .telling import Telling
from .using import Using
from .wiping import Wiping

log = logging.getLogger(__name__)

T = TypeVar("T")

WORKERS = 256
"""Pods that are looked after at one moment: a driver may take its time with each."""
_FIRST_WAIT_S, _LONGEST_WAIT_S = 0.2, 30.0


@dataclass(frozen=True, slots=True)
class Looking:
    """How often an agent looks at what tells nobody when it changes."""

    sockets_s: float = 0.1  # which drivers have come or gone
    drivers_s: float = 1.0  # whose health has not been told in time, and who has been away for long
    volumes_s: float = 60.0  # whether config maps and secrets that pods mount have changed
    sizes_s: float = 10.0  # how much volumes with a limit hold


@dataclass(frozen=True, slots=True)
class Settings:
    name: str
    root: Path
    cdi_directories: tuple[Path, ...]
    address: str = "127.0.0.1"
    port: int = 0  # of its server; 0: any that is free
    renewing: Renewing = field(default_factory=lambda: Renewing(10.0, 40))
    looking: Looking = field(default_factory=Looking)
    heeds_classic: bool = True  # the gate DRAControlPlaneController of this node
    publishes_capacity: bool = True  # the gate DRANumericParameters of this node
    plugin_grace_s: float = GRACE_S  # how long what a device plugin had counts when it is gone
    exports_compute: bool = False  # devices of plugins are compute resources of the node (KEP-14)


@dataclass(frozen=True, slots=True)
class Process:
    """What an agent is handed."""

    client: Client  # with the rights of its node
    informers: Informers  # likewise, unless they are shared
    clock: Clock
    ids: Ids
    metrics: Metrics
    telemetry: Telemetry
    sockets: Sockets
    runtime: Runtime
    credential: Credential  # to serve with; without a certificate nothing is served
    authorities: bytes
    files: Files = field(default_factory=MachineFiles)
    measure: Callable[[Path], Measured] = measured  # the machine, and the disk of a directory
    burden: Callable[[], Burden] = burden  # of the machine
    is_sharing: bool = False  # the informers read for others too: everything, and not what is this node's
    network: Network = field(default_factory=MachineNetwork)


class HollowNode(Exception):
    """Somebody plays this node."""


class Agent:
    def __init__(self, settings: Settings, process: Process) -> None:
        """Raises BadCheckpoint, and OSError."""
        self._settings = settings
        self._process = process
        process.files.make_directory(settings.root, 0o750)
        looking, registry = settings.looking, settings.root / "plugins_registry"
        self._devices = DevicePlugins(
            settings.root,
            process.files,
            process.sockets,
            process.clock,
            process.measure(settings.root).boot_id,
            look_s=looking.drivers_s,
            grace_s=settings.plugin_grace_s,
            exports_compute=settings.exports_compute,
        )
        self._registry = Registry(
            process.sockets, registry, self._on_driver, self._devices.plugins, looking.sockets_s
        )
        counts = Counts(process.metrics, process.clock)
        preparing = Preparing(
            Keeper(settings.root, process.files),
            self._registry,
            counts,
            heeds_classic=settings.heeds_classic,
        )
        client, clock = process.client, process.clock
        self._events = Events(
            client, "kubelet", clock, process.ids, process.telemetry, process.metrics, host=settings.name
        )
        self._heard: Heard | None = None
        self._errands = Errands()
        self._machine = self._made(preparing)
        self._devices.is_over, self._devices.hear = self._is_over, self._machine.on_devices
        self._devices.is_of_cluster = self._is_of_cluster
        self._wiping = Wiping()
        self._health = HealthLoop(self._registry, process.clock, self._machine.on_health, looking.drivers_s)
        self._machine.health_of = self._health_of
        self._capacity = CapacityLoop(
            settings.name,
            client,
            self._registry,
            clock,
            process.telemetry,
            self._complain,
            looking.drivers_s,
            publishes=settings.publishes_capacity,
        )
        using = Using(process.runtime, process.burden, clock)
        self._answering = Answering(self._pod_of, self._machine, process.runtime, using, clock)

    def _made(self, preparing: Preparing) -> AgentMachine:
        settings, process = self._settings, self._process
        place = Place(
            settings.root,
            settings.cdi_directories,
            settings.address,
            process.files,
            process.runtime.has_networks,
        )
        sources = Sources(self._lookup, self._token, process.authorities)
        volumes = Volumes(place.pods, process.files, sources, process.clock)
        hooks = Hooks(self._errands, process.runtime, process.network)
        telling = Telling(self._events.record)
        lending = self._devices.lending
        return AgentMachine(
            Parts(
                place,
                process.runtime,
                preparing,
                lending,
                Starting(place, preparing, lending, self._lookup, volumes, self._around, telling),
                Stopping(process.runtime, hooks, process.clock),
                hooks,
                Probing(self._errands, process.runtime, process.network, process.clock),
                Messages(place),
                telling,
                process.clock,
            )
        )

    async def run(self, ready: Callable[[], None] = lambda: None) -> None:
        """Until cancelled."""
        credential, settings = self._process.credential, self._settings
        if not credential.certificate:
            log.warning("node %s has no certificate to serve with: it shows no logs", settings.name)
            await self._run(0, ready)
            return
        tls = serving.context(credential, self._process.authorities)
        async with serving.served(self._answering.answer, settings.address, settings.port, tls) as port:
            await self._run(port, ready)

    async def _run(self, port: int, ready: Callable[[], None]) -> None:
        socket = str(self._settings.root / podresources.SOCKET)
        answering = podresources.handlers(
            self._machine.standing_now, self._devices.offers.devices, self._process.clock
        )
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
        followed = SHARED if self._process.is_sharing else own(name)
        if not has_lists:
            followed = (*followed[:-1], None)
        heard = self._heard = Heard.of(informers, followed)
        try:
            await informers.synced(*heard.informers)
            hosts = Hosts(
                lambda node: node.name == name,
                lambda node: self._process.client,
                self._process.clock,
                self._process.telemetry,
                "agent",
                self._complain,
                keeps_ended=True,
                may_be_ours=lambda node: node == name,
                workers=WORKERS,
            )
            leases = LeaseLoop(hosts, heard, self._settings.renewing, _awake)
            pods = PodLoop(hosts, heard, self._machine, heeds_classic=self._settings.heeds_classic)
            async with asyncio.TaskGroup() as group:
                for work in (
                    self._registry.run,
                    self._health.run,
                    self._wipe,
                    self._events.run,
                    self._errands.run,
                    self._refresh,
                    self._measure,
                ):
                    group.create_task(work())
                group.create_task(
                    self._devices.run(
                        name, lambda: heard.node(name), self._process.client, informers, self._complain
                    )
                )
                is_sharing = self._process.is_sharing
                group.create_task(
                    self._capacity.run(informers, lambda: heard.node(name), is_sharing=is_sharing)
                )
                await lead(heard, leases, pods, ready)
        finally:
            for informer in heard.informers:
                informers.leave(informer)

    # -- its node -------------------------------------------------------------------------------

    async def _register(self, port: int) -> None:
        settings, machine = self._settings, self._process.measure(self._settings.root)
        nodes = self._nodes()
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
        devices = self._devices.first_said(known)
        return status(known, settings.name, machine, settings.address, port, now, devices)

    def _nodes(self) -> Resource:
        return self._process.client.resource("", "v1", "nodes", namespaced=False)

    def _complain(self, about: Object, reason: str, message: str) -> None:
        self._events.record(about, WARNING, reason, message)

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
        self._capacity.look()
        if is_there:
            self._machine.look_again()

    def _is_over(self, uid: str) -> bool:
        """Of a pod: nothing of it runs here, or will."""
        pod = self._machine.shown(uid)
        if pod is None:
            return True
        if self._machine.is_at_work(uid) or self._heard is None:
            return False
        found = self._heard.pods.cache.get(pod.name, pod.namespace)
        return found is None or found.uid != uid or found.view(core.Pod).is_finished

    async def _is_of_cluster(self, name: str) -> bool:
        """Of what a container asks for: a class over something that no node has (14-CLUS-02)."""
        own = compute.class_of(name)
        if not own:
            return False
        limits = compute.limits
        classes = self._process.client.resource(
            limits.GROUP, limits.VERSION, "resourceclasses", namespaced=False
        )
        try:
            found = await classes.get(own)
        except errors.ApiError as refused:
            log.log(level_of(refused, logging.WARNING), "class %s cannot be read: %s", own, refused)
            return False
        return found.view(compute.ResourceClass).spec.is_of_cluster

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
            await asyncio.sleep(self._settings.looking.drivers_s)

    async def _refresh(self) -> None:
        """For ever: volumes follow what they are made from."""
        while True:
            await asyncio.sleep(self._settings.looking.volumes_s)
            await self._machine.refresh_volumes()

    async def _measure(self) -> None:
        """For ever: volumes are no larger than they may be."""
        while True:
            await asyncio.sleep(self._settings.looking.sizes_s)
            await self._machine.evict_oversized()

    def _slices(self) -> Resource:
        return self._process.client.resource("resource.k8s.io", "v1", "resourceslices", namespaced=False)

    # -- what it is asked -----------------------------------------------------------------------

    async def _lookup(self, plural: str, namespace: str, name: str) -> Object:
        return await self._process.client.resource("", "v1", plural).get(name, namespace)

    def _pod_of(self, namespace: str, name: str) -> Object | None:
        return self._heard.pods.cache.get(name, namespace) if self._heard is not None else None

    async def _token(self, pod: Object, audience: str, seconds: int) -> Object:
        accounts = self._process.client.resource("", "v1", "serviceaccounts")
        name = pod.view(views.Pod).spec.service_account_name
        audiences = [audience] if audience else []
        return await accounts.token(name, pod.namespace, audiences=audiences, expires_s=seconds, bound_to=pod)

    def _around(self) -> Around:
        node = self._heard.node(self._settings.name) if self._heard is not None else None
        allocatable = node.view(core.Node).status.allocatable if node is not None else {}
        return Around(self._settings.address, allocatable)


def _awake(node: Object, now: str) -> list[dict[str, Any]] | None:
    return None if is_awake(node, CONDITIONS) else awake(node.fields, now)
