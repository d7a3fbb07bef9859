"""Strange objects in the store: every component works on them, restarts, and must come up. Prints JSON.

    bench/fuzz_stored.py [--objects N] [--rounds K] [--seed S] [--out FILE] [--logs DIR] [--shrink-s T]

A round is a fresh `allot up` (API server, controllers, scheduler, hollow nodes) and some thousand
requests over HTTPS by an administrator, a user with `edit`, a node and a driver: objects of every kind
in every version that are valid and strange, by every verb and encoding. Then the cluster must still do
ordinary work, also after a restart (asked to stop in even rounds, killed in odd ones). A finding is an
answer of 500 or more, none at all, a traceback in the log, a component that ends, readyz that is not
ok, or work that is not done. The requests of a round that fails are played again by halves, and the
shortest list that still fails is in the record. Exit status 1 if there is a finding.
"""

import argparse
import json
import os
import platform
import shutil
import signal
import sys
import time
from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import uvloop
from sim_seeds import code_under_test
from strange.playing import Round, play, shortest

ROOT = Path(__file__).parents[1]
RECORD = ROOT / "bench" / "results" / "fuzz-stored.json"
SHRUNK_MAX = 3
"""Rounds of which the shortest list is looked for; the others are told with all that failed."""


async def run(options: argparse.Namespace) -> dict[str, Any]:
    code, began = code_under_test(), time.monotonic()
    each = -(-options.objects // options.rounds)
    rounds: list[Round] = []
    findings: list[dict[str, Any]] = []
    for number in range(options.rounds):
        with TemporaryDirectory(prefix="allot-strange-") as folder:
            done = await play(options.seed + number, each, Path(folder))
            if options.logs and (done.failed or done.errors):
                options.logs.mkdir(parents=True, exist_ok=True)
                shutil.copy(Path(folder) / "up.log", options.logs / f"{done.seed}.log")
        rounds.append(done)
        stored = sum(done.stored.values())
        verdict = done.failed or (f"{len(done.errors)} errors" if done.errors else "ok")
        say(
            f"{number + 1}/{options.rounds} seed {done.seed}: {len(done.sent)} sent, {stored} stored, "
            f"{done.peak_mb:.0f} MB, {done.wall_s:.0f} s: {verdict[:400]}"
        )
        if done.failed or done.errors:
            shrinks = options.shrink_s > 0 and sum("shortest" in one for one in findings) < SHRUNK_MAX
            findings.append(await finding(done, options.shrink_s if shrinks else 0.0))
    if code_under_test() != code:
        raise SystemExit("the code changed while it was tested: this run says nothing")
    return {
        "machine": {"cpus": os.cpu_count(), "python": platform.python_version()},
        "code": code,
        "first_seed": options.seed,
        "rounds": options.rounds,
        "wall_s": round(time.monotonic() - began),
        **total(rounds),
        "findings": findings,
    }


def total(rounds: list[Round]) -> dict[str, Any]:
    answers, stored, by_actor = Counter[str](), Counter[str](), Counter[str]()
    for one in rounds:
        answers += one.answers
        stored += one.stored
        by_actor += one.by_actor
    return {
        "objects_sent": sum(len(one.sent) for one in rounds),
        "objects_stored": sum(stored.values()),
        "memory_peak_mb": round(max(one.peak_mb for one in rounds)),
        "ready_again_s_max": round(max(one.ready_again_s for one in rounds), 1),
        "answers": dict(answers.most_common()),
        "stored_by": dict(by_actor.most_common()),
        "stored_kinds": dict(stored.most_common()),
    }


async def finding(done: Round, shrink_s: float) -> dict[str, Any]:
    found: dict[str, Any] = {"seed": done.seed, "failed": done.failed, "errors": done.errors[:10]}
    if done.failed and shrink_s > 0:
        left, said = await shortest(done.sent, time.monotonic() + shrink_s, say)
        found |= {
            "shortest": [one.as_json() for one in left[:20]],
            "shortest_length": len(left),
            "then": said,
        }
    return found


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--objects", type=int, default=50_000)
    parser.add_argument("--rounds", type=int, default=12)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=Path, default=RECORD)
    parser.add_argument("--logs", type=Path, metavar="DIR", help="keep the logs of rounds that fail there")
    parser.add_argument("--shrink-s", type=float, default=240.0, help="how long a finding is made shorter")
    options = parser.parse_args()
    # Asked to end, we end like when interrupted: with the clusters that were started.
    signal.signal(signal.SIGTERM, lambda *_: signal.raise_signal(signal.SIGINT))
    try:
        record = json.dumps(uvloop.run(run(options)), indent=1)
    except KeyboardInterrupt:
        return 130
    options.out.write_text(record + "\n")
    print(record)
    return 1 if json.loads(record)["findings"] else 0


if __name__ == "__main__":
    sys.exit(main())
