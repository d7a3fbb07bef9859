"""Stories of pods on hollow nodes: they start, run and end, and their claims with them."""

import asyncio
from typing import Any

import pytest

from allot.api import Object, Request
from allot.fleet import fleet
from allot.hollow import Stages
from node.objects import NS

from .world import World, playing, tell, world

FINALIZER = "resource.kubernetes.io/delete-protection"


async def allocate(here: World, claim: Object, *pods: Object) -> None:
    """As a scheduler would."""
    await here.claims.patch(claim.name, {"metadata": {"finalizers": [FINALIZER]}}, NS)
    result = {"request": "r", "driver": "d.example.com", "pool": "p", "device": claim.name}
    consumers = [{"resource": "pods", "name": pod.name, "uid": pod.uid} for pod in pods]
    status = {"allocation": {"devices": {"results": [result]}}, "reservedFor": consumers}
    await here.claims.patch(claim.name, {"status": status}, NS, subresource="status")


async def make_claim(here: World, name: str = "c") -> Object:
    request = {"name": "r", "exactly": {"deviceClassName": "any"}}
    spec = {"devices": {"requests": [request]}}
    return await here.claims.create({"metadata": {"name": name, "namespace": NS}, "spec": spec})


def using(*claims: str) -> dict[str, Any]:
    return {"resourceClaims": [{"name": name, "resourceClaimName": name} for name in claims]}


def test_a_pod_runs_until_it_is_deleted_and_is_gone_soon_after():
    async def story(here: World) -> None:
        await here.make_pod()
        running = await here.until_phase("Running")
        status = running.fields["status"]
        assert status["podIP"].startswith("10.0.0.")
        assert {"Ready": "True"}.items() <= {c["type"]: c["status"] for c in status["conditions"]}.items()
        await here.pods.delete("p", NS)
        await here.until_gone()
        assert {who for who, _, path in here.written if "/pods/p" in path} == {"system:node:plain-0"}

    tell(story)


def test_a_task_ends_by_itself_and_as_it_wishes():
    async def story(here: World) -> None:
        await here.make_pod("fine", spec={"restartPolicy": "Never"})
        own = {"hollow.allot.dev/exit-code": "7", "hollow.allot.dev/run-time": "10ms"}
        await here.make_pod("wrong", annotations=own, spec={"restartPolicy": "Never"})
        await here.until_phase("Succeeded", "fine")
        failed = await here.until_phase("Failed", "wrong")
        (container,) = failed.fields["status"]["containerStatuses"]
        assert container["state"]["terminated"]["exitCode"] == 7

    tell(story)


def test_a_service_that_ends_is_started_again():
    async def story(here: World) -> None:
        await here.make_pod(annotations={"hollow.allot.dev/run-time": "20ms"})

        async def restarted() -> bool:
            known = (await here.pods.get("p", NS)).fields["status"].get("containerStatuses") or []
            return any(one["restartCount"] for one in known)

        await here.until(restarted)

    tell(story)


def test_a_pod_starts_only_when_its_claims_are_its_own():
    """N1: allocated is not enough, and the node has said so before anything runs."""

    async def story(here: World) -> None:
        claim = await make_claim(here)
        pod = await here.make_pod(spec=using("c"))

        async def explained() -> bool:
            known = (await here.pods.get("p", NS)).fields["status"].get("containerStatuses") or []
            return [one["state"]["waiting"]["message"] for one in known] == ["claim c is not allocated"]

        await here.until(explained)
        assert await here.phase() == "Pending"
        await allocate(here, claim, pod)
        await here.until_phase("Running")
        assert await here.listed() == [claim.uid]
        order = [path for _, method, path in here.written if "preparedclaims" in path or "/p/status" in path]
        assert "preparedclaims" in order[-2] and order[-1].endswith("/p/status")

    tell(story)


def test_a_node_lets_go_of_a_claim_after_the_pod_has_ended():
    """N2, for a pod that ends and for one that is deleted; a shared claim stays for the other."""

    async def story(here: World) -> None:
        claim = await make_claim(here)
        task = {**using("c"), "restartPolicy": "Never"}
        ends = await here.make_pod("ends", spec=task)
        stays = await here.make_pod("stays", spec=using("c"))
        await allocate(here, claim, ends, stays)
        await here.until_phase("Succeeded", "ends")
        await here.until_phase("Running", "stays")
        assert await here.listed() == [claim.uid]
        here.written.clear()
        await here.pods.delete("stays", NS)
        await here.until_gone("stays")
        assert await here.listed() == []
        told = [path for _, how, path in here.written if "preparedclaims" in path or how == "DELETE"]
        assert "preparedclaims" in told[0]
        assert told[-1].endswith("/pods/stays")

    tell(story)


def test_a_pod_that_is_deleted_by_force_is_let_go_of_too():
    async def story(here: World) -> None:
        claim = await make_claim(here)
        await allocate(here, claim, await here.make_pod(spec=using("c")))
        await here.until_phase("Running")
        await here.pods.delete("p", NS, grace_period_s=0)

        async def let_go() -> bool:
            return await here.listed() == []

        await here.until(let_go)

    tell(story)


