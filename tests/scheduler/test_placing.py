"""Whole placements: on a server with transactions a pod and its claims are written by one request.

Told over a line of the scheduler's own, on which answers get lost and others are faster.
"""

import pytest

from allot.api import errors, transaction
from allot.apiserver.transactions import reading

from .cluster import NS, Cluster, tell
from .test_binding import _status, nothing_left, scheduled_over, users
from .test_crashes import check, die, furnish
from .wire import Wire

GPU = {"example.com/gpu": "1"}
PLACEMENTS = 2
"""Of `furnish`: a pod with two claims, and one with extended resources."""


def with_devices(story):
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


def is_placement(write: str) -> bool:
    return transaction.PATH in write


async def revisions(here: Cluster, *names: tuple[str, str]) -> set[str]:
    return {(await here.get(plural, name)).resource_version for plural, name in names}


def test_a_pod_and_its_claims_are_placed_by_one_request_at_one_revision():
    async def story(here: Cluster) -> None:
        wire = await scheduled_over(here)
        await here.claim("shared")
        await here.pod("p", claim="shared")
        await here.bound("p")
        assert [one for one in wire.writes if "/events" not in one] == [f"POST {transaction.PATH}"]
        claim = await here.get("resourceclaims", "shared")
        assert claim.metadata.finalizers and _status(claim)["allocation"]
        assert await users(here, "shared") == ["p"]
        assert len(await revisions(here, ("pods", "p"), ("resourceclaims", "shared"))) == 1

    with_devices(story)


def test_the_claim_for_extended_resources_is_never_seen_before_its_pod_is_bound():
    async def story(here: Cluster) -> None:
        wire = await scheduled_over(here)
        await here.pod("p", requests=GPU)
        await here.bound("p")
        assert list(filter(is_placement, wire.writes)) == [one for one in wire.writes if "events" not in one]
        (claim,) = await here.all("resourceclaims")
        found = await here.get("pods", "p")
        assert _status(found)["extendedResourceClaimStatus"]["resourceClaimName"] == claim.name
        assert claim.resource_version == found.resource_version
        assert _status(claim)["allocation"] and await users(here, claim.name) == ["p"]

    with_devices(story)


@pytest.mark.parametrize("carried_out", [True, False], ids=["carried out", "not carried out"])
@pytest.mark.parametrize("number", range(1, PLACEMENTS + 1))
def test_whichever_answer_is_lost_every_pod_gets_what_it_asked_for_once(number: int, carried_out: bool):
    """PLACE2."""

    async def story(here: Cluster) -> None:
        await here.start_controllers()
        await furnish(here)
        wire = Wire.to(here)
        wire.lose(number, carried_out=carried_out)
        await here.start_scheduler(transport=wire)
        await check(here)

    tell(story, started=False)


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("dies_at", range(1, PLACEMENTS + 1))
def test_a_scheduler_that_dies_leaves_whole_placements_or_nothing(dies_at: int, after: bool):
    async def story(here: Cluster) -> None:
        await here.start_controllers()
        await furnish(here)
        await here.until(lambda: recorded(here), "the claim of the template")
        writes = await die(here, dies_at, after)
        assert len(list(filter(is_placement, writes))) == dies_at
        for claim in await here.all("resourceclaims"):
            found = _status(claim)
            bound = [(await here.get("pods", one["name"])) for one in found.get("reservedFor") or ()]
            assert bool(found.get("allocation")) == bool(bound), "an allocation has its pod"
            assert all(one.fields["spec"].get("nodeName") for one in bound), "and that has its node"
        await here.start_scheduler()
        await check(here)

    tell(story, started=False)


async def recorded(here: Cluster) -> bool:
    return bool(_status(await here.get("pods", "both")).get("resourceClaimStatuses"))


@pytest.mark.parametrize("asks", [{"template": "one"}, {"requests": GPU}], ids=["claim", "extended"])
def test_a_pod_that_is_deleted_meanwhile_leaves_nothing_behind(asks):
    """PLACE1."""

    async def story(here: Cluster) -> None:
        wire = await scheduled_over(here)
        wire.before(transaction.PATH, lambda: here.resource("pods").delete("p", NS, grace_period_s=0))
        await here.pod("p", **asks)
        await here.until(lambda: nothing_left(here), "everything given back")

    with_devices(story)


