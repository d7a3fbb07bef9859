"""Nodes, as simple as they can be: they say that they live, and their pods run and end.

A node does what the API asks of any node's agent: it starts a pod when all claims of the
pod are allocated and reserved for it, says what it has prepared before it prepares and
takes that back after it has unprepared (N2), reports how pods end, and removes those that
were told to go. It has no faults of its own: it is not under test.
"""

import asyncio
import contextlib
import logging
from collections.abc import Iterator
from typing import Any

from allot.api import Object, age, core, errors, podclaims
from allot.base import Clock
from allot.client import Client

from . import things
from .lots import Lots
from .recording import Recorder, Seen
from .things import Fields, Things

log = logging.getLogger(__name__)

NODES = 5
DEVICES_PER_NODE = 4
FINISHED = ("Succeeded", "Failed")
HEARTBEAT_S = 240.0
LEASE_S = 480
"""A node that says so may be silent for ten minutes before it is given up on."""
LEASE_NAMESPACE = "kube-node-lease"


def name_of(number: int) -> str:
    return f"node-{number % NODES}"


class Nodes:
    def __init__(
        self, client: Client, record: Recorder, lots: Lots, clock: Clock, *, shares: bool = False
    ) -> None:
        """With `shares` nodes have devices in parts as well, for a scheduler that knows how to."""
        self._shares = shares
        self._things = Things(client)
        self._record = record
        self._lots = lots
        self._clock = clock
        self._up: dict[str, asyncio.Task[None]] = {}  # heartbeats
        self._lives: dict[str, _Life] = {}  # by uid of the pod
        self._silent: set[str] = set()
        self._prepared: dict[str, dict[str, None]] = {}  # node -> uids of claims
        self._saying: dict[str, asyncio.Lock] = {}  # by node
        self._publishes = lots.draw("nodes publish what they prepare")[0] < 0.7

    # -- coming and going -----------------------------------------------------------------------

    async def furnish(self) -> None:
        for number in range(NODES):
            await self.join(name_of(number))
        self._record.tell(self._hear)

    async def join(self, node: str) -> None:
        """A node comes, or comes back with nothing running."""
        if node in self._up:
            return
        ready = {"type": "Ready", "status": "True", "lastHeartbeatTime": age.timestamp(self._clock.now())}
        with contextlib.suppress(errors.Conflict):
            await self._things.nodes.create(things.node(node, [ready]))
        await self.publish(node, DEVICES_PER_NODE)
        for shared in things.sharing_slices(node) if self._shares else ():
            await self._insist(self._things.resourceslices.create(shared))
        self._prepared[node] = {}
        await self._say_prepared(node)
        self._silent.discard(node)
        self._up[node] = asyncio.create_task(self._beat(node), name=f"heartbeat {node}")
        self._up[node].add_done_callback(_tell_of_failure)
        for pod in self._record.all("pods"):
            self._begin(pod)

    async def lose(self, node: str) -> None:
        """The machine is gone, and so is its Node. What ran there runs no more."""
        beating = self._up.pop(node, None)
        if beating is None:
            return
        beating.cancel()
        for uid in [uid for uid, life in self._lives.items() if life.node == node]:
            self._lives.pop(uid).task.cancel()
        await self._insist(self._things.nodes.delete(node))
        for one in self._record.all("resourceslices"):
            if one.fields["spec"]["nodeName"] == node:
                await self._insist(self._things.resourceslices.delete(one.name))

    def slices(self, node: str) -> list[Object]:
        """Of its plain devices."""
        published = self._record.all("resourceslices")
        return [one for one in published if one.fields["spec"]["pool"]["name"] == node]

    async def publish(self, node: str, devices: int, generation: int = 0, pause_s: float = 0.0) -> None:
        """As a driver does: the new slices first, in parts perhaps, then the old ones go."""
        old = self.slices(node)
        least = max((one.fields["spec"]["pool"]["generation"] for one in old), default=0) + 1
        number = max(generation, least)
        for part in things.slices_of(node, devices, number, 2 if pause_s else 1):
            part["metadata"]["name"] += f"-{number}"
            await self._insist(self._things.resourceslices.create(part))
            await asyncio.sleep(pause_s)
        for one in old:
            await self._insist(self._things.resourceslices.delete(one.name))

    def is_up(self, node: str) -> bool:
        return node in self._up

    def silence(self, node: str) -> None:
        """It runs, and nobody hears of it."""
        self._silent.add(node)

    def hear(self, node: str) -> None:
        self._silent.discard(node)

    async def stop(self) -> None:
        tasks = [*self._up.values(), *(life.task for life in self._lives.values())]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _beat(self, node: str) -> None:
        spec: Fields = {"holderIdentity": node, "leaseDurationSeconds": LEASE_S}
        lease: Fields = {"metadata": {"name": node, "namespace": LEASE_NAMESPACE}, "spec": spec}
        await self._insist(self._things.leases.create(lease))
        while True:
            await asyncio.sleep(HEARTBEAT_S * (0.8 + 0.2 * self._lots.draw(f"beat {node}")[0]))
            if node in self._silent:
                continue
            renewal = {"spec": {"renewTime": age.micro_timestamp(self._clock.now())}}
            await self._insist(self._things.leases.patch(node, renewal, LEASE_NAMESPACE))
            await self._mend(node)

    async def _mend(self, node: str) -> None:
        """Who was told to be silent says that it is not."""
        known = self._record.get("nodes", node)
        conditions = (known.fields.get("status") or {}).get("conditions") or () if known else ()
        if known is None or all(one["status"] == "True" for one in conditions if one["type"] == "Ready"):
            return
        now = age.timestamp(self._clock.now())
        ready = {"type": "Ready", "status": "True", "lastHeartbeatTime": now, "lastTransitionTime": now}
        fresh = [ready, *(one for one in conditions if one["type"] != "Ready")]
        await self._insist(
            self._things.nodes.patch(node, {"status": {"conditions": fresh}}, subresource="status")
        )

    # -- pods -----------------------------------------------------------------------------------

    def _hear(self, seen: Seen) -> None:
        if seen.resource == "pods":
            life = self._lives.get(seen.object.uid)
            if life is not None:
                life.pod = None if seen.type == "DELETED" else seen.object
                life.changed.set()
            elif seen.type != "DELETED":
                self._begin(seen.object)
        elif seen.resource == "resourceclaims":
            for life in self._lives.values():
                if life.waits:
                    life.changed.set()

    def _begin(self, pod: Object) -> None:
        node = pod.fields["spec"].get("nodeName") or ""
        if node not in self._up or pod.uid in self._lives:
            return
        life = self._lives[pod.uid] = _Life(pod, node)
        life.task = asyncio.create_task(self._live(life, pod), name=f"pod {pod.name}")
        life.task.add_done_callback(_tell_of_failure)

    async def _live(self, life: "_Life", pod: Object) -> None:
        """From the moment a node hears of a pod until nothing of it is left there."""
        lot = self._lots.draw(f"life of {pod.namespace}/{pod.name} {pod.metadata.creation_timestamp}")
        await asyncio.sleep(1 + 9 * lot[0])
        claims = await self._until_claims(life)
        if claims is not None and life.may_run:
            life.prepared = claims
            await self._prepare(life.node, claims)
            await self._report(life, "Running")
            lasts_s = None if pod.fields["spec"]["restartPolicy"] == "Always" else 5 + 600 * lot[1] ** 2
            await life.until_ended(lasts_s)
            if not life.is_wanted:
                await asyncio.sleep(20 * lot[2])
            life.prepared = []
            await self._unprepare(life.node, claims)
            await self._report(life, FINISHED[lot[3] < 0.15])
        while life.is_wanted:
            await life.news()
        if life.pod is not None:
            await self._insist(
                self._things.pods.delete(pod.name, pod.namespace, grace_period_s=0, uid=pod.uid)
            )
        self._lives.pop(pod.uid, None)

    async def _until_claims(self, life: "_Life") -> list[str] | None:
        """The uids of the pod's claims once it may use all of them; None if it was told to go first,
        or has ended: it was given up on while its node was away."""
        life.waits = True
        while life.may_run and life.pod is not None:
            found = list(self._claims(life.pod))
            if all(found):
                life.waits = False
                return found
            await life.news()
        life.waits = False
        return None

    def _claims(self, pod: Object) -> Iterator[str]:
        """Of each claim of the pod the uid, or "" while the pod may not use it."""
        for use in podclaims.used(pod.view(core.Pod)):
            if use.origin is podclaims.Origin.EXTENDED:  # it may be left of an attempt at another node
                continue
            claim = self._record.get("resourceclaims", use.name, pod.namespace) if use.name else None
            reserved = (claim.fields.get("status") or {}).get("reservedFor") or () if claim else ()
            may_use = any(one["uid"] == pod.uid for one in reserved)
            yield claim.uid if claim is not None and may_use else ""

    async def _report(self, life: "_Life", phase: str) -> None:
        pod = life.pod
        if pod is None or _has_ended(pod):
            return
        now = age.timestamp(self._clock.now())
        ready = {
            "type": "Ready",
            "status": "True" if phase == "Running" else "False",
            "lastTransitionTime": now,
        }
        patch: Fields = {"status": {"phase": phase, "conditions": [ready]}, "metadata": {"uid": pod.uid}}
        with contextlib.suppress(errors.Invalid):  # by now another pod has the name
            await self._insist(self._things.pods.patch(pod.name, patch, pod.namespace, subresource="status"))

    async def _prepare(self, node: str, claims: list[str]) -> None:
        if claims:
            self._prepared[node].update(dict.fromkeys(claims))
            await self._say_prepared(node)

    async def _unprepare(self, node: str, claims: list[str]) -> None:
        """Except what another pod on the node still uses."""
        used = {uid for life in self._lives.values() if life.node == node for uid in life.prepared}
        for uid in claims:
            if uid not in used:
                self._prepared[node].pop(uid, None)
        if claims:
            await self._say_prepared(node)

    async def _say_prepared(self, node: str) -> None:
        """Each write follows the one before it, so that none is overtaken by an older list."""
        if not self._publishes:
            return
        async with self._saying.setdefault(node, asyncio.Lock()):
            status = {"claims": [{"uid": uid} for uid in self._prepared[node]]}
            if self._record.get(things.PREPARED, node) is None:
                with contextlib.suppress(errors.Conflict):
                    await self._things.prepared.create({"metadata": {"name": node}, "status": status})
                    return
            await self._insist(self._things.prepared.patch(node, {"status": status}, subresource="status"))

    @staticmethod
    async def _insist(done: Any) -> None:
        with contextlib.suppress(errors.Conflict, errors.NotFound, errors.Forbidden):
            await done


def _tell_of_failure(task: "asyncio.Task[None]") -> None:
    """What a node did not finish would look like a promise that somebody else has broken."""
    if not task.cancelled() and (failure := task.exception()) is not None:
        log.error("the node's part for %s failed: %r", task.get_name(), failure)


def _has_ended(pod: Object) -> bool:
    return (pod.fields.get("status") or {}).get("phase") in FINISHED


class _Life:
    """A pod on its node."""

    def __init__(self, pod: Object, node: str) -> None:
        self.pod: Object | None = pod
        self.node = node
        self.changed = asyncio.Event()
        self.waits = False
        self.prepared: list[str] = []
        self.task: asyncio.Task[None]

    @property
    def is_wanted(self) -> bool:
        return self.pod is not None and self.pod.metadata.deletion_timestamp is None

    @property
    def may_run(self) -> bool:
        return self.is_wanted and self.pod is not None and not _has_ended(self.pod)

    async def news(self) -> None:
        self.changed.clear()
        await self.changed.wait()

    async def until_ended(self, at_most_s: float | None) -> None:
        """Until the pod is told to go, is gone or given up on; or until it has run for so long."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(at_most_s):
                while self.may_run:
                    await self.news()
