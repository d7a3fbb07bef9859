"""Writes to claims until their outcome is known: BIND1, C1 and C2 of `claiming`.

Against the real server, over a line that loses answers. Devices are chosen by hand.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import msgspec
import pytest

from allot.api import Object, core, errors, resource
from allot.base import SystemClock
from allot.client import Client
from allot.scheduler.claim import ClaimInfo
from allot.scheduler.claiming import ClaimWriter, Outdated, Refusal
from allot.scheduler.extended import DeviceRequests
from allot.scheduler.pod import PodInfo

from .cluster import DRIVER, NS, SOON_S, Cluster, pod, tell
from .wire import Wire

FINALIZER = "resource.kubernetes.io/delete-protection"


class Bench:
    """A claim writer, its line, and a pod and a claim to try it on."""

    def __init__(self, here: Cluster) -> None:
        self.here = here
        self.wire = Wire.to(here)
        self.told: list[Object] = []
        self.writer = ClaimWriter(Client(self.wire), SystemClock(), self.told.append)

    async def pod(self, name: str = "p") -> PodInfo:
        return PodInfo.of(await self.here.create("pods", pod(name)))

    async def claim(self, name: str = "c") -> ClaimInfo:
        return ClaimInfo.of(await self.here.claim(name))

    async def allocated(self, *pods: PodInfo, name: str = "c", device: str = "gpu-0") -> ClaimInfo:
        """A claim that these pods have reserved, written by somebody else."""
        writer = ClaimWriter(self.here.client, SystemClock(), lambda claim: None)
        claim = await writer.allocate(pods[0], await self.claim(name), devices(device))
        for one in pods[1:]:
            claim, _ = await writer.reserve(one, claim)
        return claim

    async def look(self, name: str = "c") -> tuple[list[str], list[str], list[str]]:
        """Devices, users and finalizers of a claim."""
        claim = await self.here.get("resourceclaims", name)
        assert claim is not None
        status = claim.fields.get("status") or {}
        results = ((status.get("allocation") or {}).get("devices") or {}).get("results") or ()
        users = [one["name"] for one in status.get("reservedFor") or ()]
        return [one["device"] for one in results], users, list(claim.metadata.finalizers or ())


def devices(*names: str, request: str = "gpu") -> resource.AllocationResult:
    results = [{"request": request, "driver": DRIVER, "pool": "a", "device": name} for name in names]
    return msgspec.convert({"devices": {"results": results}}, resource.AllocationResult)


def on_a_bench(story: Callable[[Bench], Awaitable[None]]) -> None:
    async def whole(here: Cluster) -> None:
        await here.node("a")
        await here.devices("a", 4)
        await here.device_class()
        await story(Bench(here))

    tell(whole, started=False)


KEPT = ("as it was", "given back", "going", "another")


@pytest.mark.parametrize("now", KEPT)
def test_what_an_earlier_attempt_made_is_kept_only_if_the_server_has_it_so(now: str):
    """A watch may be behind: whoever began with the claim may have taken it back."""

    async def story(bench: Bench) -> None:
        pod = await bench.pod()
        claim = await bench.allocated(pod)
        claims = bench.here.resource("resourceclaims")
        if now == "given back":
            await bench.writer.release(pod, claim)
        elif now != "as it was":
            await claims.delete("c", NS)
        if now == "another":
            await bench.writer.release(pod, claim)
            await bench.allocated(pod)
        if now == "as it was":
            assert (await bench.writer.keep_extended(pod, claim)).uid == claim.uid
            return
        bench.told.clear()
        with pytest.raises(Outdated):
            await bench.writer.keep_extended(pod, claim)
        assert [one.name for one in bench.told] == ["c"]

    on_a_bench(story)


# -- answers that do not come -----------------------------------------------------------------------

UNKNOWN = pytest.mark.parametrize("carried_out", [True, False], ids=["carried out", "not carried out"])


@UNKNOWN
@pytest.mark.parametrize("number", [1, 2])
def test_an_allocation_is_written_once_whichever_answer_is_lost(number: int, carried_out: bool):
    async def story(bench: Bench) -> None:
        one, claim = await bench.pod(), await bench.claim()
        bench.wire.lose(number, carried_out=carried_out)
        written = await bench.writer.allocate(one, claim, devices("gpu-0"))
        assert await bench.look() == (["gpu-0"], ["p"], [FINALIZER])
        assert written.is_reserved_for(one.uid) and bench.told == [written.object]

    on_a_bench(story)


@UNKNOWN
def test_a_reservation_is_added_once_when_its_answer_is_lost(carried_out: bool):
    async def story(bench: Bench) -> None:
        first, second = await bench.pod(), await bench.pod("q")
        claim = await bench.allocated(first)
        bench.wire.lose(1, carried_out=carried_out)
        await bench.writer.reserve(second, claim)
        assert (await bench.look())[1] == ["p", "q"]

    on_a_bench(story)


@UNKNOWN
@pytest.mark.parametrize("number", [1, 2])
def test_the_last_one_leaves_nothing_behind_whichever_answer_is_lost(number: int, carried_out: bool):
    async def story(bench: Bench) -> None:
        one = await bench.pod()
        claim = await bench.allocated(one)
        bench.wire.lose(number, carried_out=carried_out)
        await bench.writer.release(one, claim)
        assert await bench.look() == ([], [], [])

    on_a_bench(story)


@pytest.mark.parametrize("step", ["release", "deallocate"])
def test_giving_back_goes_on_while_a_write_of_it_may_still_arrive(step: str):
    """BIND6. Its first write is on its way, its second is refused. Were that the end, the next attempt would
    rely on the claim as it is, and the first write would take it from a pod that runs."""

    async def story(bench: Bench) -> None:
        one = await bench.pod()
        claim = await bench.allocated(one)
        bench.wire.lose(1, carried_out=False)
        bench.wire.refuse(2, errors.Conflict("somebody else was faster"))
        await getattr(bench.writer, step)(one, claim)
        assert await bench.look() == ([], [], [])

    on_a_bench(story)


@UNKNOWN
@pytest.mark.parametrize("number", [1, 2])
def test_devices_are_taken_back_whichever_answer_is_lost(number: int, carried_out: bool):
    """The protection goes as well: once the allocation is gone, nothing else would remove it."""

    async def story(bench: Bench) -> None:
        one = await bench.pod()
        claim = await bench.allocated(one)
        bench.wire.lose(number, carried_out=carried_out)
        await bench.writer.deallocate(one, claim)
        assert await bench.look() == ([], [], [])

    on_a_bench(story)


@UNKNOWN
@pytest.mark.parametrize("number", [1, 2, 3])
def test_a_claim_for_extended_resources_goes_whichever_answer_is_lost(number: int, carried_out: bool):
    async def story(bench: Bench) -> None:
        one = await bench.pod()
        claim = await bench.allocated(one)
        bench.wire.lose(number, carried_out=carried_out)
        await bench.writer.delete_extended(one, claim)
        assert await bench.here.get("resourceclaims", "c") is None

    on_a_bench(story)


@pytest.mark.parametrize("number", [1, 2, 3])
def test_removing_a_claim_for_extended_resources_goes_on_while_a_write_of_it_may_still_arrive(number: int):
    """BIND6, as for giving back: a claim that stayed would serve the next attempt, and be cleared under the
    pod that runs with it."""

    async def story(bench: Bench) -> None:
        one = await bench.pod()
        claim = await bench.allocated(one)
        bench.wire.lose(number, carried_out=False)
        bench.wire.refuse(number + 1, errors.Conflict("somebody else was faster"))
        await bench.writer.delete_extended(one, claim)
        assert await bench.here.get("resourceclaims", "c") is None

    on_a_bench(story)


@UNKNOWN
def test_one_claim_for_extended_resources_is_made_when_the_answer_is_lost(carried_out: bool):
    """C5."""

    async def story(bench: Bench) -> None:
        one = await bench.pod()
        bench.wire.lose(1, carried_out=carried_out)
        made = await bench.writer.create_extended(one, extended())
        assert [claim.name for claim in await bench.here.all("resourceclaims")] == [made.key.name]

    on_a_bench(story)


def extended() -> DeviceRequests:
    exactly = resource.ExactDeviceRequest(device_class_name="gpu", allocation_mode="ExactCount", count=1)
    request = resource.DeviceRequest(name="container-0-request-0", exactly=exactly)
    mapping = core.RequestMapping("main", "example.com/gpu", request.name)
    return DeviceRequests((request,), (mapping,))


def test_a_server_that_is_away_is_waited_for():
    """Only a definite answer ends a step (BIND1): refusing connections is not one."""

    async def story(bench: Bench) -> None:
        one, claim = await bench.pod(), await bench.claim()
        bench.wire.before("PUT", bench.wire.fail_for(0.4))
        await bench.writer.allocate(one, claim, devices("gpu-0"))
        assert await bench.look() == (["gpu-0"], ["p"], [FINALIZER])

    on_a_bench(story)


# -- others who write -------------------------------------------------------------------------------


@pytest.mark.parametrize("write", ["PUT", "/status"])
def test_somebody_who_labels_the_claim_meanwhile_is_no_obstacle(write: str):
    async def story(bench: Bench) -> None:
        one, claim = await bench.pod(), await bench.claim()
        bench.wire.before(write, label(bench))
        await bench.writer.allocate(one, claim, devices("gpu-0"))
        assert await bench.look() == (["gpu-0"], ["p"], [FINALIZER])
        found = await bench.here.get("resourceclaims", "c")
        assert found is not None and found.fields["metadata"]["labels"] == {"team": "red"}

    on_a_bench(story)


def label(bench: Bench) -> Callable[[], Awaitable[Any]]:
    labels = {"metadata": {"labels": {"team": "red"}}}
    return lambda: bench.here.resource("resourceclaims").patch("c", labels, NS)


def test_devices_that_another_claim_has_are_a_definite_no():
    """The guard's conflict: nobody wrote this claim, so trying again would change nothing."""

    async def story(bench: Bench) -> None:
        one, other = await bench.pod(), await bench.pod("q")
        claim = await bench.claim()
        await bench.allocated(other, name="d")
        with pytest.raises(Refusal, match="held by another claim"):
            await bench.writer.allocate(one, claim, devices("gpu-0"))
        assert (await bench.look())[:2] == ([], [])
        assert len(bench.wire.writes) <= 3

    on_a_bench(story)


