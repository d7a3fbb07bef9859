"""Who holds the event loop is seen."""

import asyncio
import time

from allot.base import LoopWatch


def test_a_hold_is_seen_with_its_length():
    async def story():
        watch = LoopWatch()
        beating = asyncio.create_task(watch.run())
        await asyncio.sleep(0.12)
        time.sleep(0.3)  # noqa: ASYNC251  the very thing that nobody may do
        await asyncio.sleep(0.1)
        beating.cancel()
        return watch

    watch = asyncio.run(story())
    assert watch.longest_s > 0.2
    assert watch.late_beats >= 1
