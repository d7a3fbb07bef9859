"""The benchmarks of the controllers, small: they judge themselves by how they end."""

import json
import os
import subprocess
import sys
from pathlib import Path

BENCH = Path(__file__).parents[2] / "bench"


def run(script: str, *options: str) -> dict:
    done = subprocess.run(
        [sys.executable, str(BENCH / script), *options],
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, "PYTHONPATH": str(BENCH)},
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    return json.loads(done.stdout)


def test_an_idle_cluster_asks_nothing_and_a_change_costs_the_same_in_a_larger_one():
    """All controllers, 50 pods and 500: requests are counted, not times."""
    figures = run("idle.py", "--large", "500")
    assert figures["hour"]["unexpected_requests"] == 0
    assert figures["large"]["idle"]["requests"].keys() <= {"update leases"}
    for name, change in figures["large"]["changes"].items():
        assert change["requests"] <= figures["small"]["changes"][name]["requests"] + 0.5, name


def test_a_deployment_with_claims_comes_and_goes_and_leaves_nothing():
    """Created, rolled, scaled to zero: on SQLite, in process and over HTTPS."""
    figures = run("deployment.py", "--pods", "30", "--nodes", "6")
    for way in ("in_process", "https"):
        assert (figures[way]["pods_left"], figures[way]["claims_left"]) == (0, 0)
        calls = figures[way]["created"]["requests_per_pod_by_call"]
        assert 0 < calls["create transactions"] <= 1.0, "the claims of some pods, and their records"