def test_an_allocation_that_somebody_else_wrote_is_left_alone():
    async def story(bench: Bench) -> None:
        one, other = await bench.pod(), await bench.pod("q")
        claim = await bench.claim()

        async def allocate() -> None:
            writer = ClaimWriter(bench.here.client, SystemClock(), lambda claim: None)
            await writer.allocate(other, claim, devices("gpu-1"))

        bench.wire.before("PUT", allocate)
        with pytest.raises(Outdated, match="allocated elsewhere"):
            await bench.writer.allocate(one, claim, devices("gpu-0"))
        assert await bench.look() == (["gpu-1"], ["q"], [FINALIZER])
        now = await bench.here.get("resourceclaims", "c")
        assert now is not None
        assert [one.resource_version for one in bench.told] == [now.resource_version]

    on_a_bench(story)


def test_a_reservation_is_not_added_to_other_devices_than_were_decided_on():
    """C2: the claim was given back and allocated anew in between."""

    async def story(bench: Bench) -> None:
        first, second = await bench.pod(), await bench.pod("q")
        claim = await bench.allocated(first)
        writer = ClaimWriter(bench.here.client, SystemClock(), lambda claim: None)

        async def anew() -> None:
            await writer.release(first, claim)
            await writer.allocate(first, await writer.read(claim), devices("gpu-1"))

        bench.wire.before("/status", anew)
        with pytest.raises(Outdated, match="no longer has the devices"):
            await bench.writer.reserve(second, claim)
        assert await bench.look() == (["gpu-1"], ["p"], [FINALIZER])
        now = await bench.here.get("resourceclaims", "c")
        assert now is not None
        assert [one.resource_version for one in bench.told] == [now.resource_version]

    on_a_bench(story)


