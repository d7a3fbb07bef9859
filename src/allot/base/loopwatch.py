"""How long something held the event loop.

One loop carries everything in a process, so nothing may hold it long (20 ms is
our rule). A heartbeat that wakes late tells how late: somebody else was running.
"""

import asyncio

HEARTBEAT_S = 0.05


class LoopWatch:
    def __init__(self) -> None:
        self.longest_s = 0.0
        self.late_beats = 0

    async def run(self, late_s: float = 0.02) -> None:
        """Beat until cancelled."""
        loop = asyncio.get_running_loop()
        while True:
            due = loop.time() + HEARTBEAT_S
            await asyncio.sleep(HEARTBEAT_S)
            held_s = loop.time() - due
            self.longest_s = max(self.longest_s, held_s)
            self.late_beats += held_s > late_s
