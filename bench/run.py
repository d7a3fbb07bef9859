"""Every benchmark, one after another; figures go to bench/results/NAME.json.

    bench/run.py [NAME …]

Machines are noisy: read ratios first. Each benchmark compares what it compares in
one run, and says beside which figures of others it stands.
"""

import json
import os
import platform
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).parent
RESULTS = HERE / "results"

BENCHMARKS = {
    "apiserver": ["apiserver.py", "--objects", "33000"],
    "inprocess": ["inprocess.py"],
    "carrying": ["carrying.py"],
    "profile-writes": ["profile_writes.py"],
    "watchers": ["watchers.py"],
    "store": ["store.py"],
    "machinery": ["machinery.py"],
    "security": ["security.py"],
    "attack": ["attack.py"],
    "cel": ["cel.py"],
    "allocation": ["allocation.py"],
    "claims": ["claims.py"],
    "classic": ["classic.py", "--tries", "3"],
    "numeric": ["numeric.py"],
    "deployment": ["deployment.py"],
    "preparing": ["preparing.py"],
    "node": ["node.py"],
    "containers": ["containers.py"],
    "cri": ["cri.py"],
    "autoscaler": ["autoscaler.py"],
    "compute": ["compute.py"],
    "record": ["record.py"],
    "defrag": ["defrag.py"],
    "idle": ["idle.py"],
    "write-cycle": ["write_cycle.py"],
    "deciding": ["deciding.py"],
    "scheduling-short": ["scheduling.py", "--short"],  # the long form takes an hour: bench/scheduling.py
    "class-changes": ["class_changes.py"],
    "admission-day": ["admission_day.py"],
    "up": ["up.py"],
    "stalls": ["stalls.py"],
}


def main(wanted: list[str]) -> int:
    unknown = [name for name in wanted if name not in BENCHMARKS]
    if unknown:
        print(f"no such benchmark: {', '.join(unknown)}; there are {', '.join(BENCHMARKS)}", file=sys.stderr)
        return 2
    RESULTS.mkdir(exist_ok=True)
    failed = 0
    for name in wanted or BENCHMARKS:
        print(f"{name} …", end=" ", flush=True)
        started, began = time.perf_counter(), time.time()
        script, *arguments = BENCHMARKS[name]
        done = subprocess.run(
            [sys.executable, str(HERE / script), *arguments],
            capture_output=True,
            text=True,
            env={**os.environ, "PYTHONPATH": str(HERE)},
        )
        print(f"{time.perf_counter() - started:.0f} s" if done.returncode == 0 else f"failed:\n{done.stderr}")
        failed += done.returncode != 0
        if done.returncode == 0 and not wrote_itself(name, began):
            write(name, json.loads(done.stdout))
    return 1 if failed else 0


def wrote_itself(name: str, began: float) -> bool:
    """Some benchmarks keep a longer record than what they print."""
    path = RESULTS / f"{name}.json"
    return path.exists() and path.stat().st_mtime >= began


def write(name: str, figures: object) -> None:
    machine = {"cpus": os.cpu_count(), "python": platform.python_version(), "machine": platform.machine()}
    content = {"machine": machine, "figures": figures}
    (RESULTS / f"{name}.json").write_text(json.dumps(content, indent=1) + "\n")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
