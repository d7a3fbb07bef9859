"""What the server keeps in memory of large objects that change often."""

import asyncio
import gc
import tracemalloc

import pytest

from allot.api import Request
from allot.apiserver import identities

MAPS = "/api/v1/namespaces/default/configmaps"
MEGA = 1 << 20
UPDATES = 400


@pytest.fixture(autouse=True)
def _nobody_changes_what_is_shared():
    """What this does for other tests keeps every object that was ever written, and so cannot be done here."""


def test_four_hundred_updates_of_a_megabyte_cost_what_the_bounds_say(api):
    """Store and cache keep the same bytes, so that both together cost the larger of their bounds."""

    async def story():
        watching = asyncio.ensure_future(follow())
        await asyncio.sleep(0)
        named = {"metadata": {"name": "large"}}
        await api.ask("POST", MAPS, {**named, "data": {"x": ""}})
        tracemalloc.start()
        try:
            for number in range(UPDATES):
                answer = await api.ask(
                    "PUT", f"{MAPS}/large", {**named, "data": {"x": chr(97 + number % 26) * MEGA}}
                )
                assert answer.status == 200
            gc.collect()
            used, _ = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        watching.cancel()
        return used

    async def follow():
        request = Request("GET", MAPS, {"watch": "1", "resourceVersion": "0"}, {}, b"")
        response = await api.server.handle(request, identities.ADMIN)
        async for _ in response.stream:
            pass

    used = api.run(story())
    assert used < 200 * MEGA, f"{used / MEGA:.0f} MB"
