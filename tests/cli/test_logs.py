"""One form of log lines for all commands, and how much of them there is."""

import json
import logging
import re
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from subprocess import CompletedProcess

import pytest

from allot.base import logs
from allot.cli.main import main
from e2e.process import allot

LINE = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z [DIWEC] allot(\.\w+)*: \S")


WAYS = {
    "plain": ((), {}),
    "error by environment": ((), {logs.VARIABLE: "error"}),
    "warning by flag": (("--log-level", "warning"), {logs.VARIABLE: "error"}),
    "json by flag": (("--log-format", "json"), {}),
    "json by environment": ((), {logs.FORMAT_VARIABLE: "json"}),
}

Ended = dict[str, Future[CompletedProcess[str]]]


@pytest.fixture(scope="module")
def without_etcd(tmp_path_factory) -> Iterator[Ended]:
    """A command that fails for want of an etcd, in all ways at once: it waits a while for one."""
    with ThreadPoolExecutor(len(WAYS)) as pool:
        yield {
            way: pool.submit(
                allot,
                *("apiserver", "--data-dir", str(tmp_path_factory.mktemp("d") / "d")),
                *("--store", "etcd://127.0.0.1:1", *flags),
                env=env,
            )
            for way, (flags, env) in WAYS.items()
        }


def test_a_line_has_its_time_its_level_and_who_says_it(without_etcd):
    """One line of the log, and one of its own."""
    done = without_etcd["plain"].result()
    assert done.returncode == 1
    first, last = done.stderr.splitlines()
    assert LINE.match(first) and " W allot.store.etcd" in first, first
    assert last.startswith("allot apiserver: etcd does not answer")


def test_the_level_comes_from_the_flag_then_from_the_environment(without_etcd):
    assert len(without_etcd["error by environment"].result().stderr.splitlines()) == 1
    assert len(without_etcd["warning by flag"].result().stderr.splitlines()) == 2


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


def test_for_programs_a_line_is_an_object_with_what_it_is_about(without_etcd):
    for way in ("json by flag", "json by environment"):
        line = json.loads(without_etcd[way].result().stderr.splitlines()[0])
        assert line["level"] == "warning" and line["module"].startswith("allot.store.etcd")
        assert set(line) == {"time", "level", "module", "message"}
    assert "'xml' is none of text, json" in allot("apiserver", "--log-format", "xml").stderr


def test_an_object_has_the_fields_that_were_given_and_the_trace():
    about = {"claim": "ns/c", "args": None, "exc_info": None}
    record = logging.makeLogRecord({"name": "allot.x", "levelname": "ERROR", "msg": "100 %", **about})
    record.created, record.msecs = 0.0, 7
    assert json.loads(logs._Objects().format(record)) == {
        "time": "1970-01-01T00:00:00.007Z",
        "level": "error",
        "module": "allot.x",
        "message": "100 %",
        "claim": "ns/c",
    }
    try:
        raise LookupError("why")
    except LookupError as why:
        record.exc_info = (type(why), why, why.__traceback__)
    assert "LookupError: why" in json.loads(logs._Objects().format(record))["trace"]


def test_lines_are_utc(monkeypatch):
    record = logging.LogRecord("allot.x", logging.WARNING, "f", 1, "text %s", ("a",), None)
    record.created, record.msecs = 0.0, 7
    assert logs._Lines().format(record) == "1970-01-01T00:00:00.007Z W allot.x: text a"
