"""N2: a device is offered again only after its node has let go of it, or is gone.

Nodes publish what they have prepared in `preparedclaims.node.allot.dev`. Of a node that
publishes nothing upstream's rule holds, which the other tests show.
"""

from typing import Any

import pytest

from allot.controllers import resourceclaims
from controllers.resourceclaims.objects import (
    allocate,
    allocation,
    claim,
    consumer,
    direct,
    finish,
    freeze,
    gone,
    pod,
    reserved,
)
from controllers.world import NS, World, tell

GROUP, VERSION, PLURAL = "node.allot.dev", "v1alpha1", "preparedclaims"


def story(which) -> Any:
    """Told to a running claim controller, of a server that has transactions and of one that has none."""

    @pytest.mark.parametrize("transactions", [True, False], ids=["together", "one by one"])
    def test(transactions: bool) -> None:
        tell(which, resourceclaims.CONTROLLER, transactions=transactions)

    test.__name__, test.__doc__ = which.__name__, which.__doc__
    return test


def prepared(here: World):
    return here.client.resource(GROUP, VERSION, PLURAL, namespaced=False)


async def node_with(here: World, *uids: str, name: str = "n") -> None:
    """A node that has prepared these claims."""
    nodes = here.client.resource("", "v1", "nodes", namespaced=False)
    await nodes.create({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}})
    body: dict[str, Any] = {
        "apiVersion": f"{GROUP}/{VERSION}",
        "kind": "PreparedClaims",
        "metadata": {"name": name},
        "status": {"claims": [{"uid": uid} for uid in uids]},
    }

    await prepared(here).create(body)
    await here.quiet()


async def is_free(here: World) -> bool:
    return allocation(await here.claims.get("c", NS)) is None


@story
async def test_a_claim_waits_until_its_node_has_let_go(here: World):
    """A pod is deleted by force: its containers may still run, and the node says that they do."""
    made = await here.claims.create(claim())
    running = await here.pods.create(pod(claims=direct(), nodeName="n"))
    await allocate(here, made, consumer(running))
    await node_with(here, made.uid, "another")
    await here.pods.delete("p", NS, grace_period_s=0)
    await here.quiet()
    held = await here.claims.get("c", NS)
    assert allocation(held) is not None
    assert reserved(held) == ["p"]  # C1: the last reservation goes with the allocation, not before

    await prepared(here).patch("n", {"status": {"claims": [{"uid": "another"}]}}, subresource="status")
    await here.until(lambda: is_free(here))


@story
async def test_a_claim_that_others_deallocate_waits_for_its_node_too(here: World):
    """Rule 6.1, N2. Others cannot see what nodes have prepared: the last reservation is their sign."""
    made = await here.claims.create(claim())
    running = await here.pods.create(pod(claims=direct(), nodeName="n"))
    await allocate(here, made, consumer(running), protect=False)
    await node_with(here, made.uid)
    await here.pods.delete("p", NS, grace_period_s=0)
    await here.quiet()
    assert reserved(await here.claims.get("c", NS)) == ["p"]

    await prepared(here).patch("n", {"status": {"claims": []}}, subresource="status")

    async def left() -> bool:
        return reserved(await here.claims.get("c", NS)) == []

    await here.until(left)
    assert not await is_free(here)


@story
async def test_a_node_that_is_gone_holds_nothing(here: World):
    made = await here.claims.create(claim())
    running = await here.pods.create(pod(claims=direct(), nodeName="n"))
    await allocate(here, made, consumer(running))
    await node_with(here, made.uid)
    await here.pods.delete("p", NS, grace_period_s=0)
    await here.quiet()
    assert not await is_free(here)
    await here.client.resource("", "v1", "nodes", namespaced=False).delete("n")
    await here.until(lambda: is_free(here))


@story
async def test_a_claim_that_no_node_lists_is_free_at_once(here: World):
    made = await here.claims.create(claim())
    running = await here.pods.create(pod(claims=direct(), nodeName="n"))
    await allocate(here, made, consumer(running))
    await node_with(here, "another")
    await finish(here)
    await here.until(lambda: is_free(here))


