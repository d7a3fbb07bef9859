"""Whether it is still the etcd that this process began with.

Every answer says of which cluster it is, and at which revision that is. A call that begins after an
answer came is never answered at an earlier revision, unless etcd was emptied or put back to an older
state. Then nothing that was read from it counts any more: watches would wait for revisions of a
future that will be another one, and caches show what is gone. It is said once, and every later call
is refused, until the process begins anew.
"""

import asyncio
import logging
from typing import Any

log = logging.getLogger(__name__)


class Origin:
    def __init__(self) -> None:
        self.revision = 0  # the newest that an answer has shown
        self.lost = ""  # why nothing counts any more, once it is so
        self._cluster = 0
        self._told = asyncio.Event()

    def is_ours(self, answer: Any, before: int) -> bool:
        """`before` is the newest revision that was known when the call began."""
        header = answer.header
        if self._cluster and header.cluster_id != self._cluster:
            self._lose(f"cluster {header.cluster_id:x} answers in place of cluster {self._cluster:x}")
        elif header.revision < before:
            self._lose(f"its revision went back from {before} to {header.revision}")
        else:
            self._cluster = header.cluster_id
            self.revision = max(self.revision, header.revision)
        return not self.lost

    def _lose(self, what: str) -> None:
        if not self.lost:
            self.lost = f"etcd is not the one that this server began with: {what} (emptied? restored?)"
            self._told.set()
            log.error("%s", self.lost)

    async def wait_lost(self) -> str:
        await self._told.wait()
        return self.lost
