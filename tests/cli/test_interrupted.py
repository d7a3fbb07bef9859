"""Ctrl-C, a full disk, a file that cannot be written: one line, a status, and nothing done in vain."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from resource import RLIM_INFINITY, RLIMIT_FSIZE, setrlimit

import pytest

from e2e.process import allot

STARTED_S = 120.0
FORGOTTEN = "Exception ignored in"


def interrupted(arguments: list[str], folder: Path, has_begun: Callable[[str], bool]) -> tuple[int, str, str]:
    """Status, stdout and stderr of a command that got Ctrl-C in the middle, as its whole group does.

    `has_begun` is asked with what it has printed so far. Python itself forgets a Ctrl-C that comes while it
    cleans up (and says so): a person then types it again.
    """
    out, err = folder / "out", folder / "err"
    with (
        out.open("w") as stdout,
        err.open("a") as stderr,
        subprocess.Popen(
            [sys.executable, "-m", "allot.cli", *arguments],
            stdout=stdout,
            stderr=stderr,
            stdin=subprocess.DEVNULL,
            text=True,
            start_new_session=True,
        ) as process,
    ):
        try:
            end = time.monotonic() + STARTED_S
            while not has_begun(out.read_text() + err.read_text()):
                assert process.poll() is None and time.monotonic() < end, err.read_text()
                time.sleep(0.1)
            os.killpg(process.pid, signal.SIGINT)
            while process.poll() is None and time.monotonic() < end:
                time.sleep(0.1)
                if FORGOTTEN in err.read_text() and is_still_there(process):
                    err.write_text("")
                    os.killpg(process.pid, signal.SIGINT)
            process.wait(STARTED_S)
        finally:
            process.kill()
    return process.returncode, out.read_text(), err.read_text()


def is_still_there(process: subprocess.Popen[str]) -> bool:
    """Whether it goes on. One that is on its way out would be killed by another Ctrl-C."""
    try:
        process.wait(3)
    except subprocess.TimeoutExpired:
        return True
    return False


def after(seconds: float) -> Callable[[str], bool]:
    end = time.monotonic() + seconds
    return lambda said: time.monotonic() >= end


def test_one_world_is_interrupted(tmp_path: Path):
    status, _, err = interrupted(["sim", "--seed", "3", "--minutes", "6000"], tmp_path, after(8))
    assert (status, err) == (130, "allot sim: interrupted\n")


@pytest.mark.parametrize("jobs", ["1", "2"])
def test_many_worlds_are_interrupted_and_those_that_were_done_are_told(tmp_path: Path, jobs: str):
    """A night of seeds left nothing, and a traceback for every process."""
    file = tmp_path / "seeds.json"
    arguments = ["sim", "--seeds", "1-39", "--minutes", "20", "--pods", "20", "--jobs", jobs]
    command = [*arguments, "--json", str(file)]
    status, out, err = interrupted(command, tmp_path, lambda said: "1 of 39 worlds" in said)
    assert (status, err) == (130, "allot sim: interrupted\n")
    assert json.loads(file.read_text())["seeds"] >= 1
    assert "worlds, " in out.splitlines()[-2], out


@pytest.mark.parametrize("transport", ["inprocess", "socket"])
def test_a_benchmark_is_interrupted(tmp_path: Path, transport: str):
    arguments = ["bench", "scheduling", "--transport", transport, "--nodes", "20", "--pods", "100000"]
    status, out, err = interrupted(arguments, tmp_path, lambda said: "bound" in said)
    assert (status, out) == (130, "")
    last = err.splitlines()[-1]
    assert last == "allot bench: interrupted" and "Traceback" not in err, err


@pytest.mark.parametrize("where", ["missing/out.json", "folder"])
def test_a_file_that_cannot_be_written_is_said_before_the_work_is_done(tmp_path: Path, where: str):
    (tmp_path / "folder").mkdir()
    began_s = time.monotonic()
    done = allot("sim", "--seeds", "1-100000", "--json", str(tmp_path / where))
    assert done.returncode == 2 and time.monotonic() - began_s < STARTED_S
    assert f"cannot write {tmp_path / where}: " in done.stderr.splitlines()[-1]


def test_looking_whether_a_file_can_be_written_leaves_nothing_behind(tmp_path: Path):
    file = tmp_path / "out.json"
    assert allot("sim", "--seeds", "9-1", "--json", str(file)).returncode == 2
    assert not file.exists()


@pytest.mark.parametrize("command", ["up", "apiserver"])
@pytest.mark.parametrize("limit", [0, 5_000, 20_000, 60_000, 120_000])
def test_a_disk_that_is_full_from_the_start_is_one_line(tmp_path: Path, command: str, limit: int):
    """No file may grow beyond a limit: whichever of them meets it first is named."""
    done = subprocess.run(
        [sys.executable, "-m", "allot.cli", command, "--data-dir", str(tmp_path / "d"), "--port", "0"],
        capture_output=True,
        text=True,
        timeout=STARTED_S,
        preexec_fn=lambda: setrlimit(RLIMIT_FSIZE, (limit, RLIM_INFINITY)),
    )
    assert done.returncode == 1, done.stderr
    (line,) = done.stderr.splitlines()
    assert line.startswith(f"allot {command}: ") and str(tmp_path / "d") in line, line
