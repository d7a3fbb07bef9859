"""What must pass before anything lands."""

import subprocess
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_a_landing_runs_every_test_those_with_whole_clusters_included():
    """3063-TEST-06: before each merge, all of them, and never a part."""
    command = (ROOT / ".ci" / "run").read_text().strip().splitlines()[-1]
    assert command == "make test"
    assert f"`{command}` is the test suite" in (ROOT / "README.md").read_text()
    planned = subprocess.run(["make", "-n", *command.split()[1:]], cwd=ROOT, capture_output=True, text=True)
    (pytest,) = [line for line in planned.stdout.splitlines() if "-m pytest" in line]
    assert pytest.split()[1:] == ["-m", "pytest", "-n", "3", "--dist", "worksteal"], (
        "of no folder, no mark and no pattern"
    )
    settings = (ROOT / "pyproject.toml").read_text()
    assert 'testpaths = ["tests"]' in settings
    assert "norecursedirs" not in settings and "--ignore" not in settings and "--deselect" not in settings
    assert any((ROOT / "tests" / "e2e").glob("test_classic*.py"))
