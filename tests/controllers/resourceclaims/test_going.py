"""Claims are given back and go at one revision, where the server has transactions."""

from functools import partial
from typing import Any

import pytest

from allot.api import Object, Request, errors, resource, transaction
from allot.apiserver.transactions import reading
from allot.client import Client
from allot.controllers import resourceclaims
from allot.controllers.resourceclaims import claim_loop
from api.numeric.objects import capacity, counter
from controllers.resourceclaims.objects import (
    FINALIZER,
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
    reserved,
    template,
)
from controllers.resourceclaims.test_released import node_with, prepared
from controllers.resourceclaims.test_releasing import deallocated
from controllers.world import NS, World, tell
from kep.test_4381_claims import allocation as allocation_of
from kep.test_4381_claims import result

together = partial(tell, transactions=True)
BY_SCHEDULER = resource.shape.NUMERIC_FINALIZER


def test_devices_and_protection_go_at_one_revision():
    async def story(here: World) -> None:
        made = await here.claims.create(claim())
        running = await here.pods.create(pod(claims=direct()))
        held = await allocate(here, made, consumer(running))
        await finish(here)
        free = await deallocated(here)
        seen = []
        async for event in here.claims.watch(NS, resource_version=held.resource_version):
            seen.append(event.object.resource_version)
            if event.object.resource_version == free.resource_version:
                break
        assert seen == [free.resource_version]

    together(story, resourceclaims.CONTROLLER)


def test_who_waits_for_a_claim_gets_it_at_once_and_one_that_is_given_back_has_time(monkeypatch):
    """Where many pods end together, a few transactions give back what they had."""
    gathered, has_time_of = Client.gathered, dict[str, bool]()

    def listen(self, writes, *, has_time=False):
        has_time_of[writes[-1].path.partition(f"/{NS}/")[2]] = has_time
        return gathered(self, writes, has_time=has_time)

    monkeypatch.setattr(Client, "gathered", listen)

    async def story(here: World) -> None:
        await here.templates.create(template())
        await here.pods.create(pod("waits"))
        await generated(here, "waits")
        made = await here.claims.create(claim())
        running = await here.pods.create(pod("ends", direct()))
        await allocate(here, made, consumer(running))
        await finish(here, "ends")
        await deallocated(here)
        assert has_time_of == {"pods/waits/status": False, "resourceclaims/c": True}

    together(story, resourceclaims.CONTROLLER)


async def what_became_of(here: World, held: Object) -> list[tuple[str, bool]]:
    """Of the claim, until it is gone: what those who watch are told, and whether it holds devices then."""
    states = []
    async for event in here.claims.watch(NS, resource_version=held.resource_version):
        states.append((event.type.value, allocation(event.object) is not None))
        if event.type.value == "DELETED":
            break
    return states


def test_the_claim_of_a_finished_pod_is_given_back_and_gone_at_one_revision():
    """Rule 6.1. Those who watch are told what it was before: so a scheduler knows what it has no more."""

    async def story(here: World) -> None:
        await here.templates.create(template())
        running = await here.pods.create(pod())
        held = await allocate(here, await generated(here), consumer(running))
        await here.quiet()
        before = here.wire.count("POST", transaction.PATH)
        await finish(here)
        assert await what_became_of(here, held) == [("DELETED", True)]
        assert here.wire.count("POST", transaction.PATH) == before + 1
        assert here.wire.count("DELETE", "") == 0

    together(story, resourceclaims.CONTROLLER)


def test_a_claim_that_is_being_deleted_is_given_back_and_gone_at_one_revision():
    """Rule 6.1, 6.5."""

    async def story(here: World) -> None:
        made = await here.claims.create(claim())
        running = await here.pods.create(pod(claims=direct()))
        held = await allocate(here, made, consumer(running))
        await here.claims.delete("c", NS)
        await finish(here)
        assert await what_became_of(here, held) == [("MODIFIED", True), ("DELETED", True)]
        assert here.wire.count("PATCH", "") == 0

    together(story, resourceclaims.CONTROLLER)


