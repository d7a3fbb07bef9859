"""The config map with the certificate authority, in every namespace."""

from typing import Any

from allot.controllers.rootcertificates import CONTROLLER
from controllers.world import World, tell

NAME = "kube-root-ca.crt"
AUTHORITIES = "-----BEGIN CERTIFICATE-----\nours\n-----END CERTIFICATE-----\n"


def configs(here: World):
    return here.client.resource("", "v1", "configmaps")


async def published(here: World, namespace: str) -> bool:
    found = (await configs(here).list(namespace)).objects
    return [(one.name, one.fields.get("data")) for one in found] == [(NAME, {"ca.crt": AUTHORITIES})]


async def create_namespace(here: World, name: str) -> Any:
    spaces = here.client.resource("", "v1", "namespaces", namespaced=False)
    return await spaces.create({"metadata": {"name": name}})


def test_every_namespace_gets_it_and_gets_it_back():
    async def story(here: World) -> None:
        await here.until(lambda: published(here, "kube-system"))
        await create_namespace(here, "new")
        await here.until(lambda: published(here, "new"))
        await configs(here).delete(NAME, "new")
        await here.until(lambda: published(here, "new"))

    tell(story, CONTROLLER, authorities=AUTHORITIES)


def test_what_somebody_wrote_into_it_goes():
    async def story(here: World) -> None:
        await here.until(lambda: published(here, "default"))
        await configs(here).patch(NAME, {"data": {"ca.crt": "mine", "more": "x"}}, "default")
        await here.until(lambda: published(here, "default"))
        await configs(here).patch(NAME, {"data": None}, "default")
        await here.until(lambda: published(here, "default"))

    tell(story, CONTROLLER, authorities=AUTHORITIES)


def test_a_namespace_that_goes_away_gets_none():
    async def story(here: World) -> None:
        await create_namespace(here, "leaving")
        await here.until(lambda: published(here, "leaving"))
        await here.client.resource("", "v1", "namespaces", namespaced=False).delete("leaving")
        await here.quiet()
        await configs(here).delete(NAME, "leaving")
        await here.quiet()
        assert not (await configs(here).list("leaving")).objects
        assert here.wire.count("POST", "/namespaces/leaving/") == 1

    tell(story, CONTROLLER, authorities=AUTHORITIES)


def test_who_does_not_know_the_authority_publishes_nothing():
    async def story(here: World) -> None:
        await here.quiet()
        assert not (await configs(here).list()).objects

    tell(story, CONTROLLER)
