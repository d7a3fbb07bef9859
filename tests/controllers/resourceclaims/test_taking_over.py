"""Crashes in the middle, and what the next one finds. In process; tests/e2e does it with kill -9."""

import asyncio

import pytest

from allot.api import Object, Request, errors
from allot.apiserver import identities
from allot.client import InProcessTransport
from allot.controllers import resourceclaims
from allot.controllers.resourceclaims import memory, pod_loop
from controllers.resourceclaims.objects import (
    allocate,
    allocation,
    claim,
    consumer,
    direct,
    finish,
    freeze,
    generated,
    gone,
    owned_by,
    pod,
    template,
)
from controllers.world import NS, World, tell


def dies_before(here: World, number: int):
    """The controller's n-th write never leaves, nor does anything after it."""
    writes = 0
    died = asyncio.Event()

    async def before(request: Request) -> None:
        nonlocal writes
        if request.method not in ("POST", "PATCH", "PUT", "DELETE") or "/events" in request.path:
            return
        writes += 1
        if writes >= number:
            died.set()
            await asyncio.Event().wait()

    here.wire.before = before
    return died


@pytest.mark.parametrize("number", [1, 2])
def test_making_a_claim_is_finished_by_the_next(number):
    """Before the create, and between the create and the record: one claim in the end."""

    async def story(here: World) -> None:
        await here.templates.create(template())
        died = dies_before(here, number)
        await here.pods.create(pod())
        await died.wait()
        await here.stop()
        await here.start()
        await generated(here)
        await here.quiet()
        assert len((await here.claims.list(NS)).objects) == 1

    tell(story, resourceclaims.CONTROLLER)


@pytest.mark.parametrize("number", [1, 2, 3])
def test_giving_a_generated_claim_back_is_finished_by_the_next(number):
    """Before the status, before the finalizer, before the deletion."""

    async def story(here: World) -> None:
        await here.templates.create(template())
        running = await here.pods.create(pod())
        made = await generated(here)
        await allocate(here, made, consumer(running))
        await here.quiet()
        died = dies_before(here, number)
        await finish(here)
        await died.wait()
        await here.stop()
        assert (allocation(await here.claims.get(made.name, NS)) is None) == (number > 1)
        await here.start()
        await gone(here, made.name)

    tell(story, resourceclaims.CONTROLLER)


def test_a_claim_that_no_cache_shows_yet_is_not_made_again():
    """Recording fails a few times, and the watch of claims hangs: the loop remembers what it made."""

    async def story(here: World) -> None:
        await here.templates.create(template())
        await here.quiet()
        await freeze(here, "resourceclaims")
        refusals = 3

        async def before(request: Request) -> None:
            nonlocal refusals
            if request.method == "PATCH" and request.path.endswith("/status") and refusals:
                refusals -= 1
                raise errors.Unavailable("not now")

        here.wire.before = before
        await here.pods.create(pod())
        await generated(here)
        assert refusals == 0
        assert here.wire.count("POST", "/resourceclaims") == 1

    tell(story, resourceclaims.CONTROLLER)


@pytest.mark.parametrize("carried_out", [True, False])
def test_a_create_that_got_no_answer_does_not_make_two_claims(carried_out):
    """The server died: nobody knows whether the claim was made, and the watch will tell much later."""

    async def story(here: World) -> None:
        await here.templates.create(template())
        await here.quiet()
        await freeze(here, "resourceclaims")
        failures = 3

        async def before(request: Request) -> None:
            nonlocal failures
            if request.method != "POST" or "/resourceclaims" not in request.path or not failures:
                return
            failures -= 1
            if carried_out and failures == 2:
                user = identities.controller(resourceclaims.CONTROLLER.account)
                await InProcessTransport(here.server.api.handle, user).send(request)
            raise errors.Timeout("no answer")

        here.wire.before = before
        await here.pods.create(pod())
        await generated(here)
        assert failures == 0
        assert len((await here.claims.list(NS)).objects) == 1

    tell(story, resourceclaims.CONTROLLER)


@pytest.fixture
def everything_made_is_doubtful(monkeypatch):
    """As if a minute had passed whenever the pod is looked at again."""
    monkeypatch.setattr(memory, "DOUBTFUL_S", 0.0)
    monkeypatch.setattr(pod_loop, "CACHE_BEHIND_S", 0.05)


