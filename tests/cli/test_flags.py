"""Flags that make no sense: refused before anything starts, in one line that names the flag."""

import argparse
import re
import socket

import pytest

from allot.cli import flags
from allot.cli import scheduler as scheduler_command
from allot.cli.main import main
from allot.scheduler import Scoring, Strategy

NOWHERE = ["--kubeconfig", "/nowhere"]


@pytest.mark.parametrize(
    ("command", "flag", "value", "says"),
    [
        ("capacity", "--template", "", "is empty"),
        ("capacity", "--template", "../x", "cannot be the name of an object"),
        ("capacity", "--template", ".", "cannot be the name of an object"),
        ("capacity --template t", "--namespace", "..", "cannot be the name of a namespace"),
        ("capacity", "--claim", "", "is empty"),
        ("explain pod/p", "--namespace", "a/b", "cannot be the name of a namespace"),
        ("scheduler", "--metrics-port", "-1", "is not a port between 0 and 65535"),
        ("scheduler", "--metrics-port", "99999", "is not a port between 0 and 65535"),
        ("controllers", "--metrics-port", "99999", "is not a port between 0 and 65535"),
        ("scheduler", "--binding-timeout", "-5", "is not a number of seconds above 0"),
        ("scheduler", "--binding-timeout", "nan", "is not a number of seconds above 0"),
        ("scheduler", "--driver-timeout", "0", "is not a number of seconds above 0"),
        ("scheduler", "--name", "", "is empty"),
        ("scheduler", "--scoring-strategy", "Packed", "invalid choice"),
        ("scheduler", "--scoring-resource", "cpu=0", "is not NAME=WEIGHT"),
        ("scheduler", "--scoring-resource", "cpu=nan", "is not NAME=WEIGHT"),
        ("scheduler", "--scoring-resource", "=1", "is not NAME=WEIGHT"),
        ("scheduler", "--scoring-shape", "0=11", "is not PERCENT=SCORE"),
        ("scheduler", "--scoring-shape", "50", "is not PERCENT=SCORE"),
        ("scheduler", "--scoring-shape", "50=1,50=2", "do not grow"),
        ("scheduler", "--lease", "", "is empty"),
        ("scheduler", "--lease", "A B", "cannot be the name of an object"),
        ("scheduler", "--retry-period", "0", "is not a number of seconds above 0"),
        ("controllers", "--lease-duration", "1.5", "is not a whole number of seconds"),
        ("scheduler", "--feature-gates", "Nonsense=true", "unknown feature gate"),
        ("explain pod/p", "--feature-gates", "DRAAdminAccess=false", "is locked"),
        ("up", "--feature-gates", "DRADeviceTaints", "is not NAME=true or NAME=false"),
        ("controllers", "--kubeconfig", "", "is empty"),
        ("controllers", "--socket", "", "is empty"),
        ("up", "--data-dir", "", "is empty"),
        ("apiserver", "--data-dir", "", "is empty"),
        ("credentials ann", "--data-dir", " ", "is empty"),
        ("credentials ann", "--out", "", "is empty"),
    ],
)
def test_a_value_that_makes_no_sense_is_refused_at_once(command, flag, value, says, capsys):
    """An empty folder is a variable that was not set: keys and database went where one happened to be."""
    with pytest.raises(SystemExit) as ended:
        main([*command.split(), f"{flag}={value}"])
    assert ended.value.code == 2
    last = capsys.readouterr().err.splitlines()[-1]
    assert flag in last and says in last


def test_an_option_that_a_command_has_not_is_answered_by_that_command(capsys):
    """The usage that was shown was that of `allot`, which has no options to compare with."""
    with pytest.raises(SystemExit) as ended:
        main(["up", "--prot", "7000"])
    assert ended.value.code == 2
    said = capsys.readouterr().err
    assert "[--port PORT]" in said
    assert said.splitlines()[-1] == "allot up: error: unrecognized arguments: --prot 7000"


@pytest.mark.parametrize("command", ["explain", "capacity"])
def test_who_asks_a_cluster_is_told_that_the_gates_must_be_its_own(command, capsys):
    """The answer is worked out here, by gates that the server does not tell."""
    with pytest.raises(SystemExit):
        main([command, "--help"])
    said = " ".join(capsys.readouterr().out.split())
    assert "the cluster's own feature gates, as it was started with" in said