def test_a_claim_that_somebody_else_allocates_meanwhile_is_decided_on_anew():
    async def story(here: Cluster) -> None:
        wire = await scheduled_over(here)
        await here.claim("shared")
        results = [{"request": "gpu", "driver": "gpu.example.com", "pool": "b", "device": "gpu-1"}]

        async def another() -> None:
            now = await here.get("resourceclaims", "shared")
            allocation = {"devices": {"results": results}, "nodeSelector": on("b")}
            await here.resource("resourceclaims").update_status(
                now.changed({"status": {"allocation": allocation}})
            )

        wire.before(transaction.PATH, another)
        await here.pod("p", claim="shared")
        assert await here.bound("p") == ["b"]
        claim = await here.get("resourceclaims", "shared")
        assert [one["device"] for one in _status(claim)["allocation"]["devices"]["results"]] == ["gpu-1"]

    with_devices(story)


def on(node: str):
    terms = [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}]}]
    return {"nodeSelectorTerms": terms}


def test_a_claim_that_somebody_touches_meanwhile_is_still_placed():
    """Its revision moved, what was decided on did not."""

    async def story(here: Cluster) -> None:
        wire = await scheduled_over(here)
        await here.claim("shared")
        label = {"metadata": {"labels": {"touched": "yes"}}}
        wire.before(transaction.PATH, lambda: here.resource("resourceclaims").patch("shared", label, NS))
        await here.pod("p", claim="shared")
        await here.bound("p")
        assert len(list(filter(is_placement, wire.writes))) == 2

    with_devices(story)


def test_a_pod_that_somebody_else_binds_keeps_what_it_has():
    async def story(here: Cluster) -> None:
        wire = await scheduled_over(here)
        await here.claim("shared")
        wire.before(transaction.PATH, lambda: here.resource("pods").bind("p", NS, "b"))
        await here.pod("p", claim="shared")
        assert await here.bound("p") == ["b"]
        await here.quiet()
        claim = await here.get("resourceclaims", "shared")
        assert not _status(claim).get("allocation") and not claim.metadata.finalizers

    with_devices(story)


def test_a_transaction_that_is_refused_as_a_whole_is_a_failed_attempt():
    """An expired token, say. It is not asked again without a pause, as one is whose last write failed."""

    async def story(here: Cluster) -> None:
        wire = await scheduled_over(here)
        await here.claim("shared")
        wire.refuse_all(transaction.PATH, errors.Unauthorized("the token has expired"))
        await here.pod("p", claim="shared")
        await here.condition("p")
        assert len(list(filter(is_placement, wire.writes))) < 10
        wire.refuse_all(transaction.PATH, None)
        await here.bound("p")

    with_devices(story)


def test_two_pods_that_share_a_claim_are_both_listed():
    async def story(here: Cluster) -> None:
        await scheduled_over(here)
        await here.claim("shared")
        for name in ("p", "q", "r"):
            await here.pod(name, claim="shared")
        await here.bound("p", "q", "r")
        assert sorted(await users(here, "shared")) == ["p", "q", "r"]

    with_devices(story)


def test_a_server_without_transactions_is_asked_for_one_once():
    async def story(here: Cluster) -> None:
        await here.start_controllers()
        for name in "ab":
            await here.node(name)
            await here.devices(name, 2)
        await here.device_class(extendedResourceName="example.com/gpu")
        await here.template()
        wire = await scheduled_over(here)
        await here.pod("p", template="one")
        await here.bound("p")
        await here.pod("q", template="one")
        await here.bound("q")
        assert len(list(filter(is_placement, wire.writes))) == 1

    tell(story, started=False, transactions=False)


def test_a_server_that_cannot_patch_a_claim_with_its_status_is_written_to_step_by_step(monkeypatch):
    """One of an earlier version: it does not know the word, and refuses the member."""

    def refuse(*_: object) -> None:
        raise errors.BadRequest("unknown field `with`")

    monkeypatch.setattr(reading, "_require_with_status", refuse)

    async def story(here: Cluster) -> None:
        wire = await scheduled_over(here)
        await here.pod("p", template="one")
        await here.bound("p")
        assert any(one.endswith("/status") for one in wire.writes)

    with_devices(story)
