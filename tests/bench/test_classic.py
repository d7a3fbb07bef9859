"""Many pods with classic claims from a template: a small run of `bench/classic.py`."""

import json
import subprocess
import sys
from pathlib import Path

SCRIPT = Path(__file__).parents[2] / "bench" / "classic.py"


def test_many_pods_with_classic_claims_are_placed_and_nothing_is_left_over():
    """3063-GRAD-02: each claim is where its pod is and reserved for it, and no negotiation is left.
    What one pod costs: eight writes, of which two are the driver's."""
    done = subprocess.run(
        [sys.executable, SCRIPT, "--pods", "120", "--nodes", "6"],
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    figures = json.loads(done.stdout)
    assert (figures["pods"], figures["wrong"]) == (120, [])
    writes = figures["writes_per_pod"]
    for what in ("create podschedulings", "delete podschedulings", "create pods/binding"):
        assert 1 <= writes[what] < 1.1, what
    for what in ("patch resourceclaims", "patch resourceclaims/status"):
        assert 1 <= writes[what] < 1.3, what  # the driver's two; more where a node was full
