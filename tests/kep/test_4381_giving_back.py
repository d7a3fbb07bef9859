"""KEP-4381: how numeric claims are given back, whoever leaves, whatever is gone, and not too early."""

import json

from allot.api import numeric
from api.numeric.objects import DRIVER
from scheduler.cluster import NS
from scheduler.numeric import Numeric
from scheduler.test_classic import Classic

from .test_4381_scheduling import once, story

FINALIZER = numeric.limits.FINALIZER


async def gone(here: Numeric, name: str) -> None:
    async def is_gone() -> bool:
        return await here.here.get("resourceclaims", name) is None

    await here.here.until(is_gone, f"claim {name} gone")


@story
async def test_a_claim_that_is_deleted_stays_with_its_user_to_the_end(here: Numeric):
    """4381-ALC-13, 4381-DEA-03: it gets a deletionTimestamp; the pod and its reservation are left alone."""
    await here.asks("p", 3)
    await here.here.bound("p")
    before = await here.status("p")
    await here.claims.delete("p", NS)
    await here.here.quiet()
    held = await here.here.get("resourceclaims", "p")
    assert held is not None and held.metadata.deletion_timestamp
    assert held.fields["status"] == before
    assert await here.here.node_of("p") == "a"
    await here.finish("p")
    await gone(here, "p")


@once
async def test_a_claim_that_is_being_deleted_is_neither_allocated_nor_reserved(here: Numeric):
    """4381-SCH-18: one that has nothing, and one that is in use and could be shared."""
    await here.claim("bare", 1)
    kept = {"metadata": {"finalizers": ["example.com/kept"]}}
    await here.here.resource("resourceclaims").patch("bare", kept, NS)
    await here.claims.delete("bare", NS)
    await here.pod("p", "bare")
    await here.waits("p", '"bare" is being deleted')
    await here.resource_class("shared", shareable=True)
    await here.claim("c", 1, resource_class="shared")
    await here.pod("first", "c")
    await here.here.bound("first")
    await here.claims.delete("c", NS)
    await here.pod("second", "c")
    await here.waits("second", '"c" is being deleted')
    await here.here.quiet()
    assert await here.taken("bare") is None
    assert [one["name"] for one in (await here.status("c"))["reservedFor"]] == ["first"]


@once
async def test_a_claim_that_its_driver_allocated_is_its_drivers_to_give_back(here: Numeric):
    """4381-DEA-04: beside one that carries the numeric finalizer and is cleared."""
    classic = Classic(here.here)
    await classic.resource_class("opaque")
    await classic.claim("o", resource_class="opaque")
    made = await here.pod("p", "o")
    claims = here.here.client.resource("resource.k8s.io", "v1alpha1", "resourceclaims")
    user = {"resource": "pods", "name": "p", "uid": made.uid}
    opaque = (await here.classes.get("opaque")).fields["driverName"]
    held = {"driverName": opaque, "allocation": {"resourceHandle": "h"}, "reservedFor": [user]}
    await claims.patch("o", {"status": held}, NS, subresource="status")
    await here.here.bound("p")
    await here.asks("n", 1)
    await here.here.bound("n")
    await here.finish("p")
    await here.finish("n")
    await here.free("n")

    async def unused() -> bool:
        return "reservedFor" not in await here.status("o")

    await here.here.until(unused, "nobody uses the opaque one")
    await here.here.quiet()
    assert (await here.status("o"))["allocation"]["resourceHandle"] == "h"


