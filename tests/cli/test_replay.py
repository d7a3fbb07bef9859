"""`allot replay` and `allot scheduler --record`: what they answer and how they end."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from allot.cli.main import main
from allot.replay.lines import HEAD, encoded
from replay.recorded import tell
from replay.test_differs import spread
from replay.test_held_twice import seen_twice


def test_the_exit_status_says_whether_all_is_the_same(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    record = str(tmp_path / "record")
    tell(tmp_path / "record", spread)
    assert main(["replay", record]) == 0
    assert capsys.readouterr().out.endswith("decisions, none decided otherwise\n")
    assert main(["replay", record, "--packed"]) == 1
    assert "default/two: then on b, now on a" in capsys.readouterr().out


def test_a_device_that_two_claims_have_is_no_good_end(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    lines = [HEAD, *(encoded(one) for one in seen_twice())]
    (tmp_path / "record").write_bytes(b"".join(lines))
    assert main(["replay", str(tmp_path / "record")]) == 1
    assert "D1: gpu.example.com/a/gpu-0 is held by default/c and default/d" in capsys.readouterr().out


def test_as_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    tell(tmp_path / "record", spread)
    assert main(["replay", str(tmp_path / "record"), "-o", "json", "--packed"]) == 1
    found = json.loads(capsys.readouterr().out)
    (one,) = found["differences"]
    assert found["different"] == 1 and found["decisions"] >= 3
    assert (one["pod"], one["then"], one["now"]) == ("default/two", {"node": "b"}, {"node": "a"})
    assert one["why"] and one["at"]


@pytest.mark.parametrize("more", [[], ["-o", "json"]])
def test_what_cannot_be_read_is_one_line_and_status_2(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], more: list[str]
):
    assert main(["replay", str(tmp_path / "none"), *more]) == 2
    told = capsys.readouterr()
    assert not told.out
    assert told.err == f"allot replay: {tmp_path}/none cannot be read: No such file or directory\n"


def test_settings_that_contradict_each_other_are_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    words = ["replay", str(tmp_path / "r"), "--packed", "--scoring-strategy", "LeastAllocated"]
    assert main(words) == 2
    assert "contradict each other" in capsys.readouterr().err


@pytest.mark.parametrize("command", [["record"], ["scheduler", "--record"]])
def test_a_file_that_is_no_record_is_left_alone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], command: list[str]
):
    path = tmp_path / "notes"
    path.write_text("dear diary\n")
    assert main([*command, str(path), "--kubeconfig", str(tmp_path / "none")]) == 2
    assert "is no record" in capsys.readouterr().err
    assert path.read_text() == "dear diary\n"


def test_an_answer_that_finds_no_room_is_no_answer(tmp_path: Path):
    """Into a file on a full disk, say: neither a traceback nor the status of an answer."""
    path = tmp_path / "empty.record"
    path.write_bytes(b'{"kind":"Record","apiVersion":"allot.dev/v1"}\n')
    command = [sys.executable, "-m", "allot.cli", "replay", str(path)]
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, check=False)
    assert done.returncode == 74
    assert done.stderr == b"allot replay: the answer cannot be written: No space left on device\n"
