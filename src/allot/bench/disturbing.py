"""Something that happens beside the load and has nothing to do with it: a device class that changes.

No pod asks for the class. Whatever its changes cost is paid by those who do not care.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from allot.api import resource
from allot.client import Client

NAME = "bystander"


class Disturbance:
    def __init__(self) -> None:
        self.changes = 0


@asynccontextmanager
async def changing_class(client: Client, every_s: float) -> AsyncIterator[Disturbance]:
    """Meanwhile the class gets another selector every so often; 0: never, and there is no such class."""
    done = Disturbance()
    if not every_s:
        yield done
        return
    classes = client.resource(resource.limits.GROUP, "v1", "deviceclasses", namespaced=False)
    await classes.create({"metadata": {"name": NAME}, "spec": _spec(0)})

    async def change() -> None:
        while True:
            await asyncio.sleep(every_s)
            await classes.patch(NAME, {"spec": _spec(done.changes + 1)})
            done.changes += 1

    changing = asyncio.create_task(change(), name="a class that changes")
    try:
        yield done
    finally:
        changing.cancel()
        await asyncio.wait([changing])
    if not changing.cancelled():
        changing.result()  # it ended by itself: the figures are not what they say


def _spec(number: int) -> dict[str, Any]:
    expression = f'device.driver == "nobody-{number}.example.com"'
    return {"selectors": [{"cel": {"expression": expression}}]}
