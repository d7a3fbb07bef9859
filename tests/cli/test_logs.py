"""One form of log lines for all commands, and how much of them there is."""

import logging
import re

import pytest

from allot.base import logs
from allot.cli.main import main
from e2e.process import allot

LINE = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z [DIWEC] allot(\.\w+)*: \S")


def test_a_line_has_its_time_its_level_and_who_says_it(tmp_path):
    """Of a command that fails for want of an etcd: one line of the log, and one of its own."""
    done = allot("apiserver", "--data-dir", str(tmp_path / "d"), "--store", "etcd://127.0.0.1:1")
    assert done.returncode == 1
    first, last = done.stderr.splitlines()
    assert LINE.match(first) and " W allot.store.etcd" in first, first
    assert last.startswith("allot apiserver: etcd does not answer")


def test_the_level_comes_from_the_flag_then_from_the_environment(tmp_path, monkeypatch):
    arguments = ["apiserver", "--data-dir", str(tmp_path / "d"), "--store", "etcd://127.0.0.1:1"]
    monkeypatch.setenv(logs.VARIABLE, "error")
    assert len(allot(*arguments).stderr.splitlines()) == 1
    assert len(allot(*arguments, "--log-level", "warning").stderr.splitlines()) == 2


@pytest.mark.parametrize("command", ["apiserver", "controllers", "scheduler", "up"])
def test_a_level_that_is_none_is_refused(command, monkeypatch, capsys):
    with pytest.raises(SystemExit) as ended:
        main([command, "--log-level", "loud"])
    assert ended.value.code == 2
    assert "'loud' is none of debug, info, warning, error" in capsys.readouterr().err
    monkeypatch.setenv(logs.VARIABLE, "louder")
    with pytest.raises(SystemExit) as ended:
        main([command])
    assert ended.value.code == 2
    assert "'louder' is none of" in capsys.readouterr().err


def test_commands_that_answer_and_end_log_nothing_beside_what_they_say(tmp_path):
    config = tmp_path / "kubeconfig"
    config.write_text(
        "apiVersion: v1\nkind: Config\ncurrent-context: x\n"
        'clusters: [{name: x, cluster: {server: "https://127.0.0.1:1"}}]\n'
        "contexts: [{name: x, context: {cluster: x, user: x}}]\nusers: [{name: x, user: {}}]\n"
    )
    done = allot("explain", "pod/x", "--kubeconfig", str(config))
    assert done.returncode == 1
    (line,) = done.stderr.splitlines()
    assert line.startswith("allot explain: cannot reach the server at https://127.0.0.1:1"), line


def test_lines_are_utc(monkeypatch):
    record = logging.LogRecord("allot.x", logging.WARNING, "f", 1, "text %s", ("a",), None)
    record.created, record.msecs = 0.0, 7
    assert logs._Lines().format(record) == "1970-01-01T00:00:00.007Z W allot.x: text a"
