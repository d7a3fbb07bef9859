"""S1, over HTTPS. bench/crash_api.py does the same a hundred times."""

import asyncio
import random

import pytest

from e2e.crashes import Record, crash_round
from e2e.process import ServerProcess


@pytest.mark.parametrize("together", [False, True], ids=["one by one", "in transactions"])
def test_no_acknowledged_write_is_lost_when_the_server_is_killed(tmp_path, together):
    """TXN1, too: of a transaction everything is there, or nothing."""
    server, record = ServerProcess(tmp_path / "data"), Record(together=together)

    async def rounds():
        for seed in range(3):
            await crash_round(server, record, random.Random(seed))

    try:
        asyncio.run(rounds())
    finally:
        server.stop()
    assert len(record.acknowledged) > 30
    assert record.cut_short > 0, "the server was never killed in the middle of a write"
