"""Two checkouts in turn, A, B, A, B: did the control plane place more pods a second? Prints JSON.

    bench/compare_scheduling.py --base DIR [--rounds 2] [--only TEXT] [--nodes 500,5000] [--transport socket]

A is the checkout in DIR, B is this one; each turn is `allot bench scheduling` of its own checkout. A ratio
is B over A by the best turn of each, since whatever else runs on the machine can only slow a turn
down. `--out` keeps the figures after every turn, so that a long comparison may be ended early.

    git worktree add /tmp/base COMMIT && bench/compare_scheduling.py --base /tmp/base
"""

import argparse
import json
import os
import platform
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from scheduling import LARGE, LARGE_PODS, TEMPLATE, Run

ROOT = Path(__file__).parent.parent
SHAPES = (
    (f"{TEMPLATE}/5000pods_500nodes", "burst"),
    (f"{TEMPLATE}/empty_500nodes", "steady"),
    (f"{TEMPLATE}/selector_empty_500nodes", "steady"),
    (f"{TEMPLATE}/match_empty_500nodes", "steady"),
    ("ExtendedResource/Explicit_25classes_5000pods_500nodes", "burst"),
)
LARGE_SHAPES = SHAPES[:2]
"""Of the large fleets, which take most of the time: one burst, one steady load."""
LIMIT_S = 300


def runs(nodes: Sequence[int], only: str) -> list[Run]:
    wanted = [
        Run(shape, count, mode, LARGE_PODS if count == LARGE and mode == "burst" else 0)
        for count in nodes
        for shape, mode in (LARGE_SHAPES if count == LARGE else SHAPES)
    ]
    return [run for run in wanted if only in run.name]


def turn(checkout: Path, run: Run, transport: str) -> dict[str, Any]:
    """The figures of one run of one checkout, or why there are none."""
    environment = {**os.environ, "PYTHONPATH": str(checkout / "src")}
    try:
        done = subprocess.run(
            run.command(transport), capture_output=True, text=True, env=environment, timeout=LIMIT_S
        )
    except subprocess.TimeoutExpired:
        return {"failed": f"not done after {LIMIT_S} s"}
    lines = done.stdout.strip().splitlines()
    if done.returncode or not lines:
        return {"failed": done.stderr.strip()[-600:]}
    figures: dict[str, Any] = json.loads(lines[-1])
    return figures


def compared(turns: Mapping[str, Sequence[Mapping[str, Any]]]) -> dict[str, Any]:
    """Both sides' rates and the ratio of their best; and what a pod cost the server and everybody else in
    processor time, by which a busy machine is felt less."""
    rates = {
        side: [one["pods_per_second"] for one in got if "failed" not in one] for side, got in turns.items()
    }
    best = {side: max(found, default=0.0) for side, found in rates.items()}
    ratio = round(best["b"] / best["a"], 3) if best["a"] and best["b"] else None
    return {
        "ratio": ratio,
        "rates": rates,
        "processor_ms_a_pod": {side: processor_ms(got) for side, got in turns.items()},
        "turns": turns,
    }


def processor_ms(turns: Sequence[Mapping[str, Any]]) -> dict[str, list[float]]:
    """By process, turn by turn."""
    found: dict[str, list[float]] = {}
    for one in turns:
        for name, used in one.get("processes", {}).items():
            found.setdefault(name, []).append(round(1000 * used["cpu_seconds"] / one["pods"], 3))
    return found


def commit_of(checkout: Path) -> str:
    words = ["git", "-C", str(checkout), "rev-parse", "--short", "HEAD"]
    return subprocess.run(words, capture_output=True, text=True).stdout.strip()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--base", type=Path, required=True)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--only", default="", help="runs whose name contains this")
    parser.add_argument("--nodes", default=f"500,{LARGE}")
    parser.add_argument("--transport", choices=("socket", "inprocess", "https"), default="socket")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    report: dict[str, Any] = {
        "a": commit_of(options.base),
        "b": commit_of(ROOT),
        "machine": {"cpus": os.cpu_count(), "python": platform.python_version()},
        "transport": options.transport,
        "figures": {},
    }
    for run in runs([int(word) for word in options.nodes.split(",")], options.only):
        turns: dict[str, list[dict[str, Any]]] = {"a": [], "b": []}
        for _ in range(options.rounds):
            for side, checkout in (("a", options.base), ("b", ROOT)):
                turns[side].append(turn(checkout, run, options.transport))
            report["figures"][run.name] = compared(turns)
            if options.out:
                options.out.write_text(json.dumps(report, indent=1) + "\n")
        found = report["figures"][run.name]
        said = f"{run.name}: {found['ratio']} {found['rates']} {found['processor_ms_a_pod']}"
        print(said, file=sys.stderr, flush=True)
    print(json.dumps(report, indent=1))
    return 1 if any(one["ratio"] is None for one in report["figures"].values()) else 0


if __name__ == "__main__":
    sys.exit(main())