@story
async def test_a_shared_claim_loses_a_consumer_without_asking_the_node(here: World):
    """Nothing is given back, so nothing has to be let go of."""
    made = await here.claims.create(claim())
    first = await here.pods.create(pod("p1", direct(), nodeName="n"))
    second = await here.pods.create(pod("p2", direct(), nodeName="n"))
    await allocate(here, made, consumer(first), consumer(second))
    await node_with(here, made.uid)
    await finish(here, "p1")

    async def pruned() -> bool:
        return reserved(await here.claims.get("c", NS)) == ["p2"]

    await here.until(pruned)


@story
async def test_deleting_a_prepared_claim_waits_for_the_node_too(here: World):
    made = await here.claims.create(claim())
    await allocate(here, made)
    await node_with(here, made.uid)
    await here.claims.delete("c", NS)
    await here.quiet()
    assert not await is_free(here)
    await prepared(here).delete("n")
    await gone(here, "c")


@story
async def test_the_node_of_the_pod_is_asked_when_the_cache_is_behind(here: World):
    """The cache has not heard yet that the node prepared the claim."""
    made = await here.claims.create(claim())
    running = await here.pods.create(pod(claims=direct(), nodeName="n"))
    await allocate(here, made, consumer(running))
    await node_with(here, "another")
    await freeze(here, PLURAL)
    await prepared(here).patch("n", {"status": {"claims": [{"uid": made.uid}]}}, subresource="status")
    await here.pods.delete("p", NS, grace_period_s=0)
    await here.quiet()
    assert not await is_free(here)


@story
async def test_a_node_whose_first_word_the_cache_has_not_heard_is_asked_all_the_same(here: World):
    """To the cache it is a node that publishes nothing; it has begun to, and has the claim prepared."""
    made = await here.claims.create(claim())
    running = await here.pods.create(pod(claims=direct(), nodeName="n"))
    await allocate(here, made, consumer(running))
    await freeze(here, PLURAL)
    await node_with(here, made.uid)
    await here.pods.delete("p", NS, grace_period_s=0)
    await here.quiet()
    assert not await is_free(here)

    await prepared(here).patch("n", {"status": {"claims": []}}, subresource="status")
    await here.claims.patch("c", {"metadata": {"labels": {"touched": "yes"}}}, NS)  # news for it
    await here.until(lambda: is_free(here))


@story
async def test_the_node_of_the_allocation_is_asked_when_no_pod_is_known(here: World):
    made = await here.claims.create(claim())
    await allocate(here, made, node="n")
    await node_with(here, "another")
    await freeze(here, PLURAL)
    await prepared(here).patch("n", {"status": {"claims": [{"uid": made.uid}]}}, subresource="status")
    await here.claims.delete("c", NS)
    await here.quiet()
    assert not await is_free(here)


@story
async def test_a_node_that_the_cache_has_not_heard_of_is_there_all_the_same(here: World):
    """It came a moment ago, and has prepared the claim since."""
    made = await here.claims.create(claim())
    running = await here.pods.create(pod(claims=direct(), nodeName="n"))
    await allocate(here, made, consumer(running))
    await freeze(here, "nodes")
    await node_with(here, made.uid)
    await here.pods.delete("p", NS, grace_period_s=0)
    await here.quiet()
    assert not await is_free(here)


def test_the_word_of_a_node_is_expected_in_the_write_that_lets_go():
    """Nobody asks the server first; a node whose list has changed meanwhile is asked, and has let go too."""
    tell(let_go_twice, resourceclaims.CONTROLLER, transactions=True)


async def let_go_twice(here: World) -> None:
    for name, is_behind in (("c", False), ("d", True)):
        made = await here.claims.create(claim(name))
        running = await here.pods.create(pod(name, claims=direct(name), nodeName=f"of-{name}"))
        await allocate(here, made, consumer(running))
        await node_with(here, "another", name=f"of-{name}")
        if is_behind:
            await freeze(here, PLURAL)
            changed = {"status": {"claims": [{"uid": "a third"}]}}
            await prepared(here).patch(f"of-{name}", changed, subresource="status")
        here.wire.requests.clear()
        await here.pods.delete(name, NS, grace_period_s=0)
        await here.quiet()
        assert allocation(await here.claims.get(name, NS)) is None
        assert here.wire.count("GET", f"/{PLURAL}/") == is_behind
