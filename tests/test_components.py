"""Real programs for tests: what happens where there are none."""

import subprocess
import sys
from pathlib import Path

import pytest

import components

ROOT = Path(__file__).parents[1]


def test_a_missing_program_is_a_reason_to_skip_and_in_ci_a_reason_to_fail(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(components, "BIN", tmp_path)
    monkeypatch.delenv("CI", raising=False)
    with pytest.raises(pytest.skip.Exception, match="run `make components`"):
        components.binary("etcd")
    monkeypatch.setenv("CI", "true")
    with pytest.raises(pytest.fail.Exception, match="run `make components`"):
        components.binary("etcd")


def test_what_cannot_be_had_is_said_in_a_line_each_and_is_no_error(tmp_path: Path):
    """No apt, no pip, no network: the tool ends well and says why."""
    program = (
        f"import sys; sys.path.insert(0, {str(ROOT / 'tools')!r}); import components;"
        f"components.BIN = components.Path({str(tmp_path)!r}); components.shutil.which = lambda name: None;"
        "components.sys.executable = '/nonexistent/python'; sys.exit(components.main())"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env={"PATH": ""})
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert [line.split(" cannot be had ")[0] for line in lines] == [
        f"note: {name}" for name in ("etcd", "kubectl", "containerd", "containerd-2", "runc", "busybox")
    ]
    assert "this machine has no apt" in lines[0]


def test_fetching_again_is_quick_and_changes_nothing():
    program = components.binary("etcd")
    before = program.stat().st_mtime_ns
    done = subprocess.run([sys.executable, ROOT / "tools" / "components.py"], capture_output=True, text=True)
    assert done.returncode == 0 and "etcd 3." in done.stdout
    assert program.stat().st_mtime_ns == before
