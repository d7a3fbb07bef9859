"""From a decision to a pod on its node, while lines fail and others act: BIND1 to BIND4 of `binding`.

The whole scheduler runs against the real server. What goes wrong goes wrong on its line, just
before a write of its choice.
"""

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

import pytest

from allot.api import Object, errors
from allot.base import SystemClock
from allot.scheduler.claim import ClaimInfo
from allot.scheduler.cycle import Unplaced
from allot.scheduler.framework import CycleState
from allot.scheduler.pod import PodInfo
from allot.scheduler.writes import Deallocate, DeleteClaim

from .cluster import NS, Cluster, pod
from .cluster import tell as tell_any
from .test_crashes import FINALIZER, WRITES, check, furnish
from .test_why import why
from .wire import Wire

tell = partial(tell_any, transactions=False)
"""One write after the other, as on any other Kubernetes; `test_placing` tells of whole placements."""


async def scheduled_over(here: Cluster) -> Wire:
    """Start a scheduler on a line of ours."""
    wire = Wire.to(here)
    await here.start_scheduler(transport=wire)
    return wire


def with_devices(story: Callable[[Cluster], Awaitable[None]]) -> None:
    """Two nodes with two devices each; the claim controller runs, the scheduler does not yet."""

    async def whole(here: Cluster) -> None:
        await here.start_controllers()
        for name in "ab":
            await here.node(name)
            await here.devices(name, 2)
        await here.device_class(extendedResourceName="example.com/gpu")
        await here.template()
        await story(here)

    tell(whole, started=False)


async def users(here: Cluster, claim: str) -> list[str]:
    found = await here.get("resourceclaims", claim)
    return [one["name"] for one in _status(found).get("reservedFor") or ()]


def _status(object: Object | None) -> dict[str, Any]:
    return (object.fields.get("status") or {}) if object is not None else {}


# -- answers that do not come -----------------------------------------------------------------------


@pytest.mark.parametrize("carried_out", [True, False], ids=["carried out", "not carried out"])
@pytest.mark.parametrize("number", range(1, WRITES + 1))
def test_whichever_answer_is_lost_every_pod_gets_what_it_asked_for_once(number: int, carried_out: bool):
    async def story(here: Cluster) -> None:
        await here.start_controllers()
        await furnish(here)
        wire = Wire.to(here)
        wire.lose(number, carried_out=carried_out)
        await here.start_scheduler(transport=wire)
        await check(here)

    tell(story, started=False)


@pytest.mark.parametrize("write", ["PUT", "/status", "POST", "/binding"])
def test_a_server_that_is_away_for_a_while_is_waited_for_and_everything_stays_held(write: str):
    """BIND1: no other pod is given the devices meanwhile, and nothing is taken for refused."""

    async def story(here: Cluster) -> None:
        wire = await scheduled_over(here)
        wire.before(write, wire.fail_for(0.6))
        await here.pod("first", template="one")
        await here.pod("second", requests={"example.com/gpu": "1"})
        await here.bound("first", "second")
        found = await here.get("pods", "first")
        assert all(one["status"] == "True" for one in _status(found)["conditions"])
        devices = [device for held in (await here.held()).values() for device in held]
        assert len(devices) == len(set(devices)) == 2

    with_devices(story)


# -- the pod changes --------------------------------------------------------------------------------


@pytest.mark.parametrize("write", ["PUT", "/status", "/binding"])
def test_a_pod_that_is_deleted_meanwhile_leaves_nothing_behind(write: str):
    async def story(here: Cluster) -> None:
        wire = await scheduled_over(here)
        wire.before(write, lambda: here.resource("pods").delete("p", NS, grace_period_s=0))
        await here.pod("p", template="one")
        await here.until(lambda: nothing_left(here), "everything given back")

    with_devices(story)


def test_devices_are_free_when_the_claim_for_them_is_gone_before_its_creation_is_answered():
    """The watch tells that it came and went, and then comes the answer: nobody holds anything for it."""

    async def story(here: Cluster) -> None:
        wire = await scheduled_over(here)

        async def claim_of_p() -> bool:
            """By its pod: others may have come to be known when its end is asked about."""
            assert here.scheduler is not None
            return any(one.key.name.startswith("p-") for one in here.scheduler.snapshot.claims())

        async def is_gone() -> bool:
            return not await claim_of_p()

        async def come_and_go() -> None:
            await here.until(claim_of_p, "the claim is heard of")
            await here.resource("pods").delete("p", NS, grace_period_s=0)
            await here.until(is_gone, "and that it is gone")

        wire.answer_late("POST /apis/resource.k8s.io/v1/namespaces/default/resourceclaims", come_and_go)
        await here.pod("p", requests={"example.com/gpu": "2"})
        await here.until(lambda: nothing_left(here), "everything given back")
        for name in ("q", "r"):
            await here.pod(name, requests={"example.com/gpu": "2"})
        await here.bound("q", "r")

    with_devices(story)


