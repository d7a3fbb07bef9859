"""Two checkouts in turn: the script runs both, and knows what is worse."""

import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def compared(*options: str) -> tuple[int, dict]:
    command = [sys.executable, str(ROOT / "bench" / "compare.py"), "--rounds", "1", "--kinds", "configmaps"]
    done = subprocess.run(
        [*command, "--objects", "40", *options], capture_output=True, text=True, timeout=180
    )
    return done.returncode, json.loads(done.stdout) if done.stdout else {"said": done.stderr}


def test_a_checkout_beside_itself_is_about_as_fast():
    """With a bound that only a broken script would miss; and with one that nobody can keep."""
    code, record = compared("--base", str(ROOT), "--worst", "50")
    assert (code, record["slower"]) == (0, [])
    ratios = record["ratios"]
    assert {"configmaps.create.per_second", "configmaps.get.server_cpu_us_per_request"} <= ratios.keys()
    assert all(one["a"] > 0 and one["b"] > 0 for one in ratios.values() if one["ratio"] is not None)
    code, record = compared("--base", str(ROOT), "--worst", "-50")
    assert code == 1 and any("configmaps.create.per_second" in text for text in record["slower"])


def test_both_are_compared_without_a_wire_too():
    code, record = compared("--base", str(ROOT), "--in-process", "--worst", "50")
    assert (code, record["slower"]) == (0, [])
    assert {"pods.create_cpu_us", "resourceclaims.get_cpu_us"} <= record["ratios"].keys()
    code, record = compared("--base", str(ROOT), "--in-process", "--worst", "-50")
    assert code == 1 and any("pods.create_cpu_us" in text for text in record["slower"])


def test_hollow_nodes_are_compared_too():
    code, record = compared("--base", str(ROOT), "--up", "5", "--idle", "1", "--worst", "50")
    assert (code, record["slower"]) == (0, [])
    assert {"idle.cpu_s_until_ready", "idle.idle_cpu_cores", "idle.rss_mb"} <= record["ratios"].keys()


def test_a_folder_that_is_no_checkout_is_refused(tmp_path):
    code, record = compared("--base", str(tmp_path))
    assert code == 2 and "no src/allot" in record["said"]
