"""How many pods a second the whole control plane places, shape by shape.

    bench/scheduling.py [--short] [--only TEXT] [--resume] [--tries N] [--transport socket|inprocess|https]

Every shape of 500 nodes, all pods at once and a few at any time, there and on 5,000
nodes; each by a command of its own (`allot bench scheduling`), with the server in one
process and everybody else in another unless told otherwise. The figures go to
bench/results/scheduling.json after every run, so that a long one can be ended and
taken up again with --resume. What others do on a shared machine only ever takes away, so a
run that falls short of what is asked of it is repeated, twice unless told otherwise: the best
one counts, and `rates` lists them all. `--short` measures four shapes on few nodes and prints
the figures: enough to see that nothing became much slower.
"""

import argparse
import json
import os
import platform
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

RESULTS = Path(__file__).parent / "results" / "scheduling.json"
LIMIT_S = 900
TRIES = 3
WANTED = {"burst": 400, "steady": 250}
"""Pods a second on 500 nodes; on LARGE fleets two thirds of it."""
LARGE = 5000
LARGE_PODS = 5000  # of a burst; the shapes' own numbers would take an hour

TEMPLATE = "SchedulingWithResourceClaimTemplate"
SHORT = (
    f"{TEMPLATE}/5000pods_500nodes",
    f"{TEMPLATE}/match_empty_500nodes",
    "ExtendedResource/Explicit_25classes_5000pods_500nodes",
    "PartitionableBacktracking/half_500nodes",
)
SHORT_NODES = 50


class Run(NamedTuple):
    shape: str
    nodes: int
    mode: str
    pods: int = 0  # 0: the shape's own

    @property
    def name(self) -> str:
        return f"{self.shape} {self.mode} {self.nodes} nodes"

    @property
    def wanted(self) -> float:
        return WANTED[self.mode] * (2 / 3 if self.nodes == LARGE else 1)

    def command(self, transport: str) -> list[str]:
        words = ["scheduling", "--shape", self.shape, "--nodes", str(self.nodes), "--mode", self.mode]
        words += ["--transport", transport]
        words += ["--pods", str(self.pods)] if self.pods else []
        return [sys.executable, "-m", "allot.cli", "bench", *words]


def all_runs() -> Iterator[Run]:
    from allot.bench import SHAPES

    shapes = [shape for shape in SHAPES.values() if shape.nodes == 500]
    for shape in shapes:
        for mode in modes(shape.name):
            yield Run(shape.name, 500, mode)
    for shape in shapes:
        free = shape.on(LARGE).in_bursts().pods.at(LARGE)
        for mode in modes(shape.name):
            yield Run(shape.name, LARGE, mode, min(LARGE_PODS, free) if mode == "burst" else 0)


def modes(name: str) -> tuple[str, ...]:
    """A full fleet has room for ten pods: a burst of so few would measure nothing."""
    return ("steady",) if "/full_" in name else ("burst", "steady")


def short_runs() -> Iterator[Run]:
    for name in SHORT:
        yield Run(name, SHORT_NODES, "burst")


def best(run: Run, transport: str, tries: int) -> dict[str, Any]:
    """The figures of the best of several runs, of one if that is good enough."""
    tried: list[dict[str, Any]] = []
    while len(tried) < tries:
        tried.append(measured(run, transport))
        if "failed" in tried[-1]:
            return tried[-1]
        if tried[-1]["pods_per_second"] >= run.wanted:
            break
    rates = [one["pods_per_second"] for one in tried]
    return {**tried[rates.index(max(rates))], "rates": rates, "python": platform.python_version()}


def measured(run: Run, transport: str) -> dict[str, Any]:
    """The figures of one run, or why there are none."""
    began = time.perf_counter()
    try:
        done = subprocess.run(run.command(transport), capture_output=True, text=True, timeout=LIMIT_S)
    except subprocess.TimeoutExpired:
        return {"failed": f"not done after {LIMIT_S} s"}
    lines = done.stdout.strip().splitlines()
    figures: dict[str, Any] = json.loads(lines[-1]) if lines else {}
    if done.returncode:
        figures["failed"] = done.stderr.strip()[-1000:]
    return {**figures, "whole_run_seconds": round(time.perf_counter() - began, 1)}


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--short", action="store_true")
    parser.add_argument("--only", default="", help="runs whose name contains this")
    parser.add_argument("--resume", action="store_true", help="keep the figures that are there")
    parser.add_argument("--tries", type=int, default=TRIES, help=f"of each run at most; default: {TRIES}")
    parser.add_argument("--transport", choices=("socket", "inprocess", "https"), default="socket")
    options = parser.parse_args()
    if options.tries < 1:
        parser.error("--tries: at least 1")
    runs = [run for run in (short_runs() if options.short else all_runs()) if options.only in run.name]
    keep = options.resume or bool(options.only)
    figures: dict[str, Any] = json.loads(RESULTS.read_text())["figures"] if keep and RESULTS.exists() else {}
    if options.short:
        figures = {}
    for run in runs:
        if options.resume and "failed" not in figures.get(run.name, {"failed": ""}):
            continue
        figures[run.name] = best(run, options.transport, 1 if options.short else options.tries)
        rate = figures[run.name].get("pods_per_second", "failed")
        print(f"{run.name}: {rate}", file=sys.stderr, flush=True)
        if not options.short:
            write(figures)
    if options.short:
        print(json.dumps(figures))
    return 1 if any("failed" in one for one in figures.values()) else 0


def write(figures: dict[str, Any]) -> None:
    machine = {"cpus": os.cpu_count(), "python": sys.version, "machine": platform.machine()}
    RESULTS.write_text(json.dumps({"machine": machine, "figures": figures}, indent=1) + "\n")


if __name__ == "__main__":
    sys.exit(main())
