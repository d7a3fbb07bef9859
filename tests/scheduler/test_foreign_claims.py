"""C4, C12: what was made for one pod is nobody else's to use, and is not removed under somebody else.

Any pod may name any claim of its namespace, and who may write a claim's status may list anybody in
it. Neither may end with one device in use by two pods.
"""

import asyncio
from typing import Any

import pytest

from allot.api import Object, errors
from allot.base import SystemClock
from allot.scheduler.claim import ClaimInfo
from allot.scheduler.claiming import ClaimWriter, Outdated, Refusal

from .cluster import NS, Cluster
from .test_binding import scheduled_over, users, with_devices
from .test_claiming import Bench, devices, on_a_bench
from .test_why import why

GPU = {"example.com/gpu": "1"}
OUTSIDER = {"apiGroup": "example.com", "resource": "trainings", "name": "t", "uid": "uid-of-t"}


async def the_claim(here: Cluster) -> Object:
    """The only one there is, once it is there."""

    async def found() -> Any:
        return await here.all("resourceclaims")

    (claim,) = await here.until(found, "a claim for the extended resources")
    return claim


async def list_user(here: Cluster, claim: str, user: dict[str, str]) -> None:
    """By hand, as `kubectl edit --subresource status` does."""
    found = await here.get("resourceclaims", claim)
    assert found is not None
    listed = [*(found.fields["status"].get("reservedFor") or ()), user]
    await here.resource("resourceclaims").update_status(found.changed({"status": {"reservedFor": listed}}))


async def forbid() -> None:
    raise errors.Forbidden("pods/binding is forbidden")


# -- who names it ---------------------------------------------------------------------------------


def test_a_pod_that_names_the_claim_of_anothers_extended_resources_waits_and_says_why():
    """5004-CLAIM-21."""

    async def story(here: Cluster) -> None:
        await here.start_scheduler()
        await here.pod("owner", requests=GPU)
        await here.bound("owner")
        claim = await the_claim(here)
        await here.pod("stranger", claim=claim.name)
        words = f'resourceclaim "{claim.name}" was made for pod "owner" and is used by it alone'
        assert words in (await here.condition("stranger"))["message"]
        assert words in (await why(here, "stranger")).verdict
        assert await here.node_of("stranger") == ""
        assert await users(here, claim.name) == ["owner"]

    with_devices(story)


def test_a_pod_that_names_it_before_its_owner_is_bound_never_gets_there():
    """The whole story: the stranger comes while the owner is being bound, and that fails. Where the stranger
    was bound first, the owner's next claim had the same device."""

    async def story(here: Cluster) -> None:
        wire = await scheduled_over(here)

        async def a_stranger_comes_and_binding_fails() -> None:
            claim = await the_claim(here)
            await here.pod("stranger", claim=claim.name)
            await asyncio.sleep(0.5)
            raise errors.Forbidden("pods/binding is forbidden")

        wire.before("pods/owner/binding", a_stranger_comes_and_binding_fails)
        await here.pod("owner", requests=GPU)
        await here.bound("owner")
        await here.quiet()
        assert await here.node_of("stranger") == ""
        claim = await the_claim(here)
        assert await users(here, claim.name) == ["owner"]

    with_devices(story)


def test_a_generated_claim_is_not_anothers_either():
    """C4, by name."""

    async def story(here: Cluster) -> None:
        await here.start_scheduler()
        await here.pod("owner", template="one")
        await here.bound("owner")
        claim = await the_claim(here)
        await here.pod("stranger", claim=claim.name)
        assert 'was made for pod "owner"' in (await here.condition("stranger"))["message"]
        assert await users(here, claim.name) == ["owner"]

    with_devices(story)


@pytest.mark.parametrize("write", ["allocate", "reserve"])
def test_a_claim_that_was_made_over_to_another_pod_meanwhile_is_not_used(write: str):
    """Who owns a claim can be changed after it was decided on."""

    async def story(bench: Bench) -> None:
        one, other = await bench.pod("one"), await bench.pod("other")
        claim = await (bench.claim() if write == "allocate" else bench.allocated(other))
        owner = {"apiVersion": "v1", "kind": "Pod", "name": "other", "uid": other.uid, "controller": True}
        await bench.here.resource("resourceclaims").patch("c", {"metadata": {"ownerReferences": [owner]}}, NS)
        before = await bench.look()
        with pytest.raises(Outdated, match="was made for pod other"):
            if write == "allocate":
                await bench.writer.allocate(one, claim, devices("gpu-0"))
            else:
                await bench.writer.reserve(one, claim)
        assert (await bench.look())[:2] == before[:2]

    on_a_bench(story)


