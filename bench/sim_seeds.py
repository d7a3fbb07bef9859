"""Many made-up hours with all faults, in one recorded run.

    python bench/sim_seeds.py [--seeds 1-2000] [--jobs 2] [--scheduler real|simple]
                              [--agents SHARE] [--classic SHARE] [--compute SHARE] [--numeric SHARE]
                              [--autoscaler SHARE] [--out FILE]

Every seed is a world of its own (`allot sim`): an hour and a quarter with fifty pods, all
controllers in two copies, every kind of fault; with the real scheduler in three copies, and
drivers that publish anew, unless a simple stand-in is asked for; in a share of the worlds one or two nodes
have real agents and drivers, and in a share of them there are classic claims, compute resources,
numeric claims, or an autoscaler. The record names the code tested, how often each fault struck, and every
promise that was broken. Exit status 1 if one was, or if a fault never struck. Whoever interrupts it
has a record of the seeds that ran until then.
"""

import argparse
import hashlib
import json
import os
import platform
import sys
import time
from pathlib import Path

from allot.cli.sim import seeds as read_seeds
from allot.cli.sim import share
from allot.sim import (
    SHARE_WITH_AGENTS,
    SHARE_WITH_AUTOSCALER,
    SHARE_WITH_CLASSIC,
    SHARE_WITH_COMPUTE,
    SHARE_WITH_NUMERIC,
    Outcome,
    Scope,
    Total,
    faults_of,
    run_many,
)

ROOT = Path(__file__).parents[1]
SHARES = {
    "agents": SHARE_WITH_AGENTS,
    "classic": SHARE_WITH_CLASSIC,
    "compute": SHARE_WITH_COMPUTE,
    "numeric": SHARE_WITH_NUMERIC,
    "autoscaler": SHARE_WITH_AUTOSCALER,
}
"""Of the worlds, in which there is such a part."""
PROGRESS_S = 10.0
RECORD = ROOT / "bench" / "results" / "sim-2000.json"


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seeds", type=read_seeds, default=range(1, 2001), metavar="A-B")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--scheduler", choices=("real", "simple"), default="real")
    for part, most in SHARES.items():
        parser.add_argument(f"--{part}", type=share, default=most, metavar="SHARE")
    parser.add_argument("--out", type=Path, default=RECORD)
    options = parser.parse_args()
    seeds = options.seeds
    code, began_s, done = code_under_test(), time.monotonic(), 0
    said_s = began_s

    def progress(outcome: Outcome) -> None:
        nonlocal done, said_s
        done += 1
        now_s = time.monotonic()
        for text in outcome.wrong[:3]:
            print(f"seed {outcome.seed}: {text}", file=sys.stderr, flush=True)
        if now_s - said_s >= PROGRESS_S:
            said_s = now_s
            print(f"{done} of {len(seeds)}, {now_s - began_s:.0f} s", file=sys.stderr, flush=True)

    shares = {part: getattr(options, part) for part in SHARES}
    scope = Scope(real_scheduler=options.scheduler == "real", **shares)
    total = Total(faults_of(scope))
    try:
        run_many(seeds, scope, options.jobs, progress, total)
    except KeyboardInterrupt:
        print(f"interrupted after {total.seeds} of {len(seeds)}", file=sys.stderr)
    if code_under_test() != code:
        print("the code changed while it was tested: this run says nothing", file=sys.stderr)
        return 1
    record = {
        "machine": {"cpus": os.cpu_count(), "python": platform.python_version()},
        "code": code,
        "scheduler": options.scheduler,
        **shares,
        "first_seed": seeds[0],
        "asked_for": len(seeds),
        "jobs": options.jobs,
        "wall_s": round(time.monotonic() - began_s),
        **total.as_json(),
    }
    options.out.write_text(json.dumps(record, indent=1) + "\n")
    print(json.dumps(record, indent=1))
    return 0 if total.good and total.seeds == len(seeds) else 1


def code_under_test() -> str:
    """One hash over every file of the package, so that a record can be told from one of older code."""
    found = hashlib.sha256()
    for path in sorted((ROOT / "src" / "allot").rglob("*.py")):
        found.update(str(path.relative_to(ROOT)).encode())
        found.update(path.read_bytes())
    return found.hexdigest()[:16]


if __name__ == "__main__":
    sys.exit(main())