def test_the_claim_of_a_finished_pod_that_somebody_else_protects_is_given_back_and_stays():
    async def story(here: World) -> None:
        await here.templates.create(template())
        running = await here.pods.create(pod())
        made = await generated(here)
        await allocate(here, made, consumer(running))
        both = {"metadata": {"finalizers": [FINALIZER, "example.com/mine"]}}
        held = await here.claims.patch(made.name, both, NS)
        await finish(here)
        seen = []
        async for event in here.claims.watch(NS, resource_version=held.resource_version):
            seen.append(event.object)
            if event.object.metadata.deletion_timestamp:
                break
        assert len(seen) == 1
        assert allocation(seen[0]) is None and seen[0].metadata.finalizers == ["example.com/mine"]

    together(story, resourceclaims.CONTROLLER)


async def reserve_first(here: World, claim: Object, users: list[dict[str, str]], request: Request) -> None:
    """Before the first transaction that the controller sends."""
    if request.path == transaction.PATH:
        here.wire.before = None
        await here.claims.patch(claim.name, {"status": {"reservedFor": users}}, NS, subresource="status")


def test_a_claim_that_somebody_reserves_before_it_goes_does_not_go():
    """C6: not in part either. It is looked at again, and what its own pod had is taken from the list."""

    async def story(here: World) -> None:
        await here.templates.create(template())
        running = await here.pods.create(pod())
        other = await here.pods.create(pod("q", claims=[]))
        held = await allocate(here, await generated(here), consumer(running))
        await here.quiet()
        here.wire.before = partial(reserve_first, here, held, [consumer(running), consumer(other)])
        await finish(here)

        async def is_left_to_the_other() -> bool:
            return reserved(await here.claims.get(held.name, NS)) == ["q"]

        await here.until(is_left_to_the_other)
        await here.quiet()
        found = await here.claims.get(held.name, NS)
        assert (found.uid, found.metadata.deletion_timestamp) == (held.uid, None)
        assert allocation(found) is not None and found.metadata.finalizers == [FINALIZER]
        assert here.wire.count("PATCH", "") == 1, "what was decided on the claim as it was is not tried again"

    together(story, resourceclaims.CONTROLLER)


def test_a_generated_claim_that_is_being_deleted_is_given_back_and_not_deleted_again():
    """It goes with its finalizer, so there would be nothing left to delete."""

    async def story(here: World) -> None:
        await here.templates.create(template())
        running = await here.pods.create(pod())
        held = await allocate(here, await generated(here), consumer(running))
        await here.claims.delete(held.name, NS)
        await here.quiet()
        await finish(here)
        assert await what_became_of(here, held) == [("MODIFIED", True), ("DELETED", True)]

    together(story, resourceclaims.CONTROLLER)


def test_a_claim_that_others_give_back_loses_its_reservation_and_is_deleted_at_one_revision():
    """Whoever allocated it without our finalizer is told in one word that nobody uses it, and to take it
    back."""

    async def story(here: World) -> None:
        await here.templates.create(template())
        running = await here.pods.create(pod())
        made = await generated(here)
        await here.claims.patch(made.name, {"metadata": {"finalizers": ["example.com/mine"]}}, NS)
        held = await allocate(here, made, consumer(running), protect=False)
        await here.quiet()
        await finish(here)
        async for event in here.claims.watch(NS, resource_version=held.resource_version):
            first = event.object
            break
        assert reserved(first) == [] and first.metadata.deletion_timestamp
        assert allocation(first) is not None and first.metadata.finalizers == ["example.com/mine"]
        await here.quiet()
        assert (await here.claims.get(made.name, NS)).resource_version == first.resource_version

    together(story, resourceclaims.CONTROLLER)


def test_a_claim_that_others_give_back_and_somebody_reserves_meanwhile_does_not_go():
    """C6."""

    async def story(here: World) -> None:
        await here.templates.create(template())
        running = await here.pods.create(pod())
        other = await here.pods.create(pod("q", claims=[]))
        held = await allocate(here, await generated(here), consumer(running), protect=False)
        await here.quiet()
        here.wire.before = partial(reserve_first, here, held, [consumer(running), consumer(other)])
        await finish(here)
        await here.quiet()
        found = await here.claims.get(held.name, NS)
        assert reserved(found) == ["q"] and found.metadata.deletion_timestamp is None

    together(story, resourceclaims.CONTROLLER)


