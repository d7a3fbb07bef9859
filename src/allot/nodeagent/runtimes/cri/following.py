"""Which containers have ended: heard from the runtime, and looked for in case it was not heard.

A runtime tells of each end, but not to everybody who listens (containerd 1.7 tells one of them), and not
while it is away. So all containers are listed from time to time as well, and each time that it is back.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable

from allot.wire import CallFailed, Channel, cri

from ..contract import Attempt
from . import asking, seen
from .service import Service

log = logging.getLogger(__name__)

RELIST_S = 5.0
_AGAIN_S = 0.2
_OOM_S, _OOM_LOOKS = 1.0, 10


class Following:
    def __init__(
        self, service: Service, channel: Channel, root: str, tell: Callable[[Attempt], None]
    ) -> None:
        self._service = service
        self._channel = channel
        self._labels = asking.own(root)
        self._tell = tell
        self._ended: set[str] = set()  # by id: told, or there before we were
        self.killed: set[str] = set()  # by us, and for no other reason

    async def begin(self) -> None:
        """What has ended by now is known to whoever asks for all attempts."""
        self._ended = {one.id for one in await self._service.containers(self._labels) if seen.is_over(one)}

    async def run(self) -> None:
        """For ever."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._listen(), name="container events")
            group.create_task(self._relist(), name="containers")

    async def _listen(self) -> None:
        while True:
            try:
                async for event in self._channel.stream(cri.EVENTS, cri.GetEventsRequest()):
                    if event.container_event_type is cri.EventType.STOPPED:
                        await self._look(event.container_id)
            except CallFailed as failed:
                log.debug("no events of containers: %s", failed)
            await asyncio.sleep(_AGAIN_S)
            await self._quietly(self._relist_once)

    async def _relist(self) -> None:
        while True:
            await asyncio.sleep(RELIST_S)
            await self._quietly(self._relist_once)

    async def _relist_once(self) -> None:
        listed = await self._service.containers(self._labels)
        for one in listed:
            if seen.is_over(one):
                await self._look(one.id)
        there = {one.id for one in listed}
        self._ended &= there
        self.killed &= there

    async def _look(self, id: str) -> None:
        """Tell of its end once, where it is a container of ours."""
        if id in self._ended:
            return
        status = await self._service.status(id)
        if status is None or not self._labels.items() <= status.labels.items() or not seen.is_over(status):
            return
        for _ in range(_OOM_LOOKS):
            if id in self.killed or not seen.may_be_told_otherwise(status):
                break
            await asyncio.sleep(_OOM_S / _OOM_LOOKS)
            status = await self._service.status(id) or status
        if id not in self._ended and seen.has_begun(status):
            self._ended.add(id)
            self._tell(seen.attempt(status, self._service.name))

    async def _quietly(self, deed: Callable[[], Awaitable[None]]) -> None:
        try:
            await deed()
        except CallFailed as failed:
            log.debug("containers cannot be listed now: %s", failed)
