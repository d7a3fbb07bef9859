"""Every class of attack once, a tenth of its size: the server answers others, and stands.

How long others wait is measured by `bench/attack.py` on a quiet machine; here the limit only tells a
server that stalls from one that does not. What must never be is judged as strictly: a watch that
outlives its right, an answer that ordinary clients cannot read, a traceback, somebody else turned away.
"""

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SCRIPT = ROOT / "bench" / "attack.py"
WORST_MS = 30_000
MEMORY_MB = 500
CLASSES = (
    "quiet", "endless-head", "endless-trailer", "hanging-handshakes", "many-connections", "yaml-merges",
    "yaml-anchors", "long-keys", "duplicate-keys", "map-keys", "large-bodies", "large-yaml", "many-selectors",
    "grown-object", "defaulted-items", "heavy-updates", "unread-answers", "unread-watches", "selector-terms",
    "long-watches", "warnings",
)  # fmt: skip


def attacked(*options: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, str(SCRIPT), *options], capture_output=True, text=True, timeout=900
    )


@pytest.fixture(scope="module")
def record(tmp_path_factory) -> dict:
    out = tmp_path_factory.mktemp("attack") / "record.json"
    bounds = ("--worst-ms", str(WORST_MS), "--memory-mb", str(MEMORY_MB))
    done = attacked("--quick", "--json", str(out), *bounds)
    assert out.exists(), done.stderr[-4000:]
    found = json.loads(out.read_text())
    assert (done.returncode == 0) == (found["broken"] == []), "the exit status says it too"
    return found


@pytest.mark.parametrize("name", CLASSES)
def test_others_are_answered_and_the_server_stands(record, name):
    figures = record["classes"][name]
    assert figures["broken"] == []
    assert sum(figures["attacker"].values()) > 0, "nobody attacked"
    assert figures["probe"]["requests"] >= 30


def test_no_class_is_left_out(record):
    assert set(record["classes"]) == set(CLASSES)


def test_a_bound_that_nobody_keeps_is_broken():
    done = attacked("--quick", "--classes", "quiet", "--worst-ms", "0", "--memory-mb", "1")
    assert done.returncode == 1
    said = json.loads(done.stdout)["classes"]["quiet"]["broken"]
    assert len(said) == 2 and "waited" in said[0] and "MB" in said[1]


def test_a_class_that_is_not_there_is_refused():
    done = attacked("--classes", "nonsense")
    assert done.returncode == 2 and "no such class: nonsense" in done.stderr