@pytest.mark.parametrize("transactions", [True, False], ids=["together", "one after the other"])
def test_a_claim_that_somebody_else_ends_first_is_nobodys_failure(transactions):
    """That is where it was going. Garbage collection, say, was faster."""

    async def story(here: World) -> None:
        await here.templates.create(template())
        running = await here.pods.create(pod())
        made = await generated(here)
        held = await allocate(here, made, consumer(running))
        await here.quiet()

        async def end(request: Request) -> None:
            if request.path == transaction.PATH if transactions else request.method == "PATCH":
                here.wire.before = None
                await here.claims.delete(made.name, NS)
                await here.claims.patch(made.name, {"metadata": {"finalizers": None}}, NS)

        here.wire.before = end
        await finish(here)
        assert (await what_became_of(here, held))[-1][0] == "DELETED"
        await here.quiet()
        assert here.wire.before is None and 'error="NotFound"' not in here.metrics.text()

    tell(story, resourceclaims.CONTROLLER, transactions=transactions)


async def half_done(here: World, **owner: Any) -> Object:
    """A claim that a scheduler has protected, to allocate it with numeric parameters, and no more."""
    claims = here.client.resource("resource.k8s.io", "v1alpha1", "resourceclaims")
    metadata = {"name": "c", "namespace": NS, "finalizers": [BY_SCHEDULER], **owner}
    return await claims.create({"metadata": metadata, "spec": {"resourceClassName": "counted"}})


def test_a_claim_that_is_left_half_done_loses_its_protection_and_is_gone_at_one_revision(monkeypatch):
    """4381-ALC-14: its pod is done, so nobody completes it."""
    monkeypatch.setattr(claim_loop, "HALF_DONE_S", 0.0)

    async def story(here: World) -> None:
        running = await here.pods.create(pod(claims=[]))
        await finish(here)
        await here.quiet()
        left = await half_done(here, **owned_by(running))
        assert await what_became_of(here, left) == [("DELETED", False)]

    together(story, resourceclaims.CONTROLLER)


def test_a_claim_that_is_completed_after_all_keeps_its_protection_and_does_not_go(monkeypatch):
    monkeypatch.setattr(claim_loop, "HALF_DONE_S", 0.0)

    async def story(here: World) -> None:
        capacities = here.client.resource(
            "resource.k8s.io", "v1alpha1", "noderesourcecapacities", namespaced=False
        )
        await capacities.create(capacity(driver="gpu.example.com", instances=[counter(count=8)]))
        running = await here.pods.create(pod(claims=[]))
        other = await here.pods.create(pod("q", claims=[]))
        await finish(here)
        await here.quiet()

        async def complete(request: Request) -> None:
            if request.path == transaction.PATH:
                given = allocation_of(result(driver="gpu.example.com"))
                held = {
                    "driverName": "gpu.example.com",
                    "allocation": given,
                    "reservedFor": [consumer(other)],
                }
                await here.claims.patch("c", {"status": held}, NS, subresource="status")
                here.wire.before = None

        here.wire.before = complete
        await half_done(here, **owned_by(running))
        await here.quiet()
        found = await here.claims.get("c", NS)
        assert here.wire.before is None and found.metadata.deletion_timestamp is None
        assert reserved(found) == ["q"] and found.metadata.finalizers == [BY_SCHEDULER]

    together(story, resourceclaims.CONTROLLER)


async def forbid(here: World, operation: str, says: str, **validation: str) -> None:
    """What an administrator may demand of claims: returns once the server has heard of it."""
    policies = "validatingadmissionpolicies", "validatingadmissionpolicybindings"
    writable = [
        here.client.resource("admissionregistration.k8s.io", "v1", one, namespaced=False) for one in policies
    ]
    rule = {"apiGroups": ["resource.k8s.io"], "apiVersions": ["v1"], "resources": ["resourceclaims"]}
    spec = {
        "matchConstraints": {"resourceRules": [{**rule, "operations": [operation]}]},
        "validations": [{"expression": says, "message": "not here", **validation}],
    }
    bound = {"policyName": "mine", "validationActions": ["Deny"]}
    for written, body in zip(writable, (spec, bound), strict=True):
        await written.create({"metadata": {"name": "mine"}, "spec": body})
    await here.quiet()


