"""How fast the store is, engine beside engine, in one run on one disk.

    bench/store.py [--puts N] [--open-gb G]

Prints one JSON object. Values are 2 KB and every write compares, as the API server's do.
Read the ratios first: disks differ, and this one may be busy.

    puts_per_s_1, _32    durable writes, one at a time and 32 at once
    put_p50_us           of those one at a time
    cpu_us_per_put       of this process, all threads, at 32
    loop_us_per_put      of that, what the event loop's thread spends
    get_us, range_5000_ms, page_500_ms
    watch_us             from the call of `transact` to the event in a watcher's hands
    open_s               a file of G gigabytes, to the first answer
    sweep_ms             of compaction, 200 revisions of a log with so many rows: must not grow with the log
"""

import argparse
import asyncio
import json
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager, suppress
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from allot.store import Compare, Put, Store, open_store
from allot.store.sqlite.file import LogFile, Row, first_id

ETCD = Path(__file__).parents[1] / ".cache" / "components" / "bin" / "etcd"
VALUE = os.urandom(1024).hex().encode()
ROUNDS = 5
LOGS = (5_000, 20_000, 80_000)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--puts", type=int, default=20_000)
    parser.add_argument("--open-gb", type=float, default=1.0)
    asked = parser.parse_args()
    load = round(os.getloadavg()[0], 1)  # of others, before we add ours
    with tempfile.TemporaryDirectory(prefix="bench-store-") as folder, etcd(Path(folder)) as etcd_url:
        urls = {"memory": "memory", "sqlite": f"sqlite:{folder}/one.db", "etcd": etcd_url}
        figures: dict[str, Any] = asyncio.run(compare({n: url for n, url in urls.items() if url}, asked.puts))
        figures["sweep_ms"] = {str(rows): sweeping(Path(folder) / f"{rows}.db", rows) for rows in LOGS}
        figures["fdatasync_us"] = round(fdatasync_us(Path(folder)))
        if asked.open_gb:
            figures["open"] = asyncio.run(opening(Path(folder) / "large.db", asked.open_gb))
    circumstances = {
        "benchmark": "store",
        "value_bytes": len(VALUE),
        "load_average": load,
        "cpus": os.cpu_count(),
    }
    json.dump({**circumstances, **figures}, sys.stdout, indent=2)
    print()