# -- who is listed in it --------------------------------------------------------------------------


def test_an_attempt_that_fails_leaves_the_claim_alone_while_somebody_else_is_listed():
    """5004-CLAIM-21: C12, and C6 if that is a pod that runs. The owner goes on with the claim that it
    has."""

    async def story(here: Cluster) -> None:
        wire = await scheduled_over(here)
        seen: list[Object] = []

        async def somebody_is_listed_and_binding_fails() -> None:
            seen.append(await the_claim(here))
            await list_user(here, seen[0].name, OUTSIDER)
            await forbid()

        wire.before("pods/owner/binding", somebody_is_listed_and_binding_fails)
        await here.pod("owner", requests=GPU)
        await here.bound("owner")
        now = await the_claim(here)
        assert now.uid == seen[0].uid
        assert now.fields["status"]["allocation"] == seen[0].fields["status"]["allocation"]
        assert await users(here, now.name) == ["owner", "t"]

    with_devices(story)


def test_a_leftover_that_somebody_else_uses_stays_and_its_owner_waits_until_they_leave():
    async def story(here: Cluster) -> None:
        wire = await scheduled_over(here)

        async def another_takes_the_place() -> None:
            found = await the_claim(here)
            listed = {"status": {"reservedFor": [OUTSIDER]}}  # the owner is not listed any more
            await here.resource("resourceclaims").update_status(found.changed(listed))
            await forbid()

        wire.before("pods/owner/binding", another_takes_the_place)
        await here.pod("owner", requests=GPU)

        async def message() -> Any:
            told = (await here.condition("owner"))["message"]
            return told if "also used by" in told else None

        claim = await the_claim(here)
        words = f'resourceclaim "{claim.name}" of an earlier attempt is also used by trainings/t, and stays'
        assert words in await here.until(message, "told whose it is")
        assert words in (await why(here, "owner")).verdict
        assert (await the_claim(here)).uid == claim.uid
        found = await the_claim(here)
        await here.resource("resourceclaims").update_status(
            found.changed({"status": {"reservedFor": None, "allocation": None}})
        )
        await here.bound("owner")
        assert (await the_claim(here)).uid != claim.uid

    with_devices(story)


def test_who_comes_between_the_decision_and_the_write_is_seen():
    """A watch may be behind: the claim is judged as the server has it."""

    async def story(bench: Bench) -> None:
        one = await bench.pod()
        claim = await bench.allocated(one)
        await list_user(bench.here, "c", OUTSIDER)
        before = await bench.look()
        with pytest.raises(Refusal, match="also used by trainings/t"):
            await bench.writer.delete_extended(one, claim)
        assert await bench.look() == before
        assert [told.name for told in bench.told] == ["c"]  # the loop hears how it is

    on_a_bench(story)


def test_who_comes_after_the_devices_were_given_back_keeps_the_claim():
    """Another scheduler allocates it, for a pod that names it, just before it is deleted."""

    async def story(bench: Bench) -> None:
        one, other = await bench.pod("one"), await bench.pod("other")
        claim = await bench.allocated(one)
        writer = ClaimWriter(bench.here.client, SystemClock(), lambda told: None)

        async def another_allocates() -> None:
            found = await bench.here.get("resourceclaims", "c")
            assert found is not None
            await writer.allocate(other, ClaimInfo.of(found), devices("gpu-1"))

        bench.wire.before("DELETE", another_allocates)
        with pytest.raises(Refusal, match="also used by other"):
            await bench.writer.delete_extended(one, claim)
        found = await bench.here.get("resourceclaims", "c")
        assert found is not None and found.metadata.deletion_timestamp is None
        assert (await bench.look())[:2] == (["gpu-1"], ["other"])

    on_a_bench(story)
