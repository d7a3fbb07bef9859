"""allot bench: what can be asked for, and what is said about the rest."""

import json
import subprocess
import sys

import pytest

from allot.bench import SHAPES
from allot.cli.main import main


def test_every_shape_is_listed_with_what_is_not_here(capsys):
    assert main(["bench", "scheduling", "--list"]) == 0
    lines = capsys.readouterr().out.splitlines()
    names = [line.split()[0] for line in lines]
    assert names[: len(SHAPES)] == list(SHAPES)
    assert any("SharedPodGroupResourceClaim" in line and "not here: pod groups" in line for line in lines)


def test_an_unknown_shape_is_refused(capsys):
    assert main(["bench", "scheduling", "--shape", "nosuch"]) == 2
    assert "SchedulingWithResourceClaimTemplate/nosuch" in capsys.readouterr().err


@pytest.mark.parametrize("number", ["0", "-1", "many"])
def test_a_fleet_has_at_least_one_node(number, capsys):
    with pytest.raises(SystemExit):
        main(["bench", "scheduling", "--nodes", number])
    assert "at least one" in capsys.readouterr().err


def test_the_last_line_is_one_object_with_the_figures(capsys):
    """The keys that tools rely on."""
    assert main(["bench", "scheduling", "--shape", "fast"]) == 0
    figures = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert figures["shape"] == "SchedulingWithResourceClaimTemplate/fast"
    assert figures["nodes"] == 2 and figures["pods"] == 10
    assert figures["pods_per_second"] > 0
    assert figures["time_to_bind_ms"].keys() == {"p50", "p99"}
    assert figures["writes_per_pod"]["create pods/binding"] == 1
    assert figures["peak_rss_mb"] > 0
    assert (figures["store"], figures["transport"]) == ("sqlite", "inprocess")
    assert figures["wrong"] == 0


def test_a_store_that_there_is_not_is_named(capsys):
    assert main(["bench", "scheduling", "--shape", "fast", "--store", "bogus"]) == 1
    assert "--store 'bogus': expected memory" in capsys.readouterr().err


def test_whoever_has_seen_enough_of_the_list_gets_no_complaint():
    """`allot bench scheduling --list | head -1`."""
    command = [sys.executable, "-m", "allot.cli", "bench", "scheduling", "--list"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as listing:
        assert listing.stdout is not None and listing.stderr is not None
        listing.stdout.close()
        assert listing.stderr.read() == b""
    assert listing.returncode == 141
