"""What recording costs a scheduler: pods a second with and without, and how long a replay takes. Prints JSON.

    bench/record.py [--nodes N] [--pods P] [--rounds R] [--transport socket|inprocess|https]

A burst of pods with a claim each, in turn without a record and with one, each by a process of its own. What
others do on a shared machine only ever takes away, so of each kind the best run counts; `rates` lists them
all, and `cpu_ms_per_pod` what a pod took of the processors, which others disturb less. `replay` decides all
that the last run decided again, and fails where one differs.
"""

import argparse
import asyncio
import json
import subprocess
import sys
import tempfile
import time
from functools import partial
from pathlib import Path
from typing import Any

from allot.base import SystemClock
from allot.bench import Settings, find, measure, real
from allot.replay import Bounds, Keeper, RecordFile, Writing, read, replayed

SHAPE = "SchedulingWithResourceClaimTemplate/5000pods_500nodes"
LIMIT_S = 600
KINDS = ("without", "with")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=500)
    parser.add_argument("--pods", type=int, default=2000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--transport", choices=("socket", "inprocess", "https"), default="socket")
    parser.add_argument("--record", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--alone", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.alone:
        return asyncio.run(once(options))
    with tempfile.TemporaryDirectory() as folder:
        print(json.dumps(compared(options, Path(folder))))
    return 0


def compared(options: argparse.Namespace, folder: Path) -> dict[str, Any]:
    runs: dict[str, list[dict[str, Any]]] = {kind: [] for kind in KINDS}
    record = folder / "record"
    for _ in range(options.rounds):
        for kind in KINDS:
            record.unlink(missing_ok=True)
            runs[kind].append(measured(options, record if kind == "with" else None))
            print(f"{kind}: {runs[kind][-1]['pods_per_second']}", file=sys.stderr, flush=True)
    rates = {kind: [one["pods_per_second"] for one in some] for kind, some in runs.items()}
    cpu_ms = {
        kind: [round(1000 * one["cpu_seconds"] / max(one["pods"], 1), 2) for one in some]
        for kind, some in runs.items()
    }
    return {
        "nodes": options.nodes,
        "pods": options.pods,
        "kept": round(max(rates["with"]) / max(rates["without"]), 3),
        "rates": rates,
        "cpu_ms_per_pod": cpu_ms,
        "bytes_per_pod": round(record.stat().st_size / options.pods),
        "replay": again(record),
    }


def measured(options: argparse.Namespace, record: Path | None) -> dict[str, Any]:
    words = ["--alone", "--nodes", str(options.nodes), "--pods", str(options.pods)]
    words += ["--transport", options.transport, *(["--record", str(record)] if record is not None else [])]
    done = subprocess.run([sys.executable, __file__, *words], capture_output=True, text=True, timeout=LIMIT_S)
    if done.returncode:
        raise SystemExit(f"{' '.join(words)} failed: {done.stderr.strip()[-1000:]}")
    figures: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    return figures


async def once(options: argparse.Namespace) -> int:
    shape = find(SHAPE).on(options.nodes).in_bursts().with_pods(options.pods)
    scheduler, writing = real.real_scheduler, None
    if options.record is not None:
        bounds, clock = Bounds(), SystemClock()
        writing = Writing(RecordFile(options.record, bounds), bounds, clock, ended)
        writing.start()
        scheduler = partial(real.real_scheduler, recorder=Keeper(writing.put, clock))
    report = await measure(Settings(shape, options.transport), scheduler, lambda text: None)
    if writing is not None:
        await asyncio.to_thread(writing.close)
    print(json.dumps(report.figures()))
    return 1 if report.wrong else 0


def ended(why: str) -> None:
    raise SystemExit(f"the record ended: {why}")


def again(record: Path) -> dict[str, Any]:
    began, spent = time.perf_counter(), time.process_time()
    found = replayed(read(record))
    if found.differences:
        raise SystemExit(f"{len(found.differences)} of {found.decisions} were decided otherwise")
    return {
        "decisions": found.decisions,
        "seconds": round(time.perf_counter() - began, 2),
        "processorSeconds": round(time.process_time() - spent, 2),
    }


if __name__ == "__main__":
    sys.exit(main())
