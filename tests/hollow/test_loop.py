"""Stories of hollow nodes: they come, stay alive, go on after a restart, and go."""

import asyncio

import pytest

from allot.api import errors
from allot.apiserver import identities
from allot.fleet import fleet
from allot.hollow import Renewing
from node.objects import NS

from .world import World, playing, tell, world


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
    """REG2: the others register; nobody plays somebody else's node."""

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


def test_a_fabric_that_the_fleet_no_longer_has_is_withdrawn():
    async def story() -> None:
        async with world() as here:
            async with playing(here, fleet("mixed", 20)):
                pass
            async with playing(here, fleet("mixed", 3)):
                racks = (await here.slices.list(field_selector="spec.driver=fabric.example.com")).objects
                assert [one.fields["spec"]["pool"]["name"] for one in racks] == ["rack-0"]
            async with playing(here, fleet("plain", 3)):
                racks = (await here.slices.list(field_selector="spec.driver=fabric.example.com")).objects
                assert not racks

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
            await here.nodes.delete("plain-0")
            await asyncio.sleep(0.1)
            here.written.clear()
            await here.until(renewed)
            await asyncio.sleep(0.7)
            assert {who for who, _, _ in here.written} == {"system:node:plain-1", "system:node:plain-2"}

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


def test_pods_live_on_servers_that_have_no_lists_of_prepared_claims():
    """As on a real Kubernetes."""

    async def whole() -> None:
        async with world() as here:
            here.lacks = "node.allot.dev"
            async with playing(here, fleet("plain", 1)):
                await here.make_pod(spec={"restartPolicy": "Never"})
                await here.until_phase("Succeeded")
                assert not any("preparedclaims" in path for _, _, path in here.written)

    asyncio.run(asyncio.wait_for(whole(), 60))