def test_what_was_prepared_for_a_pod_that_went_meanwhile_is_let_go_of():
    """Nothing else happens on that node: the restart itself must notice."""

    async def story() -> None:
        async with world() as here:
            async with playing(here, fleet("plain", 1)):
                claim = await make_claim(here)
                await allocate(here, claim, await here.make_pod(spec=using("c")))
                await here.until_phase("Running")
            await here.pods.delete("p", NS, grace_period_s=0)
            assert await here.listed() == [claim.uid]
            async with playing(here, fleet("plain", 1)):

                async def let_go() -> bool:
                    return await here.listed() == []

                await here.until(let_go)

    asyncio.run(story())


def test_a_run_is_as_long_as_it_would_have_been_without_the_restart():
    async def story() -> None:
        async with world() as here:
            own = {"hollow.allot.dev/run-time": "1h"}
            async with playing(here, fleet("plain", 1)):
                await here.make_pod(annotations=own, spec={"restartPolicy": "Never"})
                await here.until_phase("Running")
            long_ago = {"status": {"startTime": "2020-01-01T00:00:00Z"}}
            await here.pods.patch("p", long_ago, NS, subresource="status")
            async with playing(here, fleet("plain", 1)):
                await here.until_phase("Succeeded")

    asyncio.run(story())


def test_a_restart_goes_on_where_it_was():
    """Pods that ran still run; what was prepared for pods that are gone is let go of."""

    async def story() -> None:
        async with world() as here:
            claims = [await make_claim(here, name) for name in ("kept", "left")]
            async with playing(here, fleet("plain", 2)):
                pods = [await here.make_pod(c.name, spec=using(c.name)) for c in claims]
                for claim, pod in zip(claims, pods, strict=True):
                    await allocate(here, claim, pod)
                for pod in pods:
                    await here.until_phase("Running", pod.name)
                task = {"restartPolicy": "Never"}
                own = {"hollow.allot.dev/run-time": "1s"}
                await here.make_pod("task", annotations=own, spec=task)
                await here.until_phase("Running", "task")
            address = (await here.pods.get("kept", NS)).fields["status"]["podIP"]
            await here.pods.delete("left", NS, grace_period_s=0)
            assert len(await here.listed()) == 2

            async with playing(here, fleet("plain", 2)):
                await here.until_phase("Succeeded", "task")

                async def let_go() -> bool:
                    return await here.listed() == [claims[0].uid]

                await here.until(let_go)
                kept = await here.pods.get("kept", NS)
                assert kept.fields["status"]["containerStatuses"][0]["restartCount"] == 0
                another = await here.make_pod("another")
                await here.until_phase("Running", another.name)
                found = (await here.pods.get("another", NS)).fields["status"]["podIP"]
                assert found != address

    asyncio.run(story())


@pytest.mark.parametrize("cache_is_behind", [False, True])
def test_a_pod_whose_claim_was_taken_away_at_the_last_moment_does_not_start(cache_is_behind):
    """N1: after the node has spoken the server is asked, whatever the cache says."""

    async def story() -> None:
        async with world() as here, playing(here, fleet("plain", 1), Stages(start_s=0.3, patience_s=60)):
            claim = await make_claim(here)
            pod = await here.make_pod(spec=using("c"))
            answered = []

            async def take_away(request: Request) -> None:
                """Between the node's word and the start, the claim becomes another's."""
                if "preparedclaims" in request.path and not answered:
                    answered.append(request)
                    if cache_is_behind:
                        await here.freeze("resourceclaims")
                    gone = {"status": {"reservedFor": None, "allocation": None}}
                    await here.claims.patch("c", gone, NS, subresource="status")

            here.after = take_away
            await allocate(here, claim, pod)

            async def said() -> bool:
                return bool(answered)

            await here.until(said)

            async def let_go() -> bool:
                return await here.listed() == []

            await here.until(let_go)
            assert await here.phase() == "Pending"

    asyncio.run(story())


def test_a_finalizer_keeps_an_ended_pod_and_nobody_insists():
    async def story(here: World) -> None:
        await here.make_pod(finalizers=["example.com/wait"])
        await here.until_phase("Running")
        await here.pods.delete("p", NS)
        await here.until_phase("Failed")
        here.written.clear()
        await asyncio.sleep(0.2)
        assert not [one for one in here.written if "/pods/" in one[2]][1:]
        await here.pods.patch("p", {"metadata": {"finalizers": None}}, NS)
        await here.until_gone()

    tell(story)


def test_a_pod_with_an_unreadable_wish_says_so():
    async def story(here: World) -> None:
        await here.make_pod(annotations={"hollow.allot.dev/start-delay": "soon"})

        async def reported() -> bool:
            known = (await here.pods.get("p", NS)).fields["status"].get("containerStatuses") or []
            return any("start-delay" in one["state"]["waiting"]["message"] for one in known)

        await here.until(reported)

    tell(story)
