"""A scheduler that dies between any two writes leaves nothing that the next one does not mend.

Death is a transport that neither sends nor answers any more: nothing that the dying process
still tries reaches the server. The next scheduler starts from what the server has.
"""

import asyncio
import random
from functools import partial

import pytest

from allot.api import Request, Response
from allot.apiserver import identities
from allot.base import Metrics, RandomIds, SystemClock
from allot.client import Client, InProcessTransport
from allot.informers import Informers, Telemetry
from allot.scheduler import Dependencies, Scheduler

from .cluster import NS, QUICK, Cluster, pod
from .cluster import tell as tell_any
from .wire import is_write

tell = partial(tell_any, transactions=False)
"""One write after the other, as on any other Kubernetes; `test_placing` tells of whole placements."""

FINALIZER = "resource.kubernetes.io/delete-protection"


class Mortal:
    """Dies at the n-th write: before it is sent, or after the server has carried it out."""

    def __init__(self, transport: InProcessTransport, dies_at: int, after: bool) -> None:
        self._transport = transport
        self._dies_at = dies_at
        self._after = after
        self.writes: list[str] = []
        self.dead = asyncio.Event()

    async def send(self, request: Request) -> Response:
        if self.dead.is_set():
            await asyncio.Event().wait()
        counts = is_write(request)
        if counts:
            self.writes.append(f"{request.method} {request.path}")
        if not counts or len(self.writes) != self._dies_at:
            return await self._transport.send(request)
        if self._after:
            await self._transport.send(request)
        self.dead.set()
        await asyncio.Event().wait()
        raise AssertionError("the dead do not return")

    async def close(self) -> None:
        await self._transport.close()


async def die(here: Cluster, dies_at: int, after: bool, least: int = 0) -> list[str]:
    """Run a scheduler until its n-th write. Returns what it wrote, or all that it had to write, which is
    so many at the least."""
    transport = Mortal(InProcessTransport(here.server.api.handle, identities.SCHEDULER), dies_at, after)
    client, rng, clock = Client(transport), random.Random(3), SystemClock()

    async def live() -> None:
        async with Informers(client, rng, pace=QUICK) as informers:
            ids, metrics = RandomIds(rng), Metrics()
            dependencies = Dependencies(
                client, informers, clock, ids, metrics, Telemetry(metrics, clock), here.gates
            )
            await Scheduler(dependencies, here.settings).run()

    async def has_written() -> bool:
        return len(transport.writes) >= least

    living = asyncio.create_task(live())
    try:
        await here.until(has_written, f"it has written {least} times")
        async with asyncio.timeout(1.0):
            await transport.dead.wait()
    except TimeoutError:
        pass  # it had fewer writes than that
    living.cancel()
    await asyncio.wait([living])
    return transport.writes


async def furnish(here: Cluster) -> None:
    for name in "ab":
        await here.node(name)
        await here.devices(name, 2)
    await here.device_class(extendedResourceName="example.com/gpu")
    await here.template()
    await here.claim("shared")
    both = pod("both", template="one", requests={"cpu": "1"})
    both["spec"]["resourceClaims"].append({"name": "more", "resourceClaimName": "shared"})
    await here.create("pods", both)
    await here.pod("extended", requests={"example.com/gpu": "1"})


async def check(here: Cluster) -> None:
    """Everybody has what they asked for, once, and nobody else has anything."""
    (where,) = await here.bound("both")
    await here.bound("extended")
    await here.quiet()
    claims = {one.name: one for one in await here.all("resourceclaims")}
    assert len(claims) == 3, sorted(claims)  # C5
    held = await here.held()
    devices = [device for one in held.values() for device in one]
    assert len(devices) == len(set(devices)) == 3  # D1
    for claim in claims.values():
        users = [one["name"] for one in claim.fields["status"]["reservedFor"]]
        assert users == (["extended"] if "extended-resources" in claim.name else ["both"])
        assert claim.metadata.finalizers == [FINALIZER]  # C1
    assert {pool.split("/")[0] for name in held for pool in held[name] if "extended" not in name} == {where}
    found = await here.get("pods", "extended")
    assert found is not None
    named = found.fields["status"]["extendedResourceClaimStatus"]["resourceClaimName"]
    assert "extended-resources" in named and named in claims


WRITES = 9
"""Of both pods: finalizer and status (twice), binding; create, finalizer, status, pod status, binding."""


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("dies_at", range(1, WRITES + 2))
def test_whoever_comes_next_mends_what_a_dead_scheduler_left(dies_at: int, after: bool):
    async def story(here: Cluster) -> None:
        await here.start_controllers()
        await furnish(here)
        writes = await die(here, dies_at, after, least=min(dies_at, WRITES))
        assert len(writes) >= min(dies_at, WRITES), writes
        await here.start_scheduler()
        await check(here)

    tell(story, started=False)


def test_a_claim_that_is_being_deleted_is_left_by_the_pod_that_waits_for_it():
    """Reserved by a scheduler that died, and then deleted: the pod waited until the claim was gone, and the
    claim until the pod had left it."""

    async def story(here: Cluster) -> None:
        await here.start_controllers()
        await here.node("a")
        await here.devices("a", 2)
        await here.device_class()
        for name in "xy":
            await here.claim(name)
        claims = [{"name": name, "resourceClaimName": name} for name in "xy"]
        await here.pod("p", resourceClaims=claims)
        for dies_at in range(1, 5):
            await die(here, dies_at, after=True, least=1)
            if await here.held():
                break
        assert [*(await here.held())] == ["x"]
        await here.resource("resourceclaims").delete("x", NS)
        assert await here.get("resourceclaims", "x") is not None
        await here.start_scheduler()

        async def is_gone() -> bool:
            return await here.get("resourceclaims", "x") is None

        await here.until(is_gone, "the deleted claim gone")
        await here.claim("x")
        assert await here.bound("p") == ["a"]

    tell(story, started=False)


def test_what_a_dead_scheduler_left_is_removed_although_its_pod_can_no_longer_be_tried():
    """C5: another claim of the pod went away meanwhile, and the pod waits for it outside the queue."""

    async def story(here: Cluster) -> None:
        await here.start_controllers()
        await here.node("a")
        await here.devices("a", 2)
        await here.device_class(extendedResourceName="example.com/gpu")
        await here.claim("needed")
        late = pod("late", requests={"example.com/gpu": "1"})
        late["spec"]["resourceClaims"] = [{"name": "more", "resourceClaimName": "needed"}]
        await here.create("pods", late)
        for dies_at in range(1, 6):
            await die(here, dies_at, after=True)
            if any("extended-resources" in one.name for one in await here.all("resourceclaims")):
                break
        else:
            raise AssertionError("no claim was made for the extended resources")
        await here.resource("resourceclaims").delete("needed", NS)
        await here.start_scheduler()

        async def is_gone() -> bool:
            return all("extended-resources" not in one.name for one in await here.all("resourceclaims"))

        await here.until(is_gone, "what was left is removed")
        found = await here.get("pods", "late")
        assert found is not None and not found.fields["spec"].get("nodeName")

    tell(story, started=False)


def test_a_pod_that_is_deleted_while_it_is_being_bound_leaves_nothing_behind():
    """The bind is refused; what was allocated for it goes back (P1)."""

    async def story(here: Cluster) -> None:
        await here.start_controllers()
        await furnish(here)
        await die(here, 4, after=True)
        for name in ("both", "extended"):
            await here.resource("pods").delete(name, NS, grace_period_s=0)
        await here.start_scheduler()

        async def nothing_held() -> bool:
            return not await here.held()

        await here.until(nothing_held, "devices given back")

    tell(story, started=False)