def test_the_feature_gates_of_the_help_can_be_given_as_they_stand_there(monkeypatch):
    """One that another gate needs was shown as switched off alone, which is refused."""
    monkeypatch.setenv("COLUMNS", "200")  # else the example is broken in two
    parser = argparse.ArgumentParser()
    flags.add_feature_gates(parser)
    (example,) = re.findall(r"e\.g\. (\S+)", parser.format_help())
    assert len(parser.parse_args(["--feature-gates", example]).feature_gates.changed) == 2


@pytest.mark.parametrize("command", ["scheduler", "controllers"])
@pytest.mark.parametrize("times", [("1", "5", "2"), ("15", "10", "10"), ("10", "10", "2")])
def test_times_of_an_election_that_cannot_work_together_are_refused(command, times, capsys):
    flags = ("--lease-duration", "--renew-deadline", "--retry-period")
    given = [part for pair in zip(flags, times, strict=True) for part in pair]
    assert main([command, *NOWHERE, *given]) == 2
    (said,) = capsys.readouterr().err.splitlines()
    assert all(flag in said for flag in flags)


def test_without_an_election_its_times_do_not_matter(capsys):
    times = ["--lease-duration", "1", "--renew-deadline", "5"]
    assert main(["scheduler", *NOWHERE, "--no-leader-elect", *times]) == 1
    assert "/nowhere" in capsys.readouterr().err


@pytest.mark.parametrize("command", ["scheduler", "controllers"])
def test_a_port_for_metrics_that_is_taken_is_one_line(command, tmp_path, capsys):
    access = tmp_path / "kubeconfig"
    access.write_text(
        "{current-context: c, contexts: [{name: c, context: {cluster: c}}], "
        "clusters: [{name: c, cluster: {server: 'https://127.0.0.1:9'}}]}"
    )
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        assert main([command, "--kubeconfig", str(access), "--metrics-port", port]) == 1
    where = f"--metrics-port: cannot listen on 127.0.0.1 port {port}"
    assert capsys.readouterr().err == (
        f"allot {command}: {where}: Address already in use (0 picks a free one)\n"
    )


@pytest.mark.parametrize("command", ["scheduler", "controllers"])
def test_a_socket_that_is_nowhere_is_named(command, tmp_path, capsys):
    """What is read first is the kubeconfig beside it, of which nobody had spoken."""
    where = tmp_path / "nope.sock"
    assert main([command, "--socket", str(where)]) == 1
    assert capsys.readouterr().err == (
        f"allot {command}: --socket {where}: no API server has run there, "
        f"for {tmp_path}/kubeconfig does not exist (--kubeconfig names another)\n"
    )


RATIO = "--scoring-strategy=RequestedToCapacityRatio"


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (["--packed", "--scoring-strategy", "LeastAllocated"], "contradict each other"),
        ([RATIO], "goes with"),
        (["--scoring-shape", "0=0,100=10"], "goes with"),
        (["--scoring-resource", "cpu=1", "--scoring-resource", "cpu=2"], "twice"),
    ],
)
def test_ways_of_scoring_that_do_not_go_together_are_refused(given, says, capsys):
    assert main(["scheduler", *NOWHERE, *given]) == 2
    assert says in capsys.readouterr().err


def test_a_way_of_scoring_can_be_given_in_flags():
    parser = argparse.ArgumentParser()
    scheduler_command.arguments(parser)
    shape = ["--scoring-shape", "0=0,70=10"]
    given = ["--scoring-resource", "example.com/gpu=5", "--scoring-resource", "cpu", RATIO, *shape]
    wanted = scheduler_command.scoring_of(parser.parse_args(given))
    assert wanted == Scoring(
        Strategy.REQUESTED_TO_CAPACITY_RATIO,
        (("example.com/gpu", 5.0), ("cpu", 1.0)),
        ((0.0, 0.0), (70.0, 10.0)),
    )
    assert scheduler_command.scoring_of(parser.parse_args([])) == Scoring()
    packed = scheduler_command.scoring_of(parser.parse_args(["--packed"]))
    assert packed == Scoring(Strategy.MOST_ALLOCATED)
