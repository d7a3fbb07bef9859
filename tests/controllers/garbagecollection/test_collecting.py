"""Garbage collection over the real server: owners go in three ways, and dependents accordingly."""

import asyncio
from typing import Any

from allot.api import Object, errors
from allot.client import Propagation
from allot.controllers.garbagecollection import CONTROLLER
from controllers.world import NS, World, tell

DEFINITION = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "widgets.example.com"},
    "spec": {
        "group": "example.com",
        "scope": "Namespaced",
        "names": {"plural": "widgets", "kind": "Widget"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {"openAPIV3Schema": {"type": "object"}},
            }
        ],
    },
}


def maps(here: World):
    return here.client.resource("", "v1", "configmaps")


def reference(owner: Object, **more: Any) -> dict[str, Any]:
    named = {"apiVersion": owner.api_version, "kind": owner.kind, "name": owner.name, "uid": owner.uid}
    return {**named, **more}


def config_map(name: str, *owners: dict[str, Any], namespace: str = NS, finalizers: list[str] | None = None):
    metadata = {"name": name, "namespace": namespace, "ownerReferences": [*owners]}
    if finalizers:
        metadata["finalizers"] = finalizers
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}


async def made(here: World, name: str, *owners: dict[str, Any], **more: Any) -> Object:
    return await maps(here).create(config_map(name, *owners, **more))


async def gone(here: World, name: str) -> None:
    async def is_gone() -> bool:
        return await here.find(maps(here), name) is None

    await here.until(is_gone)


def test_an_owner_whose_name_nothing_can_have_is_gone():
    """The server takes any text as the name of an owner; as part of a path it would name something else."""

    async def story(here: World) -> None:
        there = await made(here, "there")
        for number, name in enumerate(("a/b", "..", "%2e", "there/status")):
            await made(here, f"child-{number}", {**reference(there), "name": name})
        await made(here, "sound", reference(there))
        for number in range(4):
            await gone(here, f"child-{number}")
        await here.quiet()
        assert await here.find(maps(here), "sound") is not None

    tell(story, CONTROLLER)


def test_what_only_the_deleted_owner_owned_goes_after_it():
    """Background: grandchildren too."""

    async def story(here: World) -> None:
        owner = await made(here, "owner")
        child = await made(here, "child", reference(owner))
        await made(here, "grandchild", reference(child))
        await here.quiet()
        await maps(here).delete("owner", NS)
        await gone(here, "child")
        await gone(here, "grandchild")

    tell(story, CONTROLLER)


def test_an_object_with_another_owner_stays_and_forgets_the_one_that_went():
    async def story(here: World) -> None:
        first, second = await made(here, "first"), await made(here, "second")
        await made(here, "child", reference(first), reference(second))
        await maps(here).delete("first", NS)

        async def has_one_owner() -> bool:
            child = await maps(here).get("child", NS)
            return [one["uid"] for one in child.fields["metadata"]["ownerReferences"]] == [second.uid]

        await here.until(has_one_owner)

    tell(story, CONTROLLER)


def test_in_the_foreground_dependents_go_first():
    """The owner stays, with its finalizer, while a dependent that holds it back is there."""

    async def story(here: World) -> None:
        owner = await made(here, "owner")
        held = await made(
            here, "child", reference(owner, blockOwnerDeletion=True), finalizers=["example.com/hold"]
        )
        await made(here, "grandchild", reference(held, blockOwnerDeletion=True))
        await here.quiet()
        await maps(here).delete("owner", NS, propagation=Propagation.FOREGROUND)
        await gone(here, "grandchild")
        await here.quiet()
        left = await maps(here).get("owner", NS)
        assert left.metadata.finalizers == ["foregroundDeletion"]
        child = await maps(here).get("child", NS)
        assert child.metadata.deletion_timestamp
        await maps(here).patch("child", {"metadata": {"finalizers": None}}, NS)
        await gone(here, "child")
        await gone(here, "owner")

    tell(story, CONTROLLER)


def test_a_dependent_that_does_not_block_does_not_hold_its_owner_back():
    async def story(here: World) -> None:
        owner = await made(here, "owner")
        await made(here, "child", reference(owner), finalizers=["example.com/hold"])
        await here.quiet()
        await maps(here).delete("owner", NS, propagation=Propagation.FOREGROUND)
        await gone(here, "owner")
        assert (await maps(here).get("child", NS)).metadata.deletion_timestamp
        await maps(here).patch("child", {"metadata": {"finalizers": None}}, NS)

    tell(story, CONTROLLER)


def test_two_that_own_each_other_can_be_deleted_in_the_foreground():
    """Each would wait for the other for ever; one of them stops holding the other back."""

    async def story(here: World) -> None:
        a = await made(here, "a")
        b = await made(here, "b", reference(a, blockOwnerDeletion=True))
        owners = {"metadata": {"ownerReferences": [reference(b, blockOwnerDeletion=True)]}}
        await maps(here).patch("a", owners, NS)
        await here.quiet()
        await maps(here).delete("a", NS, propagation=Propagation.FOREGROUND)
        await gone(here, "a")
        await gone(here, "b")

    tell(story, CONTROLLER)


def test_orphans_stay_and_no_longer_name_their_owner():
    async def story(here: World) -> None:
        owner = await made(here, "owner")
        for n in range(20):
            await made(here, f"child-{n}", reference(owner, blockOwnerDeletion=True))
        await here.quiet()
        await maps(here).delete("owner", NS, propagation=Propagation.ORPHAN)
        await gone(here, "owner")
        await here.quiet()
        for n in range(20):
            child = await maps(here).get(f"child-{n}", NS)
            assert "ownerReferences" not in child.fields["metadata"]

    tell(story, CONTROLLER)


