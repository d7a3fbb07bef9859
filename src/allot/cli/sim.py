"""allot sim: made-up hours of a cluster, one for each seed, with faults of every kind."""

import argparse
import logging
import sys
import time
from collections import Counter

from allot.sim import Report, simulate

HELP = "run the simulator; exit 1 if a promise was broken"


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--seed", type=int, default=1, help="the first seed (default: 1)")
    parser.add_argument("--seeds", type=int, default=1, help="how many, one after another (default: 1)")
    parser.add_argument("--minutes", type=float, default=60, help="of made-up time, each (default: 60)")
    parser.add_argument("--pods", type=int, default=50, help="how many pods come and go (default: 50)")
    parser.add_argument("--story", action="store_true", help="print every event of the last seed")
    parser.add_argument("--verbose", action="store_true", help="show what the components log")


def run(options: argparse.Namespace) -> int:
    level = logging.INFO if options.verbose else logging.CRITICAL
    logging.basicConfig(level=level, stream=sys.stderr, format="%(levelname).1s %(name)s: %(message)s")
    struck: Counter[str] = Counter()
    broken = 0
    for seed in range(options.seed, options.seed + options.seeds):
        started = time.perf_counter()
        report = simulate(seed, seconds=options.minutes * 60, pods=options.pods)
        struck += report.struck
        broken += not report.good
        _print(report, time.perf_counter() - started)
    print("faults: " + ", ".join(f"{name} {count}" for name, count in sorted(struck.items())))
    if options.story:
        _tell(report)
    return 1 if broken else 0


def _print(report: Report, seconds: float) -> None:
    verdict = "good" if report.good else f"{len(report.wrong)} broken promises"
    print(f"seed {report.seed}: {report.events} events, {seconds:.1f} s: {verdict}", flush=True)
    for text in report.wrong[:10]:
        print(f"    {text}")


def _tell(report: Report) -> None:
    for seen in report.history:
        print(f"{seen.revision} {seen.type} {seen.resource}/{seen.object.name}")
