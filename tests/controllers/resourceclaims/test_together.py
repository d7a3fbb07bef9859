"""Claims are made and recorded together, where the server has transactions."""

from functools import partial

import pytest

from allot.api import errors, transaction
from allot.controllers import resourceclaims
from controllers.resourceclaims.objects import (
    freeze,
    generated,
    pod,
    template,
)
from controllers.world import NS, World, tell

together = partial(tell, transactions=True)
TWO = [{"name": one, "resourceClaimTemplateName": "t"} for one in ("one", "two")]


async def claims_of(here: World):
    return (await here.claims.list(NS)).objects


def test_all_claims_of_a_pod_are_made_and_recorded_at_one_revision():
    async def story(here: World) -> None:
        await here.templates.create(template())
        await here.pods.create(pod(claims=TWO))
        made = [await generated(here, entry=one["name"]) for one in TWO]
        found = await here.pods.get("p", NS)
        assert {one.resource_version for one in (*made, found)} == {found.resource_version}
        managers = [one["manager"] for one in found.fields["metadata"]["managedFields"]]
        assert "ResourceClaimController" in managers
        assert (
            here.wire.count("POST", transaction.PATH) == 1 and here.wire.count("POST", "/resourceclaims") == 0
        )
        assert 'creates_total{status="success",admin_access="false"' in here.metrics.text()

    together(story, resourceclaims.CONTROLLER)


def test_one_claim_that_is_refused_does_not_keep_the_others_from_being_made():
    """As on any other server: what can be had is had, and an event says what cannot."""

    async def story(here: World) -> None:
        quotas = here.client.resource("", "v1", "resourcequotas")
        terms = {"hard": {"count/resourceclaims.resource.k8s.io": "1"}}
        await quotas.create({"metadata": {"name": "one", "namespace": NS}, "spec": terms})
        used = {"status": {"used": {"count/resourceclaims.resource.k8s.io": "0"}}}
        await quotas.patch("one", used, NS, subresource="status")
        await here.templates.create(template())
        await here.pods.create(pod(claims=TWO))
        await generated(here, entry="one")
        assert len(await claims_of(here)) == 1

    together(story, resourceclaims.CONTROLLER)


@pytest.mark.parametrize("carried_out", [True, False], ids=["carried out", "not carried out"])
def test_an_answer_that_is_lost_makes_no_second_claim(carried_out: bool):
    async def story(here: World) -> None:
        lost = []

        async def lose(request) -> None:
            if request.path == transaction.PATH and not lost:
                lost.append(request)
                if carried_out:
                    await here.wire._transport.send(request)
                raise errors.Timeout("no answer")

        here.wire.before = lose
        await here.templates.create(template())
        await here.pods.create(pod())
        await generated(here)
        await here.quiet()
        assert lost and len(await claims_of(here)) == 1

    together(story, resourceclaims.CONTROLLER)


def test_a_claim_that_no_cache_shows_yet_is_not_made_again():
    """C3: nor one that goes again at once. What was made together is remembered as what was made alone."""

    async def story(here: World) -> None:
        async def hear_nothing_more(request) -> None:
            if request.path == transaction.PATH:
                await freeze(here, "pods")
                await freeze(here, "resourceclaims")

        here.wire.before = hear_nothing_more
        await here.templates.create(template())
        await here.pods.create(pod())
        made = await generated(here)
        await here.templates.patch("t", {"metadata": {"labels": {"touched": "yes"}}}, NS)

        async def is_looked_at_again() -> bool:
            return here.wire.count("GET", "/pods/p") > 0  # where the record was refused: the cache is behind

        await here.until(is_looked_at_again)
        assert here.wire.count("POST", transaction.PATH) == 1
        assert here.wire.count("POST", "/resourceclaims") == 0
        assert [one.uid for one in await claims_of(here)] == [made.uid]

    together(story, resourceclaims.CONTROLLER)


def test_a_pod_that_is_written_meanwhile_is_looked_at_again():
    async def story(here: World) -> None:
        touched = []

        async def touch(request) -> None:
            if request.path == transaction.PATH and not touched:
                touched.append(True)
                await here.pods.patch("p", {"metadata": {"labels": {"touched": "yes"}}}, NS)

        here.wire.before = touch
        await here.templates.create(template())
        await here.pods.create(pod())
        await generated(here)
        await here.quiet()
        assert touched and len(await claims_of(here)) == 1

    together(story, resourceclaims.CONTROLLER)