async def allow(here: World) -> None:
    bindings = here.client.resource(
        "admissionregistration.k8s.io", "v1", "validatingadmissionpolicybindings", namespaced=False
    )
    await bindings.delete("mine")


@pytest.mark.parametrize("reason", ["Invalid", "Forbidden"])
def test_a_claim_that_may_not_go_gives_its_devices_back(reason: str):
    """Rule 6.1: what can be had is had, and the rest is tried again."""

    async def story(here: World) -> None:
        await here.templates.create(template())
        running = await here.pods.create(pod())
        held = await allocate(here, await generated(here), consumer(running))
        await forbid(here, "DELETE", "false", reason=reason)
        await finish(here)
        free = await deallocated(here, held.name)
        assert free.uid == held.uid and not free.metadata.deletion_timestamp
        await allow(here)
        await gone(here, held.name)

    together(story, resourceclaims.CONTROLLER)


def test_a_claim_that_must_stay_protected_gives_its_devices_back():
    """Rule 6.1."""

    async def story(here: World) -> None:
        await here.templates.create(template())
        running = await here.pods.create(pod())
        held = await allocate(here, await generated(here), consumer(running))
        await forbid(here, "UPDATE", "has(object.metadata.finalizers)")
        await finish(here)

        async def is_free() -> bool:
            return allocation(await here.claims.get(held.name, NS)) is None

        await here.until(is_free)
        assert (await here.claims.get(held.name, NS)).metadata.finalizers == [FINALIZER]

    together(story, resourceclaims.CONTROLLER)


def test_a_claim_that_may_not_go_waits_for_its_node_all_the_same():
    """Rule 6.1, N2: the node begins to hold it in the moment of the refusal, which is heard of later."""

    async def story(here: World) -> None:
        await here.templates.create(template())
        running = await here.pods.create(pod(nodeName="n", claims=direct()))
        made = await here.claims.create(claim(ownerReferences=owned_by(running)["ownerReferences"]))
        held = await allocate(here, made, consumer(running))
        await node_with(here)
        await forbid(here, "DELETE", "false")
        raced = []

        async def prepare(request) -> None:
            if request.path == transaction.PATH and not raced:
                raced.append(True)
                await freeze(here, "preparedclaims")
                await prepared(here).patch(
                    "n", {"status": {"claims": [{"uid": held.uid}]}}, subresource="status"
                )

        here.wire.before = prepare
        await finish(here)
        await here.quiet()
        assert raced and allocation(await here.claims.get("c", NS)) is not None

    together(story, resourceclaims.CONTROLLER)


@pytest.mark.parametrize("carried_out", [True, False], ids=["carried out", "not carried out"])
def test_an_answer_that_is_lost_does_not_take_the_claim_apart(carried_out: bool):
    """It is no refusal: what became of the claim is looked at, and it goes at once all the same."""

    async def story(here: World) -> None:
        await here.templates.create(template())
        running = await here.pods.create(pod())
        held = await allocate(here, await generated(here), consumer(running))
        await here.quiet()
        lost = []

        async def lose(request: Request) -> None:
            if request.path == transaction.PATH and len(lost) < 2:
                lost.append(request)
                if carried_out:
                    await here.wire._transport.send(request)
                raise errors.Timeout("no answer")

        here.wire.before = lose
        await finish(here)
        assert await what_became_of(here, held) == [("DELETED", True)]
        await here.quiet()
        assert lost and here.wire.count("PATCH", "") + here.wire.count("DELETE", "") == 0

    together(story, resourceclaims.CONTROLLER)


def test_a_server_that_cannot_patch_a_claim_with_its_status_gets_two_patches(monkeypatch):
    """One of an earlier version: it does not know the word, and refuses the member."""

    def refuse(*_: object) -> None:
        raise errors.BadRequest("unknown field `with`")

    monkeypatch.setattr(reading, "_require_with_status", refuse)

    async def story(here: World) -> None:
        made = await here.claims.create(claim())
        running = await here.pods.create(pod(claims=direct()))
        held = await allocate(here, made, consumer(running))
        await finish(here)
        free = await deallocated(here)
        assert int(free.resource_version) > int(held.resource_version) + 1, "one after the other"

    together(story, resourceclaims.CONTROLLER)
