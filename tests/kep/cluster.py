"""A small cluster for the stories of a KEP: the real server, control loops, and the scheduler on a wire
that the story can hold back or refuse.

Nodes have no machine: a pod that is bound stays as it is until the story says otherwise.
"""

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Sequence
from functools import wraps
from typing import Any

from allot.api import Gates, Object, Request, User
from allot.apiserver import ApiServer, Options, identities
from allot.client import Client, InProcessTransport
from allot.controllers import ALL
from allot.store import MemoryStore
from allot.testing import TestServer
from controllers.world import Record
from scheduler.cluster import Cluster

from .objects import ANNOTATION, NS, Fields, said_of

CONTROLLERS = (
    "resourceclaim-controller",
    "garbage-collector-controller",
    "deployment-controller",
    "replicaset-controller",
    "resourcequota-controller",
)
_PLURALS = {
    "Deployment": "deployments",
    "DeviceClass": "deviceclasses",
    "Node": "nodes",
    "Pod": "pods",
    "ResourceClaim": "resourceclaims",
    "ResourceSlice": "resourceslices",
}


class WiredServer(TestServer):
    """It keeps what schedulers say, in `wires`, the latest last."""

    def __init__(self, server: TestServer) -> None:
        super().__init__(server.api)
        self.wires: list[Record] = []

    def client(self, user: User = identities.ADMIN) -> Client:
        if user != identities.SCHEDULER:
            return super().client(user)
        self.wires.append(Record(InProcessTransport(self.api.handle, user)))
        return Client(self.wires[-1])


class Place(Cluster):
    scheduler_user = identities.SCHEDULER

    @property
    def wires(self) -> Sequence[Record]:
        """One for each scheduler that was started."""
        assert isinstance(self.server, WiredServer)
        return self.server.wires

    @property
    def wire(self) -> Record:
        """Of the scheduler that was started last."""
        return self.wires[-1]

    async def is_wired(self) -> bool:
        return bool(self.wires)

    async def start_all(self, scheduled: bool = True, controlled: bool = True) -> None:
        if controlled:
            await self.start_controllers()
        if scheduled:
            await self.start_scheduler()
            await self.until(self.is_wired)

    async def restart(self, **gates: bool) -> None:
        """Everything ends and begins again on the same data, with these gates."""
        await self.stop()
        store = self.server.api.store
        assert isinstance(store, MemoryStore)
        await self.server.close()
        self.gates = Gates(gates)
        self.server = await _serve(store, self.gates)
        self.client = self.server.client()
        await self.start_all()

    # -- making ---------------------------------------------------------------------------------

    async def put(self, *objects: Fields) -> None:
        """Objects of any kind, as `kep.objects` makes them. A node has what its status says."""
        for fields in objects:
            made = await self.create(_PLURALS[fields["kind"]], _without_status(fields))
            if fields["kind"] == "Node":
                await self.resource("nodes").update_status(made.changed({"status": fields["status"]}))

    async def update_node(self, fields: Fields) -> None:
        name = fields["metadata"]["name"]
        await self.resource("nodes").patch(name, {"status": fields["status"]}, subresource="status")

    async def delete_pod(self, name: str = "p") -> None:
        await self.resource("pods").delete(name, NS, grace_period_s=0)

    async def finish(self, name: str = "p", phase: str = "Succeeded") -> None:
        await self.resource("pods").patch(name, {"status": {"phase": phase}}, NS, subresource="status")

    # -- looking --------------------------------------------------------------------------------

    async def settled(self, name: str = "p") -> Object:
        """The pod, once it has a node."""
        await self.bound(name)
        return await self.resource("pods").get(name, NS)

    async def why_not(self, name: str = "p") -> str:
        return str((await self.condition(name)).get("message"))

    async def classes_heard_of(self) -> None:
        """Until the scheduler knows every class as the server does: classes and pods reach it on watches of
        their own, so a pod may come before what was done to a class before it."""

        async def known() -> bool:
            assert self.scheduler is not None
            seen = {
                name: one.metadata.resource_version for name, one in self.scheduler.snapshot.classes.items()
            }
            there = await self.all("deviceclasses")
            return seen == {one.name: one.metadata.resource_version for one in there}

        await self.until(known, "the scheduler has heard of every class")

    async def extended_claims(self) -> list[Object]:
        """Every claim for extended resources that there is."""
        found = await self.resource("resourceclaims").list(NS)
        return [one for one in found.objects if (one.metadata.annotations or {}).get(ANNOTATION) == "true"]

    async def claim_of(self, name: str = "p") -> Object:
        """The claim that the pod says serves its extended resources."""
        said = said_of(await self.settled(name))
        assert said is not None
        return await self.resource("resourceclaims").get(said["resourceClaimName"], NS)

    async def devices_of(self, name: str = "p") -> dict[str, list[str]]:
        """The devices of each request."""
        claim = await self.claim_of(name)
        found: dict[str, list[str]] = {}
        for one in claim.fields["status"]["allocation"]["devices"]["results"]:
            found.setdefault(one["request"], []).append(one["device"])
        return found

    async def no_claims(self) -> None:
        """Until there is no claim for extended resources any more."""

        async def none() -> bool:
            return not await self.extended_claims()

        await self.until(none, "no claim for extended resources")

    # -- standing in the way --------------------------------------------------------------------

    def intervene(self, which: Callable[[Request], bool], times: int, error: BaseException) -> list[Request]:
        """So many requests of the scheduler fail before they reach the server; returned as they come."""
        met: list[Request] = []

        async def before(request: Request) -> None:
            if len(met) < times and which(request):
                met.append(request)
                raise error

        self.wire.before = before
        return met


def _without_status(fields: Fields) -> Fields:
    return {key: value for key, value in fields.items() if key != "status"}


async def _serve(store: MemoryStore, gates: Gates) -> WiredServer:
    server = WiredServer(TestServer(ApiServer(store, Options(gates=gates, transactions=False))))
    await server.api.start()
    return server


async def _told(
    story: Callable[..., Awaitable[None]], scheduled: bool, controlled: bool, gates: Gates, given: Any
) -> None:
    chosen = tuple(one for one in ALL if one.name in CONTROLLERS)
    store = MemoryStore()
    server = await _serve(store, gates)
    here = Place(server, server.client(), gates, chosen)
    try:
        await here.start_all(scheduled, controlled)
        await asyncio.wait_for(story(here, **given), 40)
    finally:
        await here.stop()
        await here.server.close()
        await store.close()


def to_a_cluster(
    *, scheduled: bool = True, controlled: bool = True, **gates: bool
) -> Callable[[Callable[..., Awaitable[None]]], Callable[..., None]]:
    """The story is told to a cluster of its own, its first parameter; with a scheduler and controllers unless
    it says not."""

    def decorate(story: Callable[..., Awaitable[None]]) -> Callable[..., None]:
        @wraps(story)
        def run(**given: Any) -> None:
            asyncio.run(_told(story, scheduled, controlled, Gates(gates), given))

        _, *rest = inspect.signature(story).parameters.values()
        run.__signature__ = inspect.Signature(rest)  # type: ignore[attr-defined]  # for pytest
        return run

    return decorate


def reserved_for(claim: Object) -> Sequence[str]:
    return [one["name"] for one in (claim.fields.get("status") or {}).get("reservedFor") or ()]
