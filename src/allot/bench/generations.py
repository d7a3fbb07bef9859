"""The same pods with claims of one generation or another: each has a claim of its own, made from a template.

    Size       so many pods on so many nodes, which have a quarter more than is needed
    Generation what differs: what the administrator and the drivers bring, who works beside
               controllers and scheduler, and what an allocation says
    measure    from an empty store to the verdict; the time runs from the first pod's creation
               until the last is bound. A few pods come before, so that nobody is measured while it
               reads its classes and compiles its expressions

The verdict is read from the API alone (`wrong`): every claim is allocated where its pod is and reserved
for it, nobody gives more than there is, and no negotiation is left.
"""

import asyncio
import gc
import sys
import tempfile
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from allot.api import Gates, Object
from allot.apiserver import identities
from allot.base import SystemClock
from allot.client import Client

from . import objects
from .cast import CASTS, Wanted, performing
from .following import Follower
from .furnishing import pipelined
from .load import Load
from .place import Connect, Place, open_place
from .processes import Used, used_by
from .real import real_scheduler
from .shape import Amount, Json, Scene, Shape
from .writes import Served, served

V1ALPHA1 = "resource.k8s.io", "v1alpha1"
_QUIET_S = 0.3


@dataclass(frozen=True, slots=True)
class Size:
    pods: int
    nodes: int

    @property
    def before(self) -> int:
        """Pods that nobody measures."""
        return -(-self.pods // 20)

    @property
    def per_node(self) -> int:
        return -(-(self.pods + self.before) * 5 // (4 * self.nodes))  # a quarter more than is needed

    @property
    def names(self) -> list[str]:
        return [objects.node_name(number) for number in range(self.nodes)]


@dataclass(frozen=True, slots=True)
class Given:
    """What an allocation says: where, and how much of what."""

    node: str
    of: str
    amount: int
    available: int


class Generation(ABC):
    """Where generations differ. Everything else is the same for all of them."""

    name: str
    api: tuple[str, str] = V1ALPHA1  # in which its claims are written and read

    @abstractmethod
    def claim(self) -> Json:
        """The spec of each pod's claim."""

    @abstractmethod
    async def furnish(self, admin: Client, size: Size) -> None:
        """What there is beside nodes and template: classes, rights, what nodes offer."""

    @abstractmethod
    def given(self, status: Json, size: Size) -> list[Given]:
        """What the status of an allocated claim says."""

    @asynccontextmanager
    async def drivers(self, connect: Connect, size: Size) -> AsyncIterator[None]:
        """Who takes part beside controllers and scheduler: nobody."""
        yield


@dataclass(frozen=True, slots=True)
class Measured:
    size: Size
    seconds: float
    times_to_bind_s: list[float]  # in order
    served: Served
    used: Mapping[str, Used]
    wrong: list[str]

    @property
    def pods_per_second(self) -> float:
        return self.size.pods / self.seconds

    @property
    def cpu_s_per_pod(self) -> dict[str, float]:
        """Processor time by process."""
        return {name: one.cpu_s / self.size.pods for name, one in self.used.items()}

    @property
    def calls_per_pod(self) -> float:
        """Writes, refused ones too, and reads, as the server counts: also each member of a transaction."""
        return (self.served.writes + self.served.reads) / self.size.pods

    def requests(self) -> dict[str, Any]:
        """What was asked of the server for each pod, by verb and resource."""
        pods, done = self.size.pods, self.served
        return {
            "writes_per_pod": _each(done.done, pods),
            "writes_per_pod_total": round(sum(done.done.values()) / pods, 2),
            "refused_per_pod": _each(done.refused, pods),
            "reads_per_pod": round(done.reads / pods, 3),
        }


def _each(counts: Mapping[str, float], pods: int) -> dict[str, float]:
    return {what: round(count / pods, 3) for what, count in counts.items() if count / pods >= 0.001}


async def measure(generation: Generation, size: Size, transport: str) -> Measured:
    """On a server of its own, durable."""
    with tempfile.TemporaryDirectory(prefix="allot-bench-") as folder:
        async with open_place(transport, "sqlite", Path(folder), ()) as place:
            return await _Measurement(generation, size, place, Path(folder)).run()


class _Measurement:
    def __init__(self, generation: Generation, size: Size, place: Place, folder: Path) -> None:
        self._generation, self._size, self._place, self._folder = generation, size, place, folder
        scene = Scene((), (), room=size.per_node, claim=generation.claim())
        workload = f"{size.pods}pods_{size.nodes}nodes"
        self._shape = Shape(
            generation.name, workload, scene, size.nodes, Amount(more=size.pods + size.before)
        )
        self._admin = Client(place.connect(identities.ADMIN), user_agent="allot-bench")
        self._load: Load | None = None

    async def run(self) -> Measured:
        await self._furnish()
        path = f"/api/v1/namespaces/{objects.NAMESPACE}/pods"
        seen = Follower(self._admin, path, "pods", self._folder / "pods", self._hear)
        await seen.start()
        connect, wanted = self._place.connect, Wanted(Gates(), None, 1)
        try:
            async with (
                self._generation.drivers(connect, self._size),
                performing(connect, CASTS["claims+gc"], real_scheduler, wanted) as check,
            ):
                self._load = Load(self._admin, self._shape, SystemClock(), check, say)
                return await self._timed(self._load)
        finally:
            await seen.stop()

    async def _furnish(self) -> None:
        admin, generation = self._admin, self._generation
        await admin.resource("", "v1", "namespaces", namespaced=False).create(objects.namespace())
        nodes = admin.resource("", "v1", "nodes", namespaced=False)
        await pipelined((objects.node(name) for name in self._size.names), nodes.create)
        await generation.furnish(admin, self._size)
        metadata = {"name": objects.TEMPLATE, "namespace": objects.NAMESPACE}
        templates = admin.resource(*generation.api, "resourceclaimtemplates")
        await templates.create({"metadata": metadata, "spec": {"spec": generation.claim()}})

    async def _timed(self, load: Load) -> Measured:
        """The part that counts, and what came of it."""
        await load.burst(self._size.before)
        await self._quiet()
        gc.collect()  # what the one before has left is not this one's to clear up
        before, used = await served(self._admin), used_by(self._place.server_pid)
        tally = await load.burst(self._size.pods)
        used = {name: one.since(used[name]) for name, one in used_by(self._place.server_pid).items()}
        await self._quiet()
        done = (await served(self._admin)).since(before)
        return Measured(
            self._size,
            tally.ended_s - tally.began_s,
            tally.times_to_bind_s(),
            done,
            used,
            await self._wrong(),
        )

    async def _quiet(self) -> None:
        """Until what follows from the last binding has been written too."""
        last = -1.0
        while (now := (await served(self._admin)).writes) != last:
            last = now
            await asyncio.sleep(_QUIET_S)

    async def _wrong(self) -> list[str]:
        admin, generation = self._admin, self._generation
        pods = (await admin.resource("", "v1", "pods").list(objects.NAMESPACE)).objects
        claims = (await admin.resource(*generation.api, "resourceclaims").list(objects.NAMESPACE)).objects
        left = (await admin.resource(*V1ALPHA1, "podschedulings").list(objects.NAMESPACE)).objects
        return [
            *(f"PodScheduling {one.name} is left" for one in left),
            *wrong(generation, self._size, pods, claims),
        ]

    def _hear(self, line: bytes) -> None:
        if self._load is not None:
            self._load.hear(line)


def wrong(generation: Generation, size: Size, pods: Sequence[Object], claims: Sequence[Object]) -> list[str]:
    """What must not be, in words."""
    made_for = {claim.fields["metadata"]["ownerReferences"][0]["uid"]: claim for claim in claims}
    found: list[str] = []
    taken: Counter[str] = Counter()
    available: dict[str, int] = {}
    for pod in pods:
        node = pod.fields["spec"].get("nodeName", "")
        claim = made_for.pop(pod.uid, None)
        status = (claim.fields.get("status") or {}) if claim is not None else {}
        given = generation.given(status, size) if status.get("allocation") else []
        for one in given:
            taken[one.of] += one.amount
            available[one.of] = one.available
        reserved = [one["uid"] for one in status.get("reservedFor") or ()]
        if not node or {one.node for one in given} != {node} or reserved != [pod.uid]:
            found.append(f"pod {pod.name} is on {node or 'no node'}, and its claim says {status}")
    found += [f"claim {claim.name} is nobody's" for claim in made_for.values()]
    found += [f"{of} gives {taken[of]}, and has {most}" for of, most in available.items() if taken[of] > most]
    return found


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
