"""The allocator against the brute-force oracle, many times over, with a record of what was seen.

    python bench/oracle_run.py --examples 100000 --workers 2

Every seed makes one small problem (tests/allocation/problems.py). The verdicts under
every policy must agree with the oracle's, first-fit results must be its results, and
every plan must be accepted by the checker. How long the hardest problem took, in CPU time
and in steps, and how much memory a process ever had are part of the record, and have limits:
some problems have amounts of very different size beside each other. The run is cut into chunks of seeds and
recorded after each, so that it can be interrupted and taken up again; a change of the
code under test starts it anew. Exit status 1 on any disagreement.
"""

import argparse
import hashlib
import importlib
import json
import multiprocessing
import random
import resource
import sys
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
RECORD = ROOT / "bench" / "results" / "oracle-run.json"
CHUNK = 500
SHARE_OF_A_VERDICT = 0.30
SHARE_OF_A_FEATURE = 0.05
DISAGREEMENTS_KEPT = 20
CPU_S_MAX = 10.0
PEAK_MIB_MAX = 512.0
"""For the allocator's answers to one problem under all policies, and for a whole process."""
ABOUT_REFUSALS = ("explanation", "reasons", "remedies", "clauses")
"""Files that only say why; a verdict does not depend on them."""

sys.path[:0] = [str(ROOT / "src"), str(ROOT / "tests")]


@dataclass
class Seen:
    """What became of some seeds."""

    chunks: list[int] = field(default_factory=list)
    verdicts: Counter[str] = field(default_factory=Counter)
    features: Counter[str] = field(default_factory=Counter)
    too_large: int = 0
    disagreements: list[dict[str, Any]] = field(default_factory=list)
    seconds: float = 0.0
    most: dict[str, float] = field(default_factory=dict)  # CPU seconds and steps of a problem, memory in MiB

    def add(self, other: "Seen") -> None:
        self.chunks += other.chunks
        self.verdicts += other.verdicts
        self.features += other.features
        self.too_large += other.too_large
        self.disagreements = (self.disagreements + other.disagreements)[:DISAGREEMENTS_KEPT]
        self.seconds += other.seconds
        for what, amount in other.most.items():
            self.met(what, amount)

    def met(self, what: str, amount: float) -> None:
        self.most[what] = max(amount, self.most.get(what, 0))

    @property
    def compared(self) -> int:
        return sum(self.verdicts.values())


def chunk(number: int) -> Seen:
    """Compare the problems of one chunk of seeds."""
    agreement = importlib.import_module("allocation.agreement")
    oracle = importlib.import_module("allocation.oracle")
    problems = importlib.import_module("allocation.problems")
    seen = Seen(chunks=[number])
    started = time.monotonic()
    for seed in range(number * CHUNK, (number + 1) * CHUNK):
        problem = problems.problem(random.Random(seed))
        try:
            answer = oracle.solve(problem, agreement.STEPS)
        except oracle.OutOfSteps:
            seen.too_large += 1
            continue
        seen.verdicts[answer.verdict] += 1
        seen.features.update(problems.features_used(problem))
        asked = time.process_time()
        try:
            wrong, steps = agreement.compared(problem, answer)
        except Exception as error:  # a crash is a disagreement too, and the run goes on
            wrong, steps = f"raised {error!r}", 0
        seen.met("cpu_s", round(time.process_time() - asked, 3))
        seen.met("steps", steps)
        if wrong:
            seen.disagreements.append({"seed": seed, "wrong": wrong[:500]})
    seen.seconds = time.monotonic() - started
    seen.met("peak_mib", round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, 1))
    return seen


def fingerprint() -> str:
    """Of everything whose change makes an earlier record worthless."""
    digest = hashlib.sha256()
    for folder in ("src/allot/allocation", "src/allot/cel", "tests/allocation"):
        for path in sorted((ROOT / folder).rglob("*.py")):
            if not path.name.startswith("test_") and path.stem not in ABOUT_REFUSALS:
                digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


def resumed(code: str) -> Seen:
    if not RECORD.exists():
        return Seen()
    record = json.loads(RECORD.read_text())
    if record.get("code") != code:
        return Seen()
    return Seen(
        record["chunks"],
        Counter(record["verdicts"]),
        Counter(record["features"]),
        record["too_large"],
        record["disagreements"],
        record["cpu_seconds"],
        record["most"],
    )


def recorded(seen: Seen, code: str) -> dict[str, Any]:
    total = max(1, seen.compared)
    record = {
        "what": "verdicts, first-fit results and plans of the allocator against a brute-force oracle",
        "compared": seen.compared,
        "too_large": seen.too_large,
        "disagreements": seen.disagreements,
        "verdicts": dict(seen.verdicts.most_common()),
        "verdict_shares": {name: round(n / total, 4) for name, n in seen.verdicts.most_common()},
        "features": dict(sorted(seen.features.items(), key=lambda item: item[1])),
        "feature_shares": {name: round(n / total, 4) for name, n in sorted(seen.features.items())},
        "cpu_seconds": round(seen.seconds, 1),
        "most": seen.most,
        "seeds": f"{CHUNK} a chunk",
        "chunks": sorted(seen.chunks),
        "code": code,
    }
    RECORD.parent.mkdir(parents=True, exist_ok=True)
    RECORD.write_text(json.dumps(record) + "\n")
    return record


def shortcomings(seen: Seen) -> list[str]:
    """What keeps this from being the run that was asked for."""
    total = max(1, seen.compared)
    short = [f"{len(seen.disagreements)} disagreements"] if seen.disagreements else []
    for what, limit in (("cpu_s", CPU_S_MAX), ("peak_mib", PEAK_MIB_MAX)):
        if seen.most.get(what, 0) > limit:
            short.append(f"{what} of {seen.most[what]}, the limit is {limit}")
    short += [
        f"only {seen.verdicts[verdict] / total:.1%} {verdict}"
        for verdict in ("fits", "does-not-fit")
        if seen.verdicts[verdict] < SHARE_OF_A_VERDICT * total
    ]
    short += [
        f"only {count / total:.1%} with {feature}"
        for feature, count in seen.features.items()
        if count < SHARE_OF_A_FEATURE * total
    ]
    return short


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--examples", type=int, default=100_000)
    parser.add_argument("--workers", type=int, default=2)
    options = parser.parse_args()
    code = fingerprint()
    seen = resumed(code)
    with multiprocessing.get_context("spawn").Pool(options.workers) as pool:
        next_chunk = max(seen.chunks, default=-1) + 1
        while seen.compared < options.examples:
            missing = -(-(options.examples - seen.compared) // CHUNK)
            numbers = range(next_chunk, next_chunk + missing)
            next_chunk += missing
            for part in pool.imap_unordered(chunk, numbers):
                seen.add(part)
                recorded(seen, code)
                print(f"{seen.compared} compared, {len(seen.disagreements)} disagreements", flush=True)
    record = recorded(seen, code)
    print(json.dumps({key: value for key, value in record.items() if key != "chunks"}, indent=1))
    short = shortcomings(seen)
    for line in short:
        print(line, file=sys.stderr)
    return 1 if short else 0


if __name__ == "__main__":
    sys.exit(main())