def test_what_was_left_behind_while_nobody_watched_is_collected():
    """A restart finds garbage as well as a change does."""

    async def story(here: World) -> None:
        owner = await made(here, "owner")
        await made(here, "child", reference(owner))
        await maps(here).delete("owner", NS)
        await made(here, "late", reference(owner))
        await here.start()
        await gone(here, "child")
        await gone(here, "late")

    tell(story, CONTROLLER, started=False)


def test_a_new_object_with_the_owners_name_is_not_the_owner():
    async def story(here: World) -> None:
        owner = await made(here, "owner")
        await made(here, "child", reference(owner))
        await maps(here).delete("owner", NS)
        await made(here, "owner")
        await here.start()
        await gone(here, "child")
        assert await maps(here).get("owner", NS)

    tell(story, CONTROLLER, started=False)


def test_a_reference_does_not_reach_into_another_namespace():
    """The object it names is not where it says, so it is gone; and an event tells why."""

    async def story(here: World) -> None:
        spaces = here.client.resource("", "v1", "namespaces", namespaced=False)
        await spaces.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "other"}})
        owner = await made(here, "owner", namespace="other")
        await here.quiet()
        await made(here, "child", reference(owner, blockOwnerDeletion=True))
        await gone(here, "child")
        events = here.client.resource("", "v1", "events")

        async def reported() -> bool:
            found = [one.fields["reason"] for one in (await events.list(NS)).objects]
            return "OwnerRefInvalidNamespace" in found

        await here.until(reported)
        assert await maps(here).get("owner", "other")

    tell(story, CONTROLLER)


def test_a_cluster_scoped_object_may_own_what_is_in_a_namespace_and_not_the_other_way_round():
    async def story(here: World) -> None:
        classes = here.client.resource("scheduling.k8s.io", "v1", "priorityclasses", namespaced=False)
        body = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "value": 1}
        top = await classes.create({**body, "metadata": {"name": "top"}})
        await made(here, "below", reference(top))
        owner = await made(here, "owner")
        wrong = {"name": "wrong", "ownerReferences": [reference(owner)]}
        await classes.create({**body, "metadata": wrong})
        await maps(here).delete("owner", NS)
        await classes.delete("top")
        await gone(here, "below")
        await here.quiet()
        assert await classes.get("wrong")  # nobody can tell whose it is: it is left alone

    tell(story, CONTROLLER)


def test_an_owner_of_a_kind_that_is_not_served_is_not_judged():
    async def story(here: World) -> None:
        owner = {"apiVersion": "example.com/v1", "kind": "Widget", "name": "w", "uid": "no-such-uid"}
        await made(here, "child", owner)
        await here.quiet()
        await here.quiet()
        assert await maps(here).get("child", NS)

    tell(story, CONTROLLER)


def test_custom_resources_are_followed_from_the_moment_they_are_served():
    """Definitions come and go while the collector runs."""

    async def story(here: World) -> None:
        definitions = here.client.resource(
            "apiextensions.k8s.io", "v1", "customresourcedefinitions", namespaced=False
        )
        widgets = here.client.resource("example.com", "v1", "widgets")
        body = {"apiVersion": "example.com/v1", "kind": "Widget"}
        for _ in range(2):
            await definitions.create(DEFINITION)

            async def create(name: str, *owners: dict[str, Any]) -> Object | None:
                metadata = {"name": name, "namespace": NS, "ownerReferences": [*owners]}
                try:
                    return await widgets.create({**body, "metadata": metadata})
                except errors.NotFound:
                    return None

            parent = await here.until(lambda: create("parent"))
            await create("child", reference(parent))
            await made(here, "map", reference(parent))
            await here.quiet()
            await widgets.delete("parent", NS)
            await gone(here, "map")

            async def child_gone() -> bool:
                return await here.find(widgets, "child") is None

            await here.until(child_gone)
            await definitions.delete("widgets.example.com")

            async def all_gone() -> bool:
                try:
                    await definitions.get("widgets.example.com")
                except errors.NotFound:
                    return True
                return False

            await here.until(all_gone)

    tell(story, CONTROLLER)


def test_a_definition_that_serves_no_version_is_not_waited_for():
    """Issue 4, must hold 4: it is established, is never served, and costs nothing."""

    async def story(here: World) -> None:
        definitions = here.client.resource(
            "apiextensions.k8s.io", "v1", "customresourcedefinitions", namespaced=False
        )
        (version,) = DEFINITION["spec"]["versions"]
        await definitions.create(
            {**DEFINITION, "spec": {**DEFINITION["spec"], "versions": [{**version, "served": False}]}}
        )
        await asyncio.sleep(0.5)
        before = len(here.wire.requests)
        await asyncio.sleep(1.5)
        assert here.wire.requests[before:] == []

    tell(story, CONTROLLER)


def test_settled_objects_cost_no_requests():
    """Issue 4, must hold 4: what is owned by what is there is not asked for."""

    async def story(here: World) -> None:
        owner = await made(here, "owner")
        await here.quiet()
        before = len(here.wire.requests)
        for n in range(20):
            await made(here, f"child-{n}", reference(owner))
        await here.quiet()
        assert len(here.wire.requests) == before

    tell(story, CONTROLLER)
