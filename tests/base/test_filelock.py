"""One holder at a time, and the others are told who it is."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from allot.base import FileLock, HeldByAnother


def test_a_lock_has_one_holder_and_says_who(tmp_path: Path):
    first = FileLock(tmp_path / "lock")
    with pytest.raises(HeldByAnother) as taken:
        FileLock(tmp_path / "lock")
    assert taken.value.holder == str(os.getpid())
    first.release()
    FileLock(tmp_path / "lock").release()


def test_a_lock_ends_with_its_process_however_that_ends(tmp_path: Path):
    program = f"import os; from allot.base import FileLock; FileLock({str(tmp_path / 'lock')!r}); os._exit(9)"
    for _ in range(2):
        assert subprocess.run([sys.executable, "-c", program]).returncode == 9


def test_a_lock_that_cannot_be_written_names_its_file(tmp_path: Path):
    with pytest.raises(OSError, match="lock"):
        FileLock(tmp_path / "missing" / "lock")


def test_a_lock_that_is_released_leaves_no_file(tmp_path: Path):
    FileLock(tmp_path / "lock").release()
    assert list(tmp_path.iterdir()) == []


def test_a_lock_on_a_file_that_was_removed_is_none(tmp_path: Path, monkeypatch):
    """Between opening the file and locking it, its holder gives it up and somebody else takes it."""
    path = tmp_path / "lock"
    first = FileLock(path)
    others: list[FileLock] = []
    plain = os.open

    def slow(*arguments):
        handle = plain(*arguments)
        monkeypatch.setattr(os, "open", plain)
        first.release()
        others.append(FileLock(path))
        return handle

    monkeypatch.setattr(os, "open", slow)
    with pytest.raises(HeldByAnother):
        FileLock(path)
    others[0].release()
    FileLock(path).release()
