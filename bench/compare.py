"""Two checkouts in turn, A, B, A, B: did the API server, or a hollow node, become slower? Prints JSON.

    bench/compare.py --base DIR [--in-process] [--rounds 2] [--objects 5000] [--kinds pods,…]
                     [--connections 32] [--worst 0.03]
    bench/compare.py --base DIR --up NODES [--idle S]

A is the checkout in DIR, B is this one. Both are driven by this checkout's `bench/apiserver.py`, or
without HTTP and TLS by its `bench/inprocess.py`, so only the server differs; turns take out what the
machine does meanwhile. With --up that is `bench/up.py`, on one core, where `allot up` is one process in
every checkout: what so many hollow nodes cost until they are there, and at rest.

Ratios are B over A by the best turn of each, since whatever else runs can only slow a turn down. Exit
status 1 if a ratio is worse than allowed: requests a second, and processor time, of a request or of the
nodes. Of the two, processor time is told least by a busy machine.

    git worktree add /tmp/base COMMIT && bench/compare.py --base /tmp/base
"""

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
ROOT = HERE.parent
LOWER_IS_BETTER = (
    "server_cpu_us_per_request", "p99_ms", "list_s", "rss_mb", "ready_s", "idle_mb", "create_cpu_us",
    "get_cpu_us", "cpu_s_until_ready", "rss_mb_when_ready", "idle_cpu_cores",
)  # fmt: skip
JUDGED = (
    "per_second", "server_cpu_us_per_request", "create_cpu_us", "get_cpu_us", "cpu_s_until_ready",
    "idle_cpu_cores",
)  # fmt: skip


def figures(report: Mapping[str, Any], path: str = "") -> Iterator[tuple[str, float]]:
    """Every number of a report that is compared, by its dotted path."""
    for key, value in report.items():
        if isinstance(value, dict) and key not in ("kubernetes", "statuses"):
            yield from figures(value, f"{path}{key}.")
        elif key in (*LOWER_IS_BETTER, "per_second"):
            yield f"{path}{key}", float(value)


def measured(checkout: Path, options: argparse.Namespace) -> dict[str, float]:
    command = _command(options)
    paths = os.pathsep.join(map(str, (checkout / "src", HERE)))
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "PYTHONPATH": paths})
    if done.returncode:
        raise SystemExit(f"{checkout}: {done.stderr[-600:]}")
    return dict(figures(json.loads(done.stdout)))


def _command(options: argparse.Namespace) -> list[str]:
    if options.up:
        script = ["taskset", "-c", str(min(os.sched_getaffinity(0))), sys.executable, str(HERE / "up.py")]
        return [*script, "--nodes", str(options.up), "--idle", str(options.idle), "--starts", "1"]
    script = [sys.executable, str(HERE / ("inprocess.py" if options.in_process else "apiserver.py"))]
    command = [*script, "--objects", str(options.objects)]
    if options.in_process:
        return command
    width = ["--connections", str(options.connections)]
    return [*command, "--kinds", options.kinds, "--store", options.store, *width]


def commit_of(checkout: Path) -> str:
    words = ["git", "-C", str(checkout), "rev-parse", "--short", "HEAD"]
    return subprocess.run(words, capture_output=True, text=True, check=True).stdout.strip()


def compared(base: Sequence[Mapping[str, float]], here: Sequence[Mapping[str, float]]) -> dict[str, Any]:
    """By figure: the best of each side, and the ratio."""
    found = {}
    for name in base[0]:
        best = min if name.rpartition(".")[2] in LOWER_IS_BETTER else max
        a, b = best(one[name] for one in base), best(one[name] for one in here)
        found[name] = {"a": a, "b": b, "ratio": round(b / a, 3) if a else None}
    return found


def slower(found: Mapping[str, Any], worst: float) -> list[str]:
    """The judged figures that are worse than allowed, in words."""
    said = []
    for name, one in found.items():
        last = name.rpartition(".")[2]
        if last not in JUDGED or one["ratio"] is None:
            continue
        loss = one["ratio"] - 1 if last in LOWER_IS_BETTER else 1 - one["ratio"]
        if loss > worst:
            said.append(f"{name} is {loss:.1%} worse: {one['a']} became {one['b']}")
    return said


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--base", type=Path, required=True, metavar="DIR", help="the checkout to compare with"
    )
    parser.add_argument("--in-process", action="store_true", help="all kinds on SQLite, without HTTP and TLS")
    parser.add_argument(
        "--up", type=int, default=0, metavar="NODES", help="hollow nodes, in place of requests"
    )
    parser.add_argument(
        "--idle", type=float, default=30.0, metavar="S", help="with --up: at rest; default: 30"
    )
    parser.add_argument("--rounds", type=int, default=2, help="turns of each; default: 2")
    parser.add_argument("--objects", type=int, default=5000)
    parser.add_argument("--kinds", default="configmaps,pods,resourceclaims")
    parser.add_argument("--store", default="sqlite")
    parser.add_argument("--connections", type=int, default=32, help="requests at once; default: 32")
    parser.add_argument("--worst", type=float, default=0.03, help="the loss that is allowed; default: 0.03")
    options = parser.parse_args()
    if not (options.base / "src" / "allot").is_dir():
        parser.error(f"{options.base} is no checkout: it has no src/allot")
    commit = commit_of(options.base)
    base: list[dict[str, float]] = []
    here: list[dict[str, float]] = []
    for number in range(options.rounds):
        for name, checkout, turns in (("A", options.base, base), ("B", ROOT, here)):
            turns.append(measured(checkout.resolve(), options))
            print(f"{name} {number + 1}/{options.rounds}: {turns[-1]}", file=sys.stderr, flush=True)
    found = compared(base, here)
    said = slower(found, options.worst)
    report = {
        "base": commit,
        "ratios": found,
        "slower": said,
        "turns": {"a": base, "b": here},
    }
    print(json.dumps(report, indent=1))
    return 1 if said else 0


if __name__ == "__main__":
    sys.exit(main())
