"""How fast pods are placed while a device class changes every second that none of them asks for.

    bench/class_changes.py [--nodes N] [--rounds N] [--duration S] [--transport socket|inprocess|https]

A few pods at any time on a fleet that is half full, without changes and with them in turn, each by a
command of its own (`allot bench scheduling`). What others do on a shared machine only ever takes away, so
of each kind the best run counts; `rates` lists them all, and `cpu_ms_per_pod` what a pod took of the
processors, which others disturb less. Fails when less than four fifths of the rate is left with changes.
"""

import argparse
import json
import subprocess
import sys
from typing import Any

SHAPE = "half_500nodes"
LIMIT_S = 600
WANTED = 0.8
KINDS = {"without": 0.0, "every second": 1.0}


def measured(every_s: float, options: argparse.Namespace) -> dict[str, Any]:
    words = ["--shape", SHAPE, "--nodes", str(options.nodes), "--mode", "steady"]
    words += ["--duration", str(options.duration), "--transport", options.transport]
    words += ["--class-changes-every", str(every_s)]
    command = [sys.executable, "-m", "allot.cli", "bench", "scheduling", *words]
    done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S)
    if done.returncode:
        raise SystemExit(f"{' '.join(command)} failed: {done.stderr.strip()[-1000:]}")
    figures: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    return figures


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--nodes", type=int, default=500)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--duration", type=float, default=10.0, help="of a run, in seconds")
    parser.add_argument("--transport", choices=("socket", "inprocess", "https"), default="socket")
    options = parser.parse_args()
    runs: dict[str, list[dict[str, Any]]] = {kind: [] for kind in KINDS}
    for _ in range(options.rounds):
        for kind, every_s in KINDS.items():
            runs[kind].append(measured(every_s, options))
            print(f"{kind}: {runs[kind][-1]['pods_per_second']}", file=sys.stderr, flush=True)
    rates = {kind: [one["pods_per_second"] for one in some] for kind, some in runs.items()}
    best = {kind: max(some, key=lambda one: float(one["pods_per_second"])) for kind, some in runs.items()}
    kept = max(rates["every second"]) / max(rates["without"])
    cpu_ms = {
        kind: [round(1000 * one["cpu_seconds"] / max(one["pods"], 1), 2) for one in some]
        for kind, some in runs.items()
    }
    figures = {
        "kept": round(kept, 3),
        "wanted": WANTED,
        "rates": rates,
        "cpu_ms_per_pod": cpu_ms,
        "best": best,
    }
    print(json.dumps(figures))
    return 0 if kept >= WANTED else 1


if __name__ == "__main__":
    sys.exit(main())
