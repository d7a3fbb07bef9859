"""The same writes with and without HTTP and TLS: only they may account for the difference.

    bench/inprocess.py [--objects N] [--writers W]

In process, the same handler answers on the same SQLite store for the same user: authorized,
validated and durable. Prints one JSON object.
"""

import argparse
import asyncio
import json
import tempfile
import time
from pathlib import Path
from typing import Any

import uvloop

from allot.api import Request
from allot.apiserver import ApiServer, identities
from allot.store import open_store
from apiserver import KINDS


async def measure(api: ApiServer, plural: str, count: int, writers: int) -> dict[str, float]:
    make, path = KINDS[plural]
    headers = {"content-type": "application/json", "user-agent": "bench/1"}
    bodies = [json.dumps(make(f"o-{number}")).encode() for number in range(count)]
    left = iter(range(count))

    async def write() -> None:
        for number in left:
            answer = await api.handle(Request("POST", path, {}, headers, bodies[number]), identities.ADMIN)
            assert answer.status == 201, answer.body

    async def read() -> None:
        for number in left:
            answer = await api.handle(Request("GET", f"{path}/o-{number}", {}, headers), identities.ADMIN)
            assert answer.status == 200

    cpu, started = time.process_time(), time.perf_counter()
    await asyncio.gather(*(write() for _ in range(writers)))
    wrote, wrote_cpu = time.perf_counter() - started, time.process_time() - cpu
    left = iter(range(count))
    cpu, started = time.process_time(), time.perf_counter()
    await asyncio.gather(*(read() for _ in range(writers)))
    red, red_cpu = time.perf_counter() - started, time.process_time() - cpu
    return {
        "creates_per_second": round(count / wrote, 1),
        "create_cpu_us": round(wrote_cpu * 1e6 / count, 1),
        "gets_per_second": round(count / red, 1),
        "get_cpu_us": round(red_cpu * 1e6 / count, 1),
    }


async def run(options: argparse.Namespace) -> dict[str, Any]:
    report: dict[str, Any] = {"store": "sqlite", "writers": options.writers, "objects": options.objects}
    for plural in KINDS:
        with tempfile.TemporaryDirectory() as folder:
            store = open_store("sqlite", Path(folder))
            api = ApiServer(store)
            await api.start()
            report[plural] = await measure(api, plural, options.objects, options.writers)
            await api.close()
            await store.close()
    return report


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--objects", type=int, default=8000)
    parser.add_argument("--writers", type=int, default=32)
    print(json.dumps(uvloop.run(run(parser.parse_args())), indent=1))


if __name__ == "__main__":
    main()