@pytest.mark.parametrize("write", ["POST", "/status", "/pods/p/status", "/binding"])
def test_a_pod_with_extended_resources_that_is_deleted_meanwhile_leaves_no_claim(write: str):
    """C5."""

    async def story(here: Cluster) -> None:
        wire = await scheduled_over(here)
        wire.before(write, lambda: here.resource("pods").delete("p", NS, grace_period_s=0))
        await here.pod("p", requests={"example.com/gpu": "1"})
        await here.until(lambda: nothing_left(here), "everything given back")

    with_devices(story)


async def nothing_left(here: Cluster) -> bool:
    pods, claims = await here.all("pods"), await here.all("resourceclaims")
    return not pods and all(not _status(one) and not one.metadata.finalizers for one in claims)


def test_a_pod_that_is_replaced_meanwhile_is_another_pod():
    """The binding was meant for the first of that name: the second one is placed on its own account."""

    async def story(here: Cluster) -> None:
        wire = await scheduled_over(here)

        async def replace() -> None:
            await here.resource("pods").delete("p", NS, grace_period_s=0)
            await here.pod("p", claim="c", requests={"cpu": "2"})

        wire.before("/binding", replace)
        await here.claim("c")
        first = await here.pod("p", claim="c")
        await here.bound("p")
        found = await here.get("pods", "p")
        claim = await here.get("resourceclaims", "c")
        assert found is not None and found.uid != first.uid
        await here.until(lambda: only(here, "c", found.uid), "reserved for the second alone")
        assert claim is not None and claim.metadata.finalizers == [FINALIZER]

    with_devices(story)


async def only(here: Cluster, claim: str, uid: str) -> bool:
    found = await here.get("resourceclaims", claim)
    return [one["uid"] for one in _status(found).get("reservedFor") or ()] == [uid]


# -- somebody else binds the pod --------------------------------------------------------------------


async def bind(here: Cluster, claim: str, name: str = "p", device: str = "gpu-1") -> None:
    """What another scheduler would do: reserve the claim for the pod, and bind it to node b."""
    found, running = await here.get("resourceclaims", claim), await here.get("pods", name)
    assert found is not None and running is not None
    claims = here.resource("resourceclaims")
    if not _status(found).get("allocation"):
        if FINALIZER not in (found.metadata.finalizers or ()):
            found = await claims.update(found.changed({"metadata": {"finalizers": [FINALIZER]}}))
        result = {"request": "gpu", "driver": "gpu.example.com", "pool": "b", "device": device}
        consumer = {"resource": "pods", "name": name, "uid": running.uid}
        status = {"allocation": {"devices": {"results": [result]}}, "reservedFor": [consumer]}
        await claims.update_status(found.changed({"status": status}))
    await here.resource("pods").bind(name, NS, "b", uid=running.uid)


@pytest.mark.parametrize("write", ["PUT", "/status", "/binding"])
def test_a_pod_that_somebody_else_binds_keeps_its_reservations(write: str):
    """C6: it runs, or will. Whatever this scheduler meant to do, the claim is that pod's."""

    async def story(here: Cluster) -> None:
        wire = await scheduled_over(here)
        wire.before(write, lambda: bind(here, "c"))
        await here.claim("c")
        made = await here.pod("p", claim="c", nodeSelector={"kubernetes.io/hostname": "a"})
        await here.bound("p")
        await here.quiet()
        assert await here.node_of("p") == "b"
        assert here.scheduler is not None
        assert here.scheduler.snapshot.place_of(made.uid) == "b"  # SNAP1: it takes its room there
        assert await users(here, "c") == ["p"]
        assert await here.held()

    with_devices(story)