async def recorded_without_news(here: World) -> Object:
    """A pod's claim is made and recorded, and the controller hears of neither."""
    await here.templates.create(template())
    await here.quiet()

    async def before(request: Request) -> None:
        if request.method == "POST" and "/resourceclaims" in request.path:
            here.wire.before = None
            await freeze(here, "pods")
            await freeze(here, "resourceclaims")

    here.wire.before = before
    await here.pods.create(pod())
    return await generated(here)


@pytest.mark.usefixtures("everything_made_is_doubtful")
def test_a_pod_keeps_its_claim_however_long_the_caches_show_neither_claim_nor_record():
    """C3: it was given a second one after a minute, while it ran with the first."""

    async def story(here: World) -> None:
        made = await recorded_without_news(here)
        await allocate(here, made, consumer(await here.pods.get("p", NS)))
        await here.quiet()
        assert here.wire.count("GET", f"/resourceclaims/{made.name}") >= 2
        assert here.wire.count("POST", "/resourceclaims") == 1
        assert (await generated(here)).uid == made.uid

    tell(story, resourceclaims.CONTROLLER)


@pytest.mark.usefixtures("everything_made_is_doubtful")
def test_a_claim_that_went_before_any_cache_showed_it_is_made_again():
    async def story(here: World) -> None:
        made = await recorded_without_news(here)
        await here.claims.delete(made.name, NS)
        assert (await generated(here)).uid != made.uid

    tell(story, resourceclaims.CONTROLLER)


@pytest.mark.parametrize("late", ["pods", "resourceclaims"])
def test_a_claim_that_a_predecessor_made_late_goes_whatever_is_heard_of_last(late):
    """C3: its create arrives between the look at the caches and the create of the successor. That it
    is one too many is known only when both the pod's record and the recorded claim are."""

    async def story(here: World) -> None:
        await here.templates.create(template())
        await here.quiet()

        async def before(request: Request) -> None:
            if request.method == "POST" and "/resourceclaims" in request.path:
                here.wire.before = None
                await here.claims.create(claim("late", **owned_by(await here.pods.get("p", NS))))
                await here.quiet()
                here.ear.hold(late)

        here.wire.before = before
        await here.pods.create(pod())
        made = await generated(here)
        await here.quiet()
        assert await here.find(here.claims, "late") is not None
        here.ear.let_go()
        await gone(here, "late")
        assert (await generated(here)).uid == made.uid

    tell(story, resourceclaims.CONTROLLER)


def test_a_leader_that_slept_does_not_undo_what_its_successor_recorded():
    """P1: it had looked at the pod before that, and made a claim; the scheduler counts on the other one."""

    async def story(here: World) -> None:
        await here.templates.create(template())
        await here.quiet()
        recorded = []

        async def before(request: Request) -> None:
            if request.method == "PATCH" and request.path.endswith("/pods/p/status"):
                recorded.append(request)
                here.wire.before = None
                owner = await here.pods.get("p", NS)
                await here.claims.create(claim("theirs", **owned_by(owner)))
                status = {"resourceClaimStatuses": [{"name": "gpu", "resourceClaimName": "theirs"}]}
                await here.pods.patch("p", {"status": status}, NS, subresource="status")

        here.wire.before = before
        await here.pods.create(pod())
        await here.until(lambda: here.find(here.claims, "theirs"))
        await here.quiet()
        assert recorded
        found = await here.pods.get("p", NS)
        assert [one["resourceClaimName"] for one in found.fields["status"]["resourceClaimStatuses"]] == [
            "theirs"
        ]

    tell(story, resourceclaims.CONTROLLER)


def test_what_happened_while_nobody_ran_is_made_good():
    async def story(here: World) -> None:
        made = await here.claims.create(claim())
        running = await here.pods.create(pod(claims=direct()))
        await allocate(here, made, consumer(running))
        await here.stop()
        await here.pods.delete("p", NS, grace_period_s=0)
        await here.templates.create(template())
        await here.pods.create(pod("q"))
        await here.start()

        async def free() -> bool:
            return allocation(await here.claims.get("c", NS)) is None

        await here.until(free)
        await generated(here, "q")

    tell(story, resourceclaims.CONTROLLER)