async def compare(urls: Mapping[str, str], puts: int) -> dict[str, Any]:
    """Round by round, engine after engine, so that a moment in which the disk is slow is slow for all."""
    async with AsyncExitStack() as stack:
        stores = {name: await stack.enter_async_context(opened(url)) for name, url in urls.items()}
        rounds: dict[str, list[tuple[Puts, Puts]]] = {name: [] for name in stores}
        for number in range(ROUNDS):
            for name, store in stores.items():
                alone = await put_many(store, f"/single/{number}", max(200, puts // 40), 1)
                crowd = await put_many(store, f"/crowd/{number}", puts // ROUNDS, 32)
                rounds[name].append((alone, crowd))
        return {
            name: {
                "puts_per_s_1": round(median(alone.rate for alone, _ in rounds[name])),
                "put_p50_us": round(median(alone.p50_us for alone, _ in rounds[name])),
                "puts_per_s_32": round(median(crowd.rate for _, crowd in rounds[name])),
                "cpu_us_per_put": round(median(crowd.cpu_us for _, crowd in rounds[name]), 1),
                "loop_us_per_put": round(median(crowd.loop_us for _, crowd in rounds[name]), 1),
                **await reading(store),
                "watch_us": round(await watching(store), 1),
            }
            for name, store in stores.items()
        }


class Puts(NamedTuple):
    rate: float
    p50_us: float
    cpu_us: float  # of the whole process, for one
    loop_us: float  # of the event loop's thread, for one


async def put_many(store: Store, prefix: str, count: int, at_once: int) -> Puts:
    numbers, times = iter(range(count)), list[float]()

    async def write() -> None:
        for number in numbers:
            key = f"{prefix}/namespace-{number % 50}/object-{number:06}"
            started = time.perf_counter()
            await store.transact([Compare(key, 0)], [Put(key, VALUE)])
            times.append(time.perf_counter() - started)

    cpu, loop_cpu, started = time.process_time(), time.thread_time(), time.perf_counter()
    await asyncio.gather(*(write() for _ in range(at_once)))
    took_s = time.perf_counter() - started
    cpu, loop_cpu = time.process_time() - cpu, time.thread_time() - loop_cpu
    return Puts(count / took_s, median(times) * 1e6, cpu / count * 1e6, loop_cpu / count * 1e6)


async def reading(store: Store) -> dict[str, float]:
    page = await store.range("/crowd/0", limit=5000)
    gets = [entry.key for entry in page.entries[::10]]
    started = time.perf_counter()
    for key in gets:
        await store.get(key)
    get_us = (time.perf_counter() - started) / len(gets) * 1e6
    return {
        "get_us": round(get_us, 1),
        "range_5000_ms": round(await best_ms(store, 5000), 2),
        "page_500_ms": round(await best_ms(store, 500), 3),
    }


async def best_ms(store: Store, limit: int) -> float:
    times = []
    for _ in range(5):
        started = time.perf_counter()
        await store.range("/crowd/", limit=limit)
        times.append((time.perf_counter() - started) * 1e3)
    return min(times)


async def watching(store: Store) -> float:
    """The median way of an event, in microseconds."""
    watch, times = store.watch("/watched/", await store.revision()), []
    for number in range(300):
        hearing = asyncio.ensure_future(anext(watch))
        await asyncio.sleep(0)
        started = time.perf_counter()
        writing = asyncio.ensure_future(store.transact([], [Put("/watched/key", b"%d" % number)]))
        await hearing
        times.append(time.perf_counter() - started)
        await writing
    watch.close()
    return median(times) * 1e6


async def opening(path: Path, gigabytes: float) -> dict[str, float]:
    count = int(gigabytes * 1e9 / (len(VALUE) + 60))
    file = LogFile(path)
    for first in range(0, count, 500):
        file.append([_row(number) for number in range(first, min(count, first + 500))])
    file.finish_checkpoint()
    file.close()
    size = (await asyncio.to_thread(path.stat)).st_size
    started = time.perf_counter()
    store = open_store(f"sqlite:{path}")
    await store.get("/namespace-1/object-000001")
    took_s = time.perf_counter() - started
    await store.close()
    return {"file_gb": round(size / 1e9, 2), "keys": count, "open_s": round(took_s, 2)}


def sweeping(path: Path, rows: int) -> float:
    """The median of one sweep, where every key was written four times."""
    file = LogFile(path)
    for first in range(0, rows, 250):
        file.append([_later_row(number) for number in range(first, first + 250)])
    file.finish_checkpoint()
    file.compact(rows)
    times, more = list[float](), True
    while more:
        started = time.perf_counter()
        more = file.sweep(200)
        times.append(time.perf_counter() - started)
    file.close()
    return round(median(times) * 1000, 2)


def _later_row(number: int) -> Row:
    revision, before = number + 2, number % 4
    return Row(
        first_id(revision),
        revision - 1 if before else 0,
        revision - before,
        f"/object-{number // 4:06}",
        VALUE,
    )


def _row(number: int) -> Row:
    revision = number + 2
    return Row(first_id(revision), 0, revision, f"/namespace-{number % 50}/object-{number:06}", VALUE)


def fdatasync_us(folder: Path) -> float:
    """What the disk itself takes for 4 KB."""
    times = []
    with (folder / "probe").open("wb", buffering=0) as file:
        for _ in range(200):
            file.write(b"." * 4096)
            started = time.perf_counter()
            os.fdatasync(file.fileno())
            times.append(time.perf_counter() - started)
    return median(times) * 1e6


@asynccontextmanager
async def opened(url: str) -> AsyncIterator[Store]:
    store = open_store(url)
    try:
        yield store
    finally:
        await store.close()


@contextmanager
def etcd(folder: Path) -> Iterator[str]:
    """The URL of an etcd with its data on the same disk; empty if there is none to run."""
    if not ETCD.exists():
        print("note: etcd is missing, run `make components`", file=sys.stderr)
        yield ""
        return
    with socket.socket() as first, socket.socket() as second:
        first.bind(("127.0.0.1", 0))
        second.bind(("127.0.0.1", 0))
        client, peer = (f"127.0.0.1:{one.getsockname()[1]}" for one in (first, second))
    command = [
        *(
            str(ETCD),
            f"--data-dir={folder}/etcd",
            "--log-level=error",
            f"--initial-cluster=default=http://{peer}",
        ),
        *(f"--listen-client-urls=http://{client}", f"--advertise-client-urls=http://{client}"),
        *(f"--listen-peer-urls=http://{peer}", f"--initial-advertise-peer-urls=http://{peer}"),
    ]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        yield f"etcd://{client}"
    finally:
        process.kill()
        with suppress(subprocess.TimeoutExpired):
            process.wait(10)


if __name__ == "__main__":
    main()