def test_a_reservation_that_another_scheduler_made_is_not_taken_back():
    """Of two claims the first is found reserved, the second refused: the pod has its node by then."""

    async def story(here: Cluster) -> None:
        wire = await scheduled_over(here)
        wire.before("resourceclaims/c", lambda: bind_both(here))
        await here.claim("c")
        await here.claim("d")
        two = pod("p", claim="c", nodeSelector={"kubernetes.io/hostname": "a"})
        two["spec"]["resourceClaims"].append({"name": "more", "resourceClaimName": "d"})
        await here.create("pods", two)
        await here.bound("p")
        await here.quiet()
        assert await users(here, "c") == ["p"] and await users(here, "d") == ["p"]

    with_devices(story)


async def bind_both(here: Cluster) -> None:
    """Another scheduler allocates both claims, the first with the devices that ours chose, and binds."""
    running = await here.get("pods", "p")
    assert running is not None
    consumer = {"resource": "pods", "name": "p", "uid": running.uid}
    claims = here.resource("resourceclaims")
    for name, pool in (("c", "a"), ("d", "b")):
        found = await claims.get(name, NS)
        found = await claims.update(found.changed({"metadata": {"finalizers": [FINALIZER]}}))
        result = {"request": "gpu", "driver": "gpu.example.com", "pool": pool, "device": "gpu-0"}
        status = {"allocation": {"devices": {"results": [result]}}, "reservedFor": [consumer]}
        await claims.update_status(found.changed({"status": status}))
    await here.resource("pods").bind("p", NS, "a", uid=running.uid)


def test_the_extended_claim_of_a_pod_that_somebody_else_bound_stays():
    """A leader that slept through its term finds the claim that its successor made under the same name."""

    async def story(here: Cluster) -> None:
        stopped, go_on = asyncio.Event(), asyncio.Event()

        async def sleep() -> None:
            stopped.set()
            await go_on.wait()

        wire = await scheduled_over(here)
        wire.before("POST", sleep)
        await cordon(here, "b")
        await here.pod("p", requests={"example.com/gpu": "1"})
        await stopped.wait()
        await cordon(here, "a")
        await cordon(here, "b", False)
        await here.start_scheduler()
        assert await here.bound("p") == ["b"]
        held = await here.held()
        assert len(held) == 1
        go_on.set()
        await here.quiet()
        assert await here.held() == held
        assert await here.node_of("p") == "b"
        (claim,) = held
        assert await users(here, claim) == ["p"]

    with_devices(story)


async def cordon(here: Cluster, node: str, so: bool = True) -> None:
    await here.resource("nodes").patch(node, {"spec": {"unschedulable": so}})


def test_a_pod_that_somebody_else_bound_is_not_told_that_it_could_not_be():
    """Its condition PodScheduled says True, and nobody takes that back."""

    async def story(here: Cluster) -> None:
        wire = await scheduled_over(here)
        wire.before("/binding", lambda: bind(here, "c"))
        await here.claim("c")
        await here.pod("p", claim="c", nodeSelector={"kubernetes.io/hostname": "a"})
        await here.bound("p")
        await here.quiet()
        found = await here.get("pods", "p")
        (scheduled,) = [one for one in _status(found)["conditions"] if one["type"] == "PodScheduled"]
        assert scheduled["status"] == "True"

    with_devices(story)


# -- the claims change ------------------------------------------------------------------------------


def test_a_device_that_somebody_else_took_is_looked_for_elsewhere():
    """The guard refuses; the pod is tried again, and nothing of the first attempt is left."""

    async def story(here: Cluster) -> None:
        wire = await scheduled_over(here)

        async def take() -> None:
            await here.claim("theirs")
            await here.pod("them", claim="theirs", schedulerName="theirs")
            await bind(here, "theirs", "them", device="gpu-0")

        wire.before("/status", take)
        await here.pod("p", template="one", nodeSelector={"kubernetes.io/hostname": "b"})
        await here.bound("p")
        devices = [device for held in (await here.held()).values() for device in held]
        assert sorted(devices) == ["b/gpu-0", "b/gpu-1"]

    with_devices(story)


@pytest.mark.parametrize("again", [True, False], ids=["replaced", "deleted"])
def test_a_claim_that_goes_meanwhile_keeps_the_pod_waiting_for_the_next(again: bool):
    async def story(here: Cluster) -> None:
        wire = await scheduled_over(here)

        async def go() -> None:
            await here.resource("resourceclaims").delete("c", NS)
            if again:
                await here.claim("c", count=2)

        wire.before("PUT", go)
        await here.claim("c")
        await here.pod("p", claim="c")
        if not again:
            await until_it_says(here, "p", 'resourceclaim "c" not found')
            await here.claim("c", count=2)
        await here.bound("p")
        assert [len(held) for held in (await here.held()).values()] == [2]

    with_devices(story)


