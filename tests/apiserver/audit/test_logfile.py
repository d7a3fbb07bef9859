"""The file of the audit log: its mode, its size, and what others do to it."""

import os
import stat

import pytest

from allot.apiserver.audit.logfile import LogFile

LINE = b"x" * 99 + b"\n"


@pytest.fixture
def path(tmp_path):
    return tmp_path / "audit.log"


def test_only_its_owner_may_read_it_even_if_it_was_there_before(path):
    path.write_bytes(b"before\n")
    path.chmod(0o644)
    file = LogFile(path, 1000, 2)
    file.append(LINE)
    file.close()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert path.read_bytes() == b"before\n" + LINE


def test_a_full_file_makes_room_and_so_many_are_kept(path):
    file = LogFile(path, 250, 2)
    for number in range(9):
        file.append(b"%d%b" % (number, LINE[1:]))
    file.close()
    kept = {name: (path.parent / name).read_bytes()[::100] for name in os.listdir(path.parent)}
    assert kept == {"audit.log": b"8", "audit.log.1": b"67", "audit.log.2": b"45"}
    assert all(stat.S_IMODE((path.parent / name).stat().st_mode) == 0o600 for name in kept)


def test_without_backups_a_full_file_goes(path):
    file = LogFile(path, 250, 0)
    for number in range(5):
        file.append(b"%d%b" % (number, LINE[1:]))
    file.close()
    assert os.listdir(path.parent) == ["audit.log"] and path.read_bytes()[::100] == b"4"


@pytest.mark.parametrize("how", ["moved", "removed", "moved and made anew", "cut"])
def test_what_others_do_to_the_file_is_noticed(path, how):
    file = LogFile(path, 10_000, 2)
    file.append(LINE)
    match how:
        case "moved":
            path.rename(f"{path}.old")
        case "removed":
            path.unlink()
        case "moved and made anew":
            path.rename(f"{path}.old")
            path.write_bytes(b"")
        case "cut":
            os.truncate(path, 0)
    file.append(b"y" + LINE[1:])
    file.close()
    assert path.read_bytes() == b"y" + LINE[1:]
    assert stat.S_IMODE(path.stat().st_mode) == 0o600 or how == "cut"


def test_a_second_server_is_refused(path):
    file = LogFile(path, 1000, 2)
    with pytest.raises(OSError, match="another server writes its audit log there"):
        LogFile(path, 1000, 2)
    file.close()
    LogFile(path, 1000, 2).close()


def test_what_is_no_file_is_refused_at_once(path):
    os.mkfifo(path)
    with pytest.raises(OSError):
        LogFile(path, 1000, 2)
    path.unlink()
    path.symlink_to("/dev/null")
    with pytest.raises(OSError, match="is not a regular file"):
        LogFile(path, 1000, 2)


def test_what_does_not_fit_is_taken_back_whole(path, monkeypatch):
    """A disk that takes a part and then no more."""
    plain = os.write

    def little(file, data):
        if len(data) <= 50:
            raise OSError(28, "No space left on device")
        return plain(file, data[:50])

    file = LogFile(path, 1000, 2)
    file.append(LINE)
    monkeypatch.setattr(os, "write", little)
    with pytest.raises(OSError):
        file.append(LINE + LINE[:49] + b"\n")
    monkeypatch.undo()
    file.append(b"y\n")
    file.close()
    assert path.read_bytes() == LINE + b"y\n"