def test_a_claim_that_was_replaced_is_another_claim():
    async def story(bench: Bench) -> None:
        one, claim = await bench.pod(), await bench.claim()

        async def replace() -> None:
            await bench.here.resource("resourceclaims").delete("c", NS)
            await bench.here.claim("c", count=2)

        bench.wire.before("PUT", replace)
        with pytest.raises(Refusal, match="was replaced"):
            await bench.writer.allocate(one, claim, devices("gpu-0"))
        assert await bench.look() == ([], [], [])

    on_a_bench(story)


def test_the_last_one_out_leaves_the_devices_of_a_claim_that_others_allocate():
    """Without our finalizer somebody else allocated it, and takes it back."""

    async def story(bench: Bench) -> None:
        pod = await bench.pod()
        claim = await bench.allocated(pod)
        unprotected = await bench.here.resource("resourceclaims").patch(
            "c", {"metadata": {"finalizers": None}}, NS
        )
        await bench.writer.release(pod, ClaimInfo.of(unprotected))
        assert await bench.look() == (["gpu-0"], [], [])
        assert claim.allocation is not None

    on_a_bench(story)


@pytest.mark.parametrize("step", ["allocate", "reserve"])
def test_a_claim_that_is_gone_is_a_definite_no(step: str):
    async def story(bench: Bench) -> None:
        one = await bench.pod()
        claim = await (bench.claim() if step == "allocate" else bench.allocated(one))
        other = await bench.pod("q")

        async def delete() -> None:
            fields = {"metadata": {"finalizers": None}}
            await bench.here.resource("resourceclaims").delete("c", NS)
            if step == "reserve":
                await bench.here.resource("resourceclaims").patch("c", fields, NS)

        bench.wire.before("PUT", delete)
        with pytest.raises(errors.NotFound):
            if step == "allocate":
                await bench.writer.allocate(one, claim, devices("gpu-0"))
            else:
                await bench.writer.reserve(other, claim)

    on_a_bench(story)