def test_a_claim_that_is_given_back_meanwhile_is_decided_on_anew_at_once():
    """Its last user goes while the next one is about to be listed: that is no error, and what the claim
    is like now is known. Waiting would help nobody."""

    async def story(here: Cluster) -> None:
        wire = await scheduled_over(here)
        await here.claim("c")
        await here.pod("first", claim="c")
        await here.bound("first")
        assert here.scheduler is not None
        here.scheduler.queue._backoff_first_s = here.scheduler.queue._backoff_longest_s = 60.0

        async def give_back() -> None:
            await here.resource("pods").delete("first", NS, grace_period_s=0)
            await here.until(lambda: is_free(here, "c"), "the claim given back")

        wire.before("/resourceclaims/c/status", give_back)
        await here.pod("second", claim="c")
        await here.bound("second")
        assert await users(here, "c") == ["second"]

    with_devices(story)


async def is_free(here: Cluster, claim: str) -> bool:
    found = await here.get("resourceclaims", claim)
    return found is not None and not _status(found) and not found.metadata.finalizers


async def until_it_says(here: Cluster, name: str, words: str) -> str:
    async def says() -> str:
        message = str((await here.condition(name)).get("message"))
        return message if words in message else ""

    return str(await here.until(says, f"{name} told {words!r}"))


def test_the_257th_user_of_a_claim_waits_and_is_told():
    async def story(here: Cluster) -> None:
        await here.claim("c")
        await here.pod("first", claim="c")
        await here.start_scheduler()
        await here.bound("first")
        found = await here.get("resourceclaims", "c")
        assert found is not None
        await here.pod("keeper", schedulerName="nobody")
        keeper = await here.get("pods", "keeper")
        assert keeper is not None
        real = found.fields["status"]["reservedFor"]
        others = [
            {"resource": "things", "apiGroup": "x.example", "name": f"t{n}", "uid": f"u{n}"}
            for n in range(255)
        ]
        await here.resource("resourceclaims").update_status(
            found.changed({"status": {"reservedFor": [*real, *others]}})
        )
        await here.pod("last", claim="c")
        words = 'resourceclaim "c" has 256 users, the most there can be'
        assert words in (await here.condition("last"))["message"]
        assert words in (await why(here, "last")).verdict
        assert await here.node_of("last") == ""
        full = await here.get("resourceclaims", "c")
        assert full is not None and len(full.fields["status"]["reservedFor"]) == 256
        await here.resource("resourceclaims").update_status(full.changed({"status": {"reservedFor": real}}))
        await here.bound("last")

    with_devices(story)


def test_a_definite_no_of_the_server_ends_the_attempt_and_gives_everything_back():
    """The rights to bind are gone: allocation and reservation do not stay."""

    async def story(here: Cluster) -> None:
        wire = await scheduled_over(here)

        async def refuse() -> None:
            raise errors.Forbidden("pods/binding is forbidden")

        for _ in range(3):
            wire.before("/binding", refuse)
        await here.claim("c")
        await here.pod("p", claim="c")
        message = (await here.condition("p"))["message"]
        assert "forbidden" in message

        async def free() -> bool:
            return not await here.held()

        await here.until(free, "the claim given back")

    with_devices(story)


def test_a_scheduler_that_has_not_heard_of_a_binding_takes_nothing_from_the_pod():
    """C6: its watch of pods is behind, so the claim of a pod that runs looks like a leftover."""

    async def story(here: Cluster) -> None:
        waiting = await here.pod("p", requests={"example.com/gpu": "1"})
        working = await here.start_scheduler()
        await here.bound("p")
        working.cancel()
        await asyncio.wait([working])
        (claim,) = await here.all("resourceclaims")
        assert here.scheduler is not None
        state = CycleState(PodInfo.of(waiting), SystemClock().now())
        for remedy in (DeleteClaim(ClaimInfo.of(claim)), Deallocate(ClaimInfo.of(claim))):
            await here.scheduler._make_room(Unplaced(state, None, 2, remedy=remedy), remedy)
        (kept,) = await here.all("resourceclaims")
        assert kept.resource_version == claim.resource_version

    with_devices(story)
