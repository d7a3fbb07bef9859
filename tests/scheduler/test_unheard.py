"""A claim that was made by the scheduler, and went before any watch told of it."""

import asyncio

from allot.api import Object, encode
from allot.apiserver import identities
from allot.client import InProcessTransport
from allot.informers import Informer, Key
from allot.informers.reflector import Report
from allot.scheduler.mirror import CLAIMS
from allot.scheduler.unheard import Unheard
from controllers.world import Behind

from .cluster import NS, cluster


def claim(name: str, version: int, uid: str = "") -> Object:
    metadata = {"name": name, "namespace": NS, "uid": uid or name, "resourceVersion": str(version)}
    return Object(encode({"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", "metadata": metadata}))


class Lists:
    """An informer that is told what a reflector would tell it."""

    def __init__(self) -> None:
        self.informer, self.position = Informer(CLAIMS), 0
        self.gone: list[str] = []
        self._audience = self.informer.audience(Report, lambda: str(self.position), lambda: None)
        self.unheard = Unheard(self.informer, lambda one: self.gone.append(one.uid))

    async def show(self, position: int, *claims: Object) -> None:
        for _ in self.informer.cache.replace({Key.of(one): one for one in claims}):
            pass
        self.position = position
        self._audience.listed()
        for _ in range(3):
            await asyncio.sleep(0)


def test_what_a_later_list_does_not_show_is_gone():
    async def story() -> None:
        here = Lists()
        running = asyncio.create_task(here.unheard.run())
        await here.show(4)
        for one in (
            claim("stays", 5),
            claim("goes", 6),
            claim("replaced", 7),
            claim("told", 8),
            claim("new", 20),
        ):
            here.unheard.made(one)
        here.unheard.heard(claim("told", 8))
        assert here.gone == []
        await here.show(9, claim("stays", 5), claim("replaced", 9, "another"))
        assert here.gone == ["goes", "replaced"]
        here.unheard.made(claim("late", 9))  # its answer comes after a list that does not show it
        assert here.gone == ["goes", "replaced", "late"]
        here.unheard.made(claim("stays", 5))
        await here.show(21)
        assert here.gone == ["goes", "replaced", "late", "new"], "each is told once"
        running.cancel()

    asyncio.run(story())


def test_its_devices_are_free_for_the_next_pod():
    """The watch of claims stands still meanwhile, and then everything is listed anew."""

    async def story() -> None:
        async with cluster() as here:
            await here.device_class(extendedResourceName="example.com/gpu")
            await here.node("n1")
            await here.devices("n1", 1)
            ear = Behind(InProcessTransport(here.server.api.handle, identities.SCHEDULER))
            await here.start_scheduler(transport=ear)
            await here.pod("plain")
            await here.bound("plain")
            ear.hold("resourceclaims")
            await here.pod("first", requests={"example.com/gpu": "1"})
            await here.bound("first")
            claims = here.resource("resourceclaims")
            (made,) = (await claims.list()).objects
            await here.resource("pods").delete("first", NS, grace_period_s=0)
            await claims.patch(made.name, {"status": None}, NS, subresource="status")
            await claims.patch(made.name, {"metadata": {"finalizers": None}}, NS)
            await claims.delete(made.name, NS)
            await here.pod("second", requests={"example.com/gpu": "1"})
            assert here.scheduler is not None
            informers = here.scheduler._informers
            fresh = informers.use(CLAIMS)
            ear._held = ""  # the old stream stands still; a new one does not
            await informers.refresh(fresh)
            await here.bound("second")
            await here.stop()

    asyncio.run(story())
