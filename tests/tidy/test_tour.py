"""The README and the page of `allot up` are run: what they tell people to type prints what they say.

A block of shell is followed by a block of text: each line of it must be somewhere in
what the commands print, with anything in place of a `…`.
"""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from components import BIN, binary
from tidy.documents import ROOT, Block, blocks

README = ROOT / "README.md"
TOUR = [block for block in blocks(README) if not (block.language == "sh" and block.text.startswith("make"))]


@pytest.fixture
def home(tmp_path):
    """What a reader has in the folder: the examples and `.venv/bin/allot`."""
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    programs = tmp_path / ".venv" / "bin"
    programs.mkdir(parents=True)
    allot = programs / "allot"
    allot.write_text(f'#!/bin/sh\nexec {sys.executable} -m allot.cli "$@"\n')
    allot.chmod(0o755)
    return tmp_path


def test_the_five_minutes_of_the_readme(home):
    follow(home, TOUR)


def test_the_page_of_a_cluster_in_one_command(home):
    follow(home, blocks(ROOT / "docs" / "up.md"))


def follow(home: Path, listed: list[Block]) -> None:
    """In order, in one shell after the other, as a reader would. The first step starts the cluster."""
    binary("kubectl")
    (start, _), *steps = shell_steps(listed)
    program, *words = start.split()
    assert [program, *words[:1]] == [".venv/bin/allot", "up"]
    server = start_server(home, words)
    try:
        said_before = ""
        for step, expected in steps:
            said_before += "".join(f"{line}\n" for line in step.splitlines() if is_setting(line))
            printed = run(home, said_before + step)
            expect(step, expected, printed)
    finally:
        server.terminate()
        assert server.wait(20) == 0


def expect(step: str, expected: list[str], printed: str) -> None:
    for line in expected:
        pattern = ".*".join(re.escape(part.strip()) for part in line.split("…"))
        assert re.search(pattern, printed), f"{step}\nshould print {line!r}, but printed\n{printed}"


@pytest.mark.parametrize("document", [README, ROOT / "docs" / "drivers.md"], ids=lambda path: path.name)
def test_the_tests_in_the_documents_pass(document, tmp_path):
    binary("kubectl")
    examples = [
        block.text for block in blocks(document) if block.language == "python" and "def test_" in block.text
    ]
    assert examples
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    for number, example in enumerate(examples):
        (tmp_path / f"test_example_{number}.py").write_text(example)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "."],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env={**os.environ, "PATH": f"{BIN}:{os.environ['PATH']}", "PYTHONPATH": str(ROOT / "examples")},
        timeout=180,
    )
    assert f"{len(examples)} passed" in done.stdout, done.stdout + done.stderr


@pytest.mark.parametrize("policy", ["first-fit", "least-waste", "spread"])
def test_the_example_problem_is_one(home, policy):
    printed = run(home, f".venv/bin/allot solve --policy {policy} examples/problem.json")
    assert '"verdict":"does-not-fit"' in printed


def shell_steps(listed: list[Block]):
    """Each block of shell, with the lines that its block of text expects."""
    for block, following in zip(listed, [*listed[1:], Block("", "")], strict=True):
        if block.language == "sh":
            yield block.text, following.text.splitlines() if following.language == "text" else []


def is_setting(line: str) -> bool:
    return re.match(r"(export )?[A-Z]+=", line) is not None


def run(home: Path, script: str) -> str:
    environment = {**os.environ, "PATH": f"{BIN}:{os.environ['PATH']}", "HOME": str(home)}
    done = subprocess.run(
        ["bash", "-c", script],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        cwd=home,
        env=environment,
        timeout=60,
    )
    return done.stdout.replace("\\n", "\n")


def start_server(home: Path, words: list[str]) -> subprocess.Popen[str]:
    """The first step; on a free port, because others may test on the same machine."""
    server = subprocess.Popen(
        [sys.executable, "-m", "allot.cli", *words, "--port", "0"],
        cwd=home,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert server.stdout is not None
    assert server.stdout.readline() == "ready\n"
    return server