def test_a_claim_takes_256_users_and_the_next_is_told():
    async def story(bench: Bench) -> None:
        first = await bench.pod()
        claim = await bench.allocated(first)
        users = [{"resource": "pods", "name": f"p{n}", "uid": f"uid-{n}"} for n in range(256)]
        full = claim.object.changed({"status": {"reservedFor": users}})
        claim = ClaimInfo.of(await bench.here.resource("resourceclaims").update_status(full))
        with pytest.raises(errors.Invalid, match="256"):
            await bench.writer.reserve(await bench.pod("q"), claim)
        assert len((await bench.look())[1]) == 256

    on_a_bench(story)


# -- many at once -----------------------------------------------------------------------------------


def test_reservations_of_one_claim_are_made_one_after_the_other():
    """Each on top of the last: nobody runs into a conflict with their own process."""

    async def story(bench: Bench) -> None:
        pods = [await bench.pod(f"p{n}") for n in range(8)]
        claim = await bench.allocated(pods[0])
        await asyncio.gather(*(bench.writer.reserve(one, claim) for one in pods[1:]))
        assert sorted((await bench.look())[1]) == [one.key.name for one in pods]
        assert len(bench.wire.writes) == len(pods) - 1

    on_a_bench(story)


def test_those_who_leave_and_those_who_come_agree_on_who_is_left():
    """The one who comes may find the devices gone, and then the claim is free; never half of it."""

    async def story(bench: Bench) -> None:
        one, other = await bench.pod(), await bench.pod("q")
        claim = await bench.allocated(one)
        ended: Sequence[Any] = await asyncio.gather(
            bench.writer.release(one, claim), bench.writer.reserve(other, claim), return_exceptions=True
        )
        found = await bench.look()
        if isinstance(ended[1], Refusal):
            assert found == ([], [], [])
        else:
            assert found == (["gpu-0"], ["q"], [FINALIZER])

    on_a_bench(story)


def test_turns_of_two_claims_are_taken_in_the_same_order_by_everybody():
    """Else two placements with both claims would each hold what the other waits for, for ever."""

    async def story(bench: Bench) -> None:
        one, other = await bench.claim("c"), await bench.claim("d")

        async def take(*claims: ClaimInfo) -> None:
            async with bench.writer.turns(claims):
                pass

        async with bench.writer.turns([one]):
            waiting = [asyncio.create_task(take(one, other)), asyncio.create_task(take(other, one))]
            await asyncio.sleep(0)
            assert not any(task.done() for task in waiting)
        await asyncio.wait_for(asyncio.gather(*waiting), SOON_S)

    on_a_bench(story)
