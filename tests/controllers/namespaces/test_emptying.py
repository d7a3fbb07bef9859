"""The end of a namespace, over the real server."""

from typing import Any

from allot.api import errors
from allot.controllers.namespaces import CONTROLLER
from controllers.world import World, tell

POD_SPEC = {"containers": [{"name": "main", "image": "app:1"}], "nodeName": "n1"}


def spaces(here: World):
    return here.client.resource("", "v1", "namespaces", namespaced=False)


async def namespace(here: World, name: str = "leaving") -> None:
    await spaces(here).create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})


async def config_map(here: World, name: str, **metadata: Any) -> None:
    meta = {"name": name, "namespace": "leaving", **metadata}
    maps = here.client.resource("", "v1", "configmaps")
    await maps.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta})


async def is_gone(here: World) -> bool:
    try:
        await spaces(here).get("leaving")
    except errors.NotFound:
        return True
    return False


async def conditions(here: World) -> dict[str, Any]:
    status = (await spaces(here).get("leaving")).fields["status"]
    return {one["type"]: one for one in status.get("conditions") or ()}


def test_an_empty_namespace_goes():
    async def story(here: World) -> None:
        await namespace(here)
        await spaces(here).delete("leaving")
        await here.until(lambda: is_gone(here))

    tell(story, CONTROLLER)


def test_everything_in_it_goes_and_nothing_elsewhere():
    async def story(here: World) -> None:
        await namespace(here)
        await namespace(here, "staying")
        maps = here.client.resource("", "v1", "configmaps")
        for n in range(5):
            await config_map(here, f"m{n}")
        await maps.create({"apiVersion": "v1", "kind": "ConfigMap",
                           "metadata": {"name": "kept", "namespace": "staying"}})  # fmt: skip
        secrets = here.client.resource("", "v1", "secrets")
        await secrets.create({"apiVersion": "v1", "kind": "Secret",
                              "metadata": {"name": "s", "namespace": "leaving"}})  # fmt: skip
        await spaces(here).delete("leaving")
        await here.until(lambda: is_gone(here))
        assert (await maps.list("leaving")).objects == ()
        assert (await secrets.list("leaving")).objects == ()
        assert await maps.get("kept", "staying")

    tell(story, CONTROLLER)


def test_it_waits_for_finalizers_and_tells_whose():
    async def story(here: World) -> None:
        await namespace(here)
        await config_map(here, "held", finalizers=["example.com/hold"])
        await spaces(here).delete("leaving")

        async def reported() -> Any:
            found = await conditions(here)
            return found if found.get("NamespaceFinalizersRemaining", {}).get("status") == "True" else None

        found = await here.until(reported)
        assert "example.com/hold" in found["NamespaceFinalizersRemaining"]["message"]
        assert found["NamespaceFinalizersRemaining"]["reason"] == "SomeFinalizersRemain"
        assert "configmaps: 1" in found["NamespaceContentRemaining"]["message"]
        assert found["NamespaceDeletionContentFailure"]["status"] == "False"
        maps = here.client.resource("", "v1", "configmaps")
        await maps.patch("held", {"metadata": {"finalizers": None}}, "leaving")
        await here.until(lambda: is_gone(here))

    tell(story, CONTROLLER)


def test_pods_go_before_everything_else():
    """A pod that is ending may still need what is beside it."""

    async def story(here: World) -> None:
        await namespace(here)
        await config_map(here, "needed")
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "namespace": "leaving"}}
        await here.pods.create({**pod, "spec": POD_SPEC})
        await spaces(here).delete("leaving")

        async def ending() -> bool:
            return (await here.pods.get("p", "leaving")).metadata.deletion_timestamp is not None

        await here.until(ending)
        await here.quiet()
        maps = here.client.resource("", "v1", "configmaps")
        assert (await maps.get("needed", "leaving")).metadata.deletion_timestamp is None
        await here.pods.delete("p", "leaving", grace_period_s=0)
        await here.until(lambda: is_gone(here))

    tell(story, CONTROLLER)


def test_a_deletion_that_began_before_the_controller_is_finished_by_it():
    async def story(here: World) -> None:
        await namespace(here)
        await config_map(here, "m")
        await spaces(here).delete("leaving")
        await here.start()
        await here.until(lambda: is_gone(here))

    tell(story, CONTROLLER, started=False)


def test_finalizers_of_others_keep_the_namespace():
    async def story(here: World) -> None:
        body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "leaving"}}
        await spaces(here).create({**body, "spec": {"finalizers": ["example.com/mine"]}})
        await spaces(here).delete("leaving")

        async def only_mine() -> bool:
            return (await spaces(here).get("leaving")).fields["spec"]["finalizers"] == ["example.com/mine"]

        await here.until(only_mine)

    tell(story, CONTROLLER)
