"""What the scheduler may read is asked of the server, which may be away at that very moment."""

import asyncio

import pytest

from allot.api import Request, Response, errors
from allot.apiserver import identities
from allot.client import InProcessTransport
from allot.scheduler.mirror import OPTIONAL

from .cluster import Cluster, cluster


class Shy(InProcessTransport):
    """A line to a server that does not say who may do what, until `failed` is taken away."""

    def __init__(self, here: Cluster, failed: errors.ApiError) -> None:
        super().__init__(here.server.api.handle, identities.SCHEDULER)
        self.failed: errors.ApiError | None = failed
        self.asked: list[Request] = []
        self.read: set[str] = set()

    async def send(self, request: Request) -> Response:
        if request.path.endswith("/selfsubjectaccessreviews"):
            self.asked.append(request)
            if self.failed is not None:
                raise self.failed
        elif request.method == "GET":
            self.read.add(request.path.rpartition("/")[2])
        return await super().send(request)


MOMENTS = (errors.Unavailable("away"), errors.TooManyRequests("slow down"), errors.Timeout("late"))


@pytest.mark.parametrize("failed", MOMENTS, ids=[type(one).__name__ for one in MOMENTS])
def test_a_server_that_is_away_for_a_moment_is_asked_again(failed):
    """On a guess the scheduler would follow what it is refused for ever, and place no pod."""

    async def story() -> None:
        async with cluster() as here:
            line = Shy(here, failed)
            await here.node("n1")
            await here.pod("p")
            await here.start_scheduler(transport=line)

            async def is_asked_twice() -> bool:
                return len(line.asked) > 1

            await here.until(is_asked_twice, "the same question again")
            line.failed = None
            await here.bound("p")
            await here.stop()

    asyncio.run(story())


def test_where_nobody_says_who_may_read_every_kind_is_tried():
    async def story() -> None:
        async with cluster() as here:
            line = Shy(here, errors.NotFound("reviews are not served"))
            await here.start_scheduler(transport=line)

            async def are_tried() -> bool:
                return {one.plural for one in OPTIONAL} <= line.read

            await here.until(are_tried, "a look at every kind")
            assert len(line.asked) == len(OPTIONAL)
            await here.stop()

    asyncio.run(story())