@once
async def test_a_claim_of_a_model_that_nobody_here_knows_is_given_back_like_any_other(here: Numeric):
    """4381-DEA-07: another scheduler, which has the model, allocated it."""
    odd = {"id": "odd", "apiVersion": "nobody.example.com/v1", "kind": "Odd", "data": {}}
    await here.put_capacity("a-odd", "a", [odd])
    await here.claim("c", 1)
    made = await here.pod("p", "c", schedulerName="another")
    claims = here.here.resource("resourceclaims")
    await claims.patch("c", {"metadata": {"finalizers": [FINALIZER]}}, NS)
    terms = [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["a"]}]}]
    result = {
        "request": "classic",
        "driver": DRIVER,
        "pool": "numeric/a",
        "device": "odd",
        "shareID": "00000000-0000-4000-8000-000000000001",
        "consumedCapacity": {"nobody.example.com/much": "7"},
    }
    allocation = {
        "nodeSelector": {"nodeSelectorTerms": terms},
        "devices": {"results": [result]},
        "resourceHandle": json.dumps({"kind": "Odd", "apiVersion": "nobody.example.com/v1"}),
    }
    user = {"resource": "pods", "name": "p", "uid": made.uid}
    status = {"driverName": DRIVER, "allocation": allocation, "reservedFor": [user]}
    await claims.patch("c", {"status": status}, NS, subresource="status")
    await here.here.quiet()
    assert "allocation" in await here.status("c")
    await here.finish("p")
    await here.free("c")

    async def unprotected() -> bool:
        found = await here.here.get("resourceclaims", "c")
        return found is not None and not found.metadata.finalizers

    await here.here.until(unprotected, "the finalizer gone")


@once
async def test_what_a_node_has_prepared_is_offered_again_when_the_node_has_let_go(here: Numeric):
    """4381-DEA-11: not before, and at once if the node is gone."""
    listed = here.here.client.resource("node.allot.dev", "v1alpha1", "preparedclaims", namespaced=False)
    await here.publish("b")
    for name in ("p", "q"):
        await here.asks(name, 2)
    await here.here.bound("p", "q")
    uids = [(await here.here.resource("resourceclaims").get(name, NS)).uid for name in ("p", "q")]
    body = {"metadata": {"name": "a"}, "status": {"claims": [{"uid": uid} for uid in uids]}}
    await listed.create(body)
    await here.here.quiet()
    await here.finish("p")
    await here.asks("late", 2)
    await here.waits("late", "needs 2")
    await here.here.quiet()
    assert (await here.taken("p")) == ("a", "c0", 2)
    await listed.patch("a", {"status": {"claims": [{"uid": uids[1]}]}}, subresource="status")
    assert await here.here.bound("late") == ["a"]
    await here.finish("q")
    await here.here.quiet()
    assert (await here.taken("q")) == ("a", "c0", 2)
    await here.here.resource("nodes").delete("a")
    await here.free("q")


@once
async def test_a_claim_that_is_removed_by_force_frees_what_it_had(here: Numeric):
    """4381-DEA-12, 4381-BCT-15: somebody takes the finalizer away, and the claim; its pod still runs."""
    await here.asks("p", 4)
    assert await here.here.bound("p") == ["a"]
    await here.asks("q", 4)
    await here.waits("q", "needs 4")
    await here.claims.delete("p", NS)
    claims = here.here.resource("resourceclaims")
    await claims.patch("p", {"metadata": {"finalizers": None}}, NS)
    await gone(here, "p")
    assert await here.here.bound("q") == ["a"]


@once
async def test_an_unused_claim_of_which_somebody_asks_deallocation_is_given_back(here: Numeric):
    """4381-DEA-15: an immediate one, which stays allocated otherwise; and the request is gone with it."""
    await here.claim("c", 4, allocationMode="Immediate")
    await here.pod("p", "c")
    await here.here.bound("p")
    ask = {"status": {"deallocationRequested": True}}
    await here.finish("p")

    async def unused() -> bool:
        return "reservedFor" not in await here.status("c")

    await here.here.until(unused, "nobody uses it")
    await here.here.quiet()
    assert await here.taken("c") is not None
    await here.here.resource("resourceclaims").patch("c", ask, NS, subresource="status")
    await here.free("c")
    assert not (await here.claims.get("c", NS)).fields.get("status", {}).get("deallocationRequested")
    await here.asks("q", 4)
    assert await here.here.bound("q") == ["a"]
