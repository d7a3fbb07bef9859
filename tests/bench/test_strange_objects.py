"""Strange objects into a whole cluster, a restart, ordinary work: a small run of `bench/fuzz_stored.py`."""

import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_a_cluster_full_of_strange_objects_works_and_comes_up_again(tmp_path):
    """One round that is asked to stop, one that is killed; every kind is stored by somebody."""
    out = tmp_path / "record.json"
    command = [sys.executable, str(ROOT / "bench" / "fuzz_stored.py"), "--out", str(out), "--shrink-s", "0"]
    done = subprocess.run(
        [*command, "--objects", "900", "--rounds", "2", "--seed", "4"],
        capture_output=True,
        text=True,
        timeout=400,
    )
    assert done.returncode == 0, done.stderr[-4000:] + done.stdout[-4000:]
    record = json.loads(out.read_text())
    assert record["findings"] == []
    assert record["objects_stored"] > 250
    assert set(record["stored_by"]) == {"admin", "editor", "node", "driver"}
    assert len(record["stored_kinds"]) >= 44, "some kind was never stored"
