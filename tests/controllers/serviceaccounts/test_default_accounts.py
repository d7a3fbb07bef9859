"""The `default` account of each namespace."""

from allot.api import errors
from allot.controllers.serviceaccounts import CONTROLLER
from controllers.world import World, tell


async def has_default(here: World, namespace: str) -> str:
    try:
        return (await here.client.resource("", "v1", "serviceaccounts").get("default", namespace)).uid
    except errors.NotFound:
        return ""


def test_every_namespace_gets_one_and_gets_it_back():
    async def story(here: World) -> None:
        await here.until(lambda: has_default(here, "kube-system"))
        spaces = here.client.resource("", "v1", "namespaces", namespaced=False)
        await spaces.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "new"}})
        first = await here.until(lambda: has_default(here, "new"))
        await here.client.resource("", "v1", "serviceaccounts").delete("default", "new")
        assert await here.until(lambda: has_default(here, "new")) != first

    tell(story, CONTROLLER)


def test_a_namespace_that_goes_away_gets_none():
    async def story(here: World) -> None:
        spaces = here.client.resource("", "v1", "namespaces", namespaced=False)
        await spaces.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "leaving"}})
        await here.until(lambda: has_default(here, "leaving"))
        await spaces.delete("leaving")
        await here.quiet()
        await here.client.resource("", "v1", "serviceaccounts").delete("default", "leaving")
        await here.quiet()
        assert not await has_default(here, "leaving")

    tell(story, CONTROLLER)
