"""The guides for authors of drivers and plugins are followed to the letter, with real processes in several
terminals."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from components import BIN, binary
from e2e.test_node import descendants
from tidy.documents import ROOT, blocks, section
from tidy.test_tour import README, expect, is_setting, run, shell_steps

GUIDE = ROOT / "docs" / "drivers.md"
PLUGIN_GUIDE = ROOT / "docs" / "device-plugins.md"
CLASSIC_GUIDE = ROOT / "docs" / "classic-drivers.md"
NUMERIC_GUIDE = ROOT / "docs" / "numeric-drivers.md"


def test_the_driver_in_the_documents_is_the_one_in_the_examples():
    example = (ROOT / "examples" / "driver.py").read_text()
    for document in (GUIDE, README):
        assert example in [block.text for block in blocks(document) if block.language == "python"]


def test_the_plugin_in_its_guide_is_the_one_in_the_examples():
    example = (ROOT / "examples" / "device_plugin.py").read_text()
    assert example in [block.text for block in blocks(PLUGIN_GUIDE) if block.language == "python"]


def test_the_driver_of_numeric_parameters_in_its_guide_is_the_one_in_the_examples():
    example = (ROOT / "examples" / "numeric" / "driver.py").read_text()
    assert example in [block.text for block in blocks(NUMERIC_GUIDE) if block.language == "python"]


def test_the_guide_says_how_a_driver_of_numeric_parameters_is_upgraded_and_downgraded():
    """4381-SKEW-03: what it publishes in, what it accepts, and how to choose."""
    rules = section(NUMERIC_GUIDE, "## Upgrade and downgrade")
    for said in ("oldest version", "every version", "--capacity-version"):
        assert said in rules


@pytest.mark.parametrize(
    "guide", [GUIDE, PLUGIN_GUIDE, NUMERIC_GUIDE, CLASSIC_GUIDE], ids=lambda path: path.stem
)
def test_the_guide_works_as_it_is_written(guide: Path):
    """4381-SEC-09: a driver of numeric parameters has no credential."""
    binary("kubectl")
    with TemporaryDirectory(prefix="gd") as short, ExitStack() as terminals:  # sockets lie below it
        home = Path(short)
        furnish(home)
        said_before = ""
        for step, expected in shell_steps(blocks(guide)):
            if expected == ["ready"]:
                terminals.enter_context(terminal(home, step))
                continue
            printed = run(home, said_before + step)
            said_before += "".join(f"{line}\n" for line in step.splitlines() if is_setting(line))
            expect(step, expected, printed)
        for pid in descendants(home / "worker" / "containers"):
            subprocess.run(["kill", "-9", str(pid)], check=False)


def furnish(home: Path) -> None:
    (home / "examples").symlink_to(ROOT / "examples")
    programs = home / ".venv" / "bin"
    programs.mkdir(parents=True)
    for name, words in (("allot", "-m allot.cli"), ("python", "")):
        program = programs / name
        program.write_text(f'#!/bin/sh\nexec {sys.executable} {words} "$@"\n')
        program.chmod(0o755)


@contextmanager
def terminal(home: Path, step: str) -> Iterator[None]:
    """Something that runs until it is interrupted. A cluster takes a free port, for others test here too."""
    script = step.replace("allot up", "allot up --port 0")
    with (home / "terminals.log").open("a") as log:
        running = subprocess.Popen(
            ["bash", "-c", script.replace(".venv/bin/allot up", "exec .venv/bin/allot up")],
            cwd=home,
            env={"PATH": f"{BIN}:/usr/bin:/bin", "HOME": str(home)},
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
        )
    assert running.stdout is not None
    assert running.stdout.readline() == "ready\n", (home / "terminals.log").read_text()
    try:
        yield
    finally:
        running.terminate()
        running.wait(30)
        running.stdout.close()
