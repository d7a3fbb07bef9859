"""Classic claims with two API servers on one etcd: who is asked makes no difference."""

import asyncio

import pytest

from allot.api import errors
from api.classic.objects import DRIVER, allocated, claim, class_, consumer
from components import etcd
from e2e.crashes import client_of
from e2e.process import ServerProcess

NS = "default"


@pytest.fixture
def pair(tmp_path):
    with etcd(1) as cluster:
        url = cluster.url()
        servers = [ServerProcess(tmp_path / name, store=url) for name in ("one", "two")]
        yield servers
        for server in servers:
            server.stop()


def of(client, plural="resourceclaims", version="v1alpha1", namespaced=True):
    return client.resource("resource.k8s.io", version, plural, namespaced=namespaced)


def test_a_class_and_a_reservation_hold_whichever_server_is_asked(pair):
    """3063-STATE-23, 3063-CLASS-08: what was written through one server is true at the other at once."""

    async def story():
        (one, first), (two, second) = (client_of(server) for server in pair)
        for at in range(10):
            name = f"c-{at}"
            await of(one, "resourceclasses", namespaced=False).create(
                class_(name, driver="other.example.com")
            )
            await of(one).create(claim(name, name))
            with pytest.raises(errors.Invalid, match=f"resource class {name} is of driver other"):
                await insist(of(two), name, {"status": allocated()}, behind=(errors.Conflict,))
            await of(one, "resourceclasses", namespaced=False).patch(name, {"driverName": DRIVER})
            await insist(of(two), name, {"status": allocated()})
            users = [{"status": {"reservedFor": [consumer(uid)]}} for uid in ("a", "b")]
            here, there = of(one, version="v1"), of(two, version="v1")
            seen = await here.get(name, NS)
            version = {"metadata": {"resourceVersion": seen.resource_version}}
            answers = await asyncio.gather(
                here.patch(name, {**users[0], **version}, NS, subresource="status"),
                there.patch(name, {**users[1], **version}, NS, subresource="status"),
                return_exceptions=True,
            )
            refused = [one for one in answers if isinstance(one, Exception)]
            assert [type(one) for one in refused] == [errors.Conflict]
        await first.close()
        await second.close()

    asyncio.run(story())


async def insist(claims, name, change, behind=(errors.Conflict, errors.Invalid)):
    """A server hears of another's write a moment later, and refuses until then."""
    for _ in range(50):
        try:
            return await claims.patch(name, change, NS, subresource="status")
        except behind:
            await asyncio.sleep(0.1)
    return await claims.patch(name, change, NS, subresource="status")
