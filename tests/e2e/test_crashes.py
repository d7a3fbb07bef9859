"""S1, over HTTPS. bench/crash_api.py does the same a hundred times."""

import asyncio
import random

from e2e.crashes import Record, crash_round
from e2e.process import ServerProcess


def test_no_acknowledged_write_is_lost_when_the_server_is_killed(tmp_path):
    server, record = ServerProcess(tmp_path / "data"), Record()

    async def rounds():
        for seed in range(3):
            await crash_round(server, record, random.Random(seed))

    try:
        asyncio.run(rounds())
    finally:
        server.stop()
    assert len(record.acknowledged) > 30
    assert record.cut_short > 0, "the server was never killed in the middle of a write"
