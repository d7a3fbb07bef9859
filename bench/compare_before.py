"""This checkout beside an earlier commit, in turns: pods a second, and creates over TLS.

    bench/compare_before.py [COMMIT] [--rounds 2]

`compare_scheduling.py` and `compare.py` on a worktree of the commit, which is made for it and removed again;
the figures go to bench/results/compare-scheduling.json and compare-tls.json. Twelve quiet minutes.
"""

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).parent
RESULTS = HERE / "results"
BEFORE = "1ec0a2b"
"""The last commit without transactions."""
KINDS = "pods,resourceclaims"


def _git(*words: str) -> None:
    subprocess.run(["git", "-C", str(HERE.parent), "worktree", *words], check=True)


def _scheduling(base: Path, rounds: int) -> int:
    out = ["--out", str(RESULTS / "compare-scheduling.json")]
    words = [str(HERE / "compare_scheduling.py"), "--base", str(base), "--rounds", str(rounds), *out]
    return subprocess.run([sys.executable, *words], stdout=subprocess.DEVNULL).returncode


def _tls(base: Path, rounds: int) -> int:
    words = ["--base", str(base), "--rounds", str(rounds + 1), "--objects", "16000", "--kinds", KINDS]
    with (RESULTS / "compare-tls.json").open("w") as out:
        return subprocess.run([sys.executable, str(HERE / "compare.py"), *words], stdout=out).returncode


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("commit", nargs="?", default=BEFORE)
    parser.add_argument("--rounds", type=int, default=2)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        base = Path(folder) / "before"
        _git("add", "--detach", str(base), options.commit)
        try:
            return _tls(base, options.rounds) | _scheduling(base, options.rounds)
        finally:
            _git("remove", "--force", str(base))


if __name__ == "__main__":
    sys.exit(main())
