"""What the server does unasked, once a second or so: slow watchers go, and so does old history."""

import asyncio
import contextlib
from collections.abc import Callable

from allot.store import Store, StoreError

from .reading.watching import Laggards

_COMPACT_EVERY_S = 300.0


async def keep_house(
    store: Store, laggards: Laggards, policy_revision: Callable[[], int], every_s: float
) -> None:
    """Cut off watchers that do not read or may no longer watch; compact history of some minutes ago."""
    loop = asyncio.get_running_loop()
    old_revision, compact_at = 0, loop.time()
    while True:
        laggards.cut_off()
        await laggards.show_out(loop.time(), policy_revision())
        if loop.time() >= compact_at:
            with contextlib.suppress(StoreError):  # it is away: next time
                if old_revision:
                    await store.compact(old_revision)
                old_revision = await store.revision()
            compact_at = loop.time() + _COMPACT_EVERY_S
        await asyncio.sleep(every_s)
