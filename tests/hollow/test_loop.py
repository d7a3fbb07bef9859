"""Stories of hollow nodes: they come, their pods run and end, they go on after a restart."""

import asyncio
from typing import Any

import pytest

from allot.api import Object, Request, errors
from allot.apiserver import identities
from allot.fleet import fleet
from allot.hollow import Renewing, Stages

from .objects import NS
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


def test_every_fleet_registers_with_the_rights_of_nodes():
    """Nodes write what is theirs as themselves, and the component only what is nobody's."""

    async def story(here: World) -> None:
        nodes = (await here.nodes.list()).objects
        assert [one.name for one in nodes] == ["gpu-0", "gpu-1", "mig-0", "plain-0", "plugin-0"]
        leases = (await here.leases.list("kube-node-lease")).objects
        assert [one.name for one in leases] == [one.name for one in nodes]
        uids = {one.name: one.uid for one in nodes}
        for one in (*leases, *(await here.slices.list()).objects):
            node = one.fields.get("spec", {}).get("nodeName") or one.name
            owners = one.fields["metadata"].get("ownerReferences") or []
            assert [owner["uid"] for owner in owners] == ([uids[node]] if node in uids else [])
        component = {path.split("/")[-1] for who, _, path in here.written if who == "allot:hollow-nodes"}
        assert component == {"deviceclasses", "resourceclaimtemplates", "resourceslices"}

    tell(story, "mixed", 5)


def test_a_second_start_writes_nothing_and_a_smaller_fleet_lets_nodes_go():
    async def story() -> None:
        async with world() as here:
            async with playing(here, fleet("mixed", 4)):
                pass
            here.written.clear()
            async with playing(here, fleet("mixed", 4)):
                assert [one for one in here.written if "AlreadyExists" not in one] == [
                    one
                    for one in here.written
                    if one[2].endswith(("deviceclasses", "resourceclaimtemplates"))
                ]
            async with playing(here, fleet("mixed", 2)):
                assert [one.name for one in (await here.nodes.list()).objects] == ["gpu-0", "mig-0"]
            async with playing(here, fleet("gpu", 2)):
                nodes = (await here.nodes.list()).objects
                assert [one.name for one in nodes] == ["gpu-0", "gpu-1"]
                owners = {
                    one.fields["metadata"]["ownerReferences"][0]["uid"]
                    for one in (await here.slices.list(field_selector="spec.driver=gpu.example.com")).objects
                    if one.fields["spec"]["nodeName"].startswith("gpu")
                }
                assert owners == {one.uid for one in nodes}

    asyncio.run(story())


def test_a_node_of_the_same_name_that_is_not_hollow_is_left_alone():
    """G3: the others register; nobody plays somebody else's node."""

    async def story() -> None:
        async with world() as here:
            theirs = await here.nodes.create({"metadata": {"name": "plain-1"}})
            async with playing(here, fleet("plain", 3)):
                nodes = {one.name: one for one in (await here.nodes.list()).objects}
                assert sorted(nodes) == ["plain-0", "plain-1", "plain-2"]
                assert nodes["plain-1"].resource_version == theirs.resource_version
                await here.make_pod(node="plain-1")
                await asyncio.sleep(0.1)
                assert await here.phase() == "Pending"

    asyncio.run(story())


def test_a_slice_that_lost_its_label_is_found_again():
    async def story() -> None:
        async with world() as here:
            async with playing(here, fleet("gpu", 1)):
                (known,) = (await here.slices.list()).objects
            await here.slices.patch(known.name, {"metadata": {"labels": None}})
            async with playing(here, fleet("gpu", 1)):
                (found,) = (await here.slices.list()).objects
                assert found.uid == known.uid
                assert found.metadata.labels == known.metadata.labels

    asyncio.run(story())


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
        await here.pods.delete("stays", NS)
        await here.until_gone("stays")
        assert await here.listed() == []

    tell(story)


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


def test_a_node_that_was_given_up_on_says_that_it_is_there():
    async def story(here: World) -> None:
        unknown = [{"type": "Ready", "status": "Unknown"}]
        await here.nodes.patch("plain-0", {"status": {"conditions": unknown}}, subresource="status")

        async def is_ready() -> bool:
            known = (await here.nodes.get("plain-0")).fields["status"]["conditions"]
            return any(one["type"] == "Ready" and one["status"] == "True" for one in known)

        await here.until(is_ready)

    tell(story)


def test_leases_are_renewed_and_made_again_when_they_are_gone():
    async def story() -> None:
        async with world() as here, playing(here, fleet("plain", 3), renewing=Renewing(0.3, 2)):
            first = (await here.leases.get("plain-1", "kube-node-lease")).fields["spec"]
            assert first["leaseDurationSeconds"] == 2

            async def renewed() -> bool:
                lease = await here.leases.get("plain-1", "kube-node-lease")
                return lease.fields["spec"]["renewTime"] > first["renewTime"]

            await here.until(renewed)
            await here.leases.delete("plain-2", "kube-node-lease")

            async def is_back() -> bool:
                return len((await here.leases.list("kube-node-lease")).objects) == 3

            await here.until(is_back)

    asyncio.run(story())


def test_a_node_that_a_person_makes_is_played_and_one_that_is_deleted_is_not():
    async def story(here: World) -> None:
        labels = {"hollow.allot.dev/fleet": "mine"}
        await here.nodes.create({"metadata": {"name": "mine", "labels": labels}})
        await here.make_pod("here", node="mine")
        await here.until_phase("Running", "here")
        await here.nodes.create({"metadata": {"name": "real"}})
        await here.make_pod("there", node="real")
        await here.nodes.delete("plain-0")
        here.written.clear()
        await asyncio.sleep(0.2)
        assert await here.phase("there") == "Pending"
        assert not [one for one in here.written if one[0] == "system:node:plain-0"]

    tell(story)


def test_a_pod_whose_claim_was_taken_away_at_the_last_moment_does_not_start():
    """The cache still says reserved; the server is asked after the node has spoken."""

    async def story() -> None:
        async with world() as here, playing(here, fleet("plain", 1), Stages(start_s=0.3, patience_s=60)):
            claim = await make_claim(here)
            pod = await here.make_pod(spec=using("c"))
            answered = []

            async def take_away(request: Request) -> None:
                """Between the node's word and the start, the claim becomes another's."""
                if "preparedclaims" in request.path and not answered:
                    answered.append(request)
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

        async def told() -> bool:
            known = (await here.pods.get("p", NS)).fields["status"].get("containerStatuses") or []
            return any("start-delay" in one["state"]["waiting"]["message"] for one in known)

        await here.until(told)

    tell(story)


def test_the_component_may_not_do_what_nodes_do():
    """S5."""

    async def story() -> None:
        async with world() as here:
            client = here.server.client(identities.HOLLOW_NODES)
            for refused in (
                client.resource("", "v1", "nodes", namespaced=False).create({"metadata": {"name": "n"}}),
                client.resource("", "v1", "secrets").list(),
                client.resource("", "v1", "pods").delete("p", NS),
            ):
                with pytest.raises(errors.Forbidden):
                    await refused

    asyncio.run(story())
