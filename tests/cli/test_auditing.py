"""The flags of the audit log, given wrongly."""

import argparse

import pytest

from allot.cli import auditing
from allot.cli.main import main


def read(*arguments):
    parser = argparse.ArgumentParser()
    auditing.arguments(parser)
    return auditing.settings(parser.parse_args(arguments))


def test_sizes_are_read_as_the_api_writes_them(tmp_path):
    assert read() is None
    found = read("--audit-log", "f", "--audit-log-max-size", "2M", "--audit-log-backups", "0")
    assert (found.file_bytes_max, found.backups, found.level.value) == (2_000_000, 0, "changes")
    assert read("--audit-log", "f").file_bytes_max == 100 << 20


@pytest.mark.parametrize(
    "arguments, says",
    [
        (["--audit-log", ""], "the value is empty"),
        (["--audit-log-max-size", "1k"], "too small: at least 1Mi"),
        (["--audit-log-max-size", "big"], "is not a size such as 100Mi"),
        (["--audit-log-backups", "-1"], "is not a number of files"),
        (["--audit-log-backups", "many"], "is not a number of files"),
        (["--audit-level", "most"], "invalid choice"),
    ],
)
def test_what_cannot_be_meant_is_said(arguments, says, capsys):
    with pytest.raises(SystemExit):
        read(*arguments)
    assert says in capsys.readouterr().err


@pytest.mark.parametrize("command", ["apiserver", "up"])
def test_a_log_that_cannot_be_written_is_one_line_and_nothing_starts(tmp_path, command, capsys):
    log = tmp_path / "nowhere" / "audit.log"
    arguments = ["--data-dir", str(tmp_path / "d"), "--port", "0", "--audit-log", str(log)]
    assert main([command, *arguments]) == 1
    assert capsys.readouterr().err == f"allot {command}: {log}: No such file or directory\n"
    assert not (tmp_path / "d" / "kubeconfig").exists()
