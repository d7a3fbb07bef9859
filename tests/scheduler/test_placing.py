"""Whole placements: on a server with transactions a pod and its claims are written by one request.

Told over a line of the scheduler's own, on which answers get lost and others are faster.
"""

import pytest

from allot.api import compute, errors, transaction
from allot.apiserver.transactions import reading
from allot.base import SystemClock
from allot.client import Client
from allot.scheduler.claiming import ClaimWriter
from allot.scheduler.cycle import Placed
from allot.scheduler.framework import CycleState
from allot.scheduler.negotiation_writes import TalkWriter
from allot.scheduler.placing import Placing
from allot.scheduler.pod import PodInfo
from allot.scheduler.writes import CreateExtendedClaim
from kep.compute import class_, cr, given, named
from kep.test_5004_monitoring import creations

from .cluster import NS, Cluster, tell
from .test_binding import _status, nothing_left, only, scheduled_over, users
from .test_claiming import devices, extended
from .test_crashes import check, die, furnish
from .wire import Wire

GPU = {"example.com/gpu": "1"}
CARD = f"{compute.limits.QUALIFIED}card"
NODE_B = {"kubernetes.io/hostname": "b"}
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


def test_what_a_pod_is_given_of_a_compute_resource_is_in_the_request_with_its_claim():
    """Node and record are one write: nobody else is given the same card (14-BIND-01)."""

    async def story(here: Cluster) -> None:
        kinds = [{"type": "old"}, {"type": "new"}]
        cards = {"status": {"computeResources": [cr(one, 1) for one in kinds]}}
        await here.client.of(compute.RESOURCE_CLASS).create(class_("card"))
        await here.resource("nodes").patch("a", cards, subresource="status")
        wire = await scheduled_over(here)
        await here.claim("shared")
        found = []
        for name in ("p", "q"):
            await here.pod(name, claim="shared", requests={CARD: "1"}, restartPolicy="Never")
            assert await here.bound(name) == ["a"]
            found.append(given(await here.resource("pods").get(name, NS), "main"))
        assert wire.writes == [f"POST {transaction.PATH}"] * 2
        one, other = ({CARD: {named(kind): 1}} for kind in kinds)
        assert found in ([one, other], [other, one])

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


def test_a_claim_of_which_no_answer_came_is_still_the_one_that_was_planned():
    """It says under which uid its devices were set aside: else nothing but a watch would end that."""

    async def story(here: Cluster) -> None:
        wire = Wire.to(here)
        client = Client(wire)
        placing = Placing(client, ClaimWriter(client, SystemClock(), lambda claim: None), TalkWriter(client))
        state = CycleState(PodInfo.of(await here.pod("p", requests=GPU)), SystemClock().now())
        wire.lose(1, carried_out=True)
        asked = extended()
        plan = CreateExtendedClaim("planned", asked, devices("gpu-0", request=asked.requests[0].name))
        (made,) = await placing.place(Placed(state, "a", (plan,)))
        assert [one.uid for one in await here.all("resourceclaims")] == [made.claim.uid]
        assert made.instead_of == "planned"
        assert await here.node_of("p") == "a" and len(wire.writes) == 1

    with_devices(story)


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


def test_a_pod_that_is_replaced_meanwhile_is_another_pod():
    """The request names the first of that name: it must not bind the second, with a claim that lists the
    first."""

    async def story(here: Cluster) -> None:
        wire = await scheduled_over(here)

        async def replace() -> None:
            await here.resource("pods").delete("p", NS, grace_period_s=0)
            await here.pod("p", claim="shared")

        wire.before(transaction.PATH, replace)
        await here.claim("shared")
        first = await here.pod("p", claim="shared")
        await here.bound("p")
        second = await here.resource("pods").get("p", NS)
        assert second.uid != first.uid
        assert await only(here, "shared", second.uid)

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


def test_a_pod_that_somebody_else_binds_to_the_same_node_was_not_placed_by_us():
    """PLACE2 takes a pod on the chosen node for ours only after a request that went unanswered. This one was
    refused: what was set aside for the pod is free again."""

    async def story(here: Cluster) -> None:
        wire = await scheduled_over(here)
        await here.claim("shared", count=2)
        wire.before(transaction.PATH, lambda: here.resource("pods").bind("p", NS, "b"))
        await here.pod("p", claim="shared", nodeSelector=NODE_B)
        assert await here.bound("p") == ["b"]
        await here.claim("other", count=2)
        await here.pod("q", claim="other", nodeSelector=NODE_B)
        assert await here.bound("q") == ["b"]
        claim = await here.get("resourceclaims", "shared")
        assert not _status(claim).get("allocation") and not claim.metadata.finalizers

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


def test_a_placement_that_is_too_large_for_one_request_is_written_step_by_step():
    async def story(here: Cluster) -> None:
        wire = await scheduled_over(here)
        wire.refuse_all(transaction.PATH, errors.TooLarge("more than a transaction may have"))
        await here.pod("p", template="one")
        await here.bound("p")
        assert len(list(filter(is_placement, wire.writes))) == 1
        assert wire.writes[-1].endswith("/binding")

    with_devices(story)


def test_claims_that_are_made_with_a_placement_or_could_not_be_are_counted():
    """5004-MON-02, where the claim is a member of the request."""

    async def story(here: Cluster) -> None:
        wire = await scheduled_over(here)
        wire.before(transaction.PATH, lambda: here.resource("pods").delete("p", NS, grace_period_s=0))
        for name, ended in (("p", "failure"), ("q", "success")):
            await here.pod(name, requests=GPU)
            await here.until(lambda: is_counted(here, ended), f"{ended} is counted")  # noqa: B023

    with_devices(story)


async def is_counted(here: Cluster, ended: str) -> bool:
    return f"{creations(ended)} 1" in here.metrics.text().splitlines()
