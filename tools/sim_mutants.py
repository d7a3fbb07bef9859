"""Planted bugs, each of which the simulator must find.

    python tools/sim_mutants.py [--seeds 200] [NAME …]

Every mutant is one small edit, made in a copy of the tree. Seeds are run one after
another until a checker speaks up; a mutant that survives all of them, or whose text is
no longer found, makes this fail. Prints a table: the mutant, the seed that found it, and
what was said.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
CLAIMS = "src/allot/controllers/resourceclaims"
COLLECTOR = "src/allot/controllers/garbagecollection"
INFORMERS = "src/allot/informers"


@dataclass(frozen=True)
class Mutant:
    name: str
    file: str
    old: str
    new: str


MUTANTS = (
    Mutant(
        "the last reservation goes and the allocation stays",
        f"{CLAIMS}/releasing.py",
        'return Plan({**status, "allocation": None}, True, True, True)',
        "return Plan(status, True, True, True)",
    ),
    Mutant(
        "the finalizer goes before the allocation",
        f"{CLAIMS}/releasing.py",
        'return Plan({"allocation": None} if is_allocated else None, is_allocated, True, True)',
        "return Plan(None, False, True, True)",
    ),
    Mutant(
        "the finalizer never goes",
        f"{CLAIMS}/claim_loop.py",
        "if plan.unprotects:",
        "if False:",
    ),
    Mutant(
        "a running pod loses its reservation",
        f"{CLAIMS}/releasing.py",
        "return Verdict.DROP if pod.is_done else Verdict.KEEP",
        "return Verdict.DROP",
    ),
    Mutant(
        "a cache that does not know a pod is believed",
        f"{CLAIMS}/releasing.py",
        "return Verdict.ASK",
        "return Verdict.DROP",
    ),
    Mutant(
        "the server is asked and not listened to",
        f"{CLAIMS}/claim_loop.py",
        "if live is None or live.metadata.uid != consumer.uid:",
        "if True:",
    ),
    Mutant(
        "every pod is remembered as gone",
        f"{CLAIMS}/memory.py",
        "return uid in self._nodes",
        "return True",
    ),
    Mutant(
        "status is written whatever others wrote meanwhile",
        f"{CLAIMS}/claim_loop.py",
        'return {"uid": claim.uid, "resourceVersion": claim.resource_version}',
        'return {"uid": claim.uid}',
    ),
    Mutant(
        "claims of finished pods stay",
        f"{CLAIMS}/claim_loop.py",
        "if plan.is_unreserved:",
        "if False:",
    ),
    Mutant(
        "a claim that was made twice stays twice",
        f"{CLAIMS}/claim_loop.py",
        "if pod is None or not self._is_superfluous(view, pod):",
        "if True:",
    ),
    Mutant(
        "a finished pod keeps its reservations",
        f"{CLAIMS}/releasing.py",
        "return Verdict.DROP if pod.is_done else Verdict.KEEP",
        "return Verdict.KEEP",
    ),
    Mutant(
        "a pod's end is not looked at",
        f"{CLAIMS}/loop.py",
        "self._look_at(self._reserved[object.uid])",
        "pass",
    ),
    Mutant(
        "claims are not recorded in the pod",
        f"{CLAIMS}/pod_loop.py",
        "if fresh:",
        "if False:",
    ),
    Mutant(
        "a claim of another pod is taken for one's own",
        f"{CLAIMS}/generating.py",
        "return named == entry and is_for(claim_of(claim), pod)",
        "return named == entry",
    ),
    Mutant(
        "what failed is not tried again",
        f"{INFORMERS}/reconciler.py",
        "self.queue.retry(key, self._clock.monotonic_s())",
        "0.0",
    ),
    Mutant(
        "what vanished while nobody watched is still there",
        f"{INFORMERS}/cache.py",
        "if key not in objects:",
        "if False:",
    ),
    Mutant(
        "an owner that is gone is taken for one that is there",
        f"{COLLECTOR}/plan.py",
        "if standing in (Standing.GONE, Standing.WAITING)",
        "if standing is Standing.WAITING",
    ),
    Mutant(
        "an owner that is there is taken for one that is gone",
        f"{COLLECTOR}/plan.py",
        "if standing in (Standing.GONE, Standing.WAITING)",
        "if standing is not Standing.WAITING",
    ),
)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", help="only mutants whose name contains one of these")
    parser.add_argument("--seeds", type=int, default=200)
    parser.add_argument("--minutes", type=int, default=30)
    parser.add_argument("--pods", type=int, default=30)
    options = parser.parse_args()
    wanted = [m for m in MUTANTS if not options.names or any(name in m.name for name in options.names)]
    survived = 0
    for mutant in wanted:
        seed, said = hunt(mutant, options)
        survived += seed is None
        shown = f"seed {seed}" if seed is not None else "SURVIVED"
        print(f"{shown:>9}  {mutant.name}: {said}", flush=True)
    print(f"{len(wanted) - survived} of {len(wanted)} found")
    return 1 if survived else 0


def hunt(mutant: Mutant, options: argparse.Namespace) -> tuple[int | None, str]:
    """The first seed that finds the mutant, and what it says."""
    with tempfile.TemporaryDirectory(prefix="sim-mutant-") as folder:
        tree = Path(folder) / "src"
        shutil.copytree(ROOT / "src", tree, ignore=shutil.ignore_patterns("__pycache__"))
        path = Path(folder) / mutant.file
        text = path.read_text()
        if mutant.old not in text:
            return None, "its text is no longer in the file"
        path.write_text(text.replace(mutant.old, mutant.new))
        for seed in range(1, options.seeds + 1):
            said = simulate(tree, seed, options)
            if said:
                return seed, said
    return None, f"{options.seeds} seeds found nothing"


def simulate(tree: Path, seed: int, options: argparse.Namespace) -> str:
    """The first broken promise, or nothing."""
    command = [sys.executable, "-B", "-m", "allot.cli", "sim", "--seed", str(seed)]
    command += ["--minutes", str(options.minutes), "--pods", str(options.pods)]
    done = subprocess.run(
        command, capture_output=True, text=True, env={**os.environ, "PYTHONPATH": str(tree)}, timeout=600
    )
    if done.returncode == 0:
        return ""
    lines = [line.strip() for line in done.stdout.splitlines() if line.startswith("    ")]
    return lines[0] if lines else done.stderr.strip().splitlines()[-1]


if __name__ == "__main__":
    sys.exit(main())
