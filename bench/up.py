"""What a whole cluster costs: how soon it is there, and what thousands of idle nodes take.

    bench/up.py [--nodes N] [--idle S] [--starts K] [--one-process]

Starts `allot up` as a person would: with three hollow nodes, on a fresh data directory and
again on the same one; then with N nodes that nobody uses, unless N is 0. Prints one JSON object.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_TICKS = os.sysconf("SC_CLK_TCK")


@dataclass
class Up:
    process: subprocess.Popen[str]
    ready_s: float

    @classmethod
    def start(cls, folder: Path, nodes: int, more: Sequence[str]) -> "Up":
        command = [sys.executable, "-m", "allot.cli", "up", "--data-dir", str(folder), "--port", "0"]
        began = time.perf_counter()
        process = subprocess.Popen(
            [*command, "--nodes", str(nodes), *more],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert process.stdout is not None and process.stderr is not None
        if process.stdout.readline() != "ready\n":
            raise SystemExit(process.stderr.read())
        return cls(process, time.perf_counter() - began)

    @property
    def cpu_s(self) -> float:
        """Of all its threads, in the kernel too, in both processes."""
        return sum(cpu_s(pid) for pid in self._processes())

    def memory_mb(self, what: str) -> float:
        return sum(memory_mb(pid, what) for pid in self._processes())

    def _processes(self) -> list[int]:
        pid = self.process.pid
        return [pid, *map(int, Path(f"/proc/{pid}/task/{pid}/children").read_text().split())]

    def stop(self) -> float:
        """How long it took to put everything away."""
        began = time.perf_counter()
        self.process.terminate()
        code = self.process.wait(60)
        if code:
            raise SystemExit(f"allot up ended with {code}")
        return time.perf_counter() - began


def cpu_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS


def memory_mb(pid: int, what: str) -> float:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith(what))


def starts(folder: Path, count: int, more: Sequence[str]) -> dict[str, Any]:
    fresh, again, cpu = [], [], []
    for number in range(count):
        data = folder / f"start-{number}"
        first = Up.start(data, 3, more)
        fresh.append(first.ready_s)
        cpu.append(first.cpu_s)
        first.stop()
        second = Up.start(data, 3, more)
        again.append(second.ready_s)
        second.stop()
    return {
        "nodes": 3,
        "starts": count,
        "ready_s": round(statistics.median(fresh), 2),
        "ready_s_worst": round(max(fresh), 2),
        "ready_again_s": round(statistics.median(again), 2),
        "cpu_s": round(statistics.median(cpu), 2),
    }


def idle(folder: Path, nodes: int, idle_s: float, more: Sequence[str]) -> dict[str, Any]:
    up = Up.start(folder / "many", nodes, more)
    report: dict[str, Any] = {
        "nodes": nodes,
        "ready_s": round(up.ready_s, 1),
        "cpu_s_until_ready": round(up.cpu_s, 1),
        "rss_mb_when_ready": round(up.memory_mb("VmRSS")),
    }
    before, began = up.cpu_s, time.perf_counter()
    time.sleep(idle_s)
    report["idle_s"] = round(time.perf_counter() - began)
    report["idle_cpu_cores"] = round((up.cpu_s - before) / (time.perf_counter() - began), 4)
    report["rss_mb"] = round(up.memory_mb("VmRSS"))
    report["rss_mb_peak"] = round(up.memory_mb("VmHWM"))
    report["stop_s"] = round(up.stop(), 2)
    again = Up.start(folder / "many", nodes, more)
    report["ready_again_s"] = round(again.ready_s, 1)
    again.stop()
    return report


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=5000)
    parser.add_argument("--idle", type=float, default=180.0)
    parser.add_argument("--starts", type=int, default=5)
    parser.add_argument("--one-process", action="store_true", help="of the cluster that is measured")
    options = parser.parse_args()
    more = ["--one-process"] if options.one_process else []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        report = {
            "start": starts(folder, options.starts, more),
            "idle": idle(folder, options.nodes, options.idle, more) if options.nodes else {},
        }
    print(json.dumps(report, indent=1))


if __name__ == "__main__":
    main()
