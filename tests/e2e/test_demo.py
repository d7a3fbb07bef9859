"""The demo shows what it promises, and says so when something is not true."""

import asyncio
import os
import re
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

import demo
from allot.fleet import CATALOGUE, Fleet
from onlooker import NotSeen
from story import Story

DEMO = Path(demo.__file__)


def test_every_promise_is_seen_and_the_cluster_stays_while_it_is_wanted():
    """With --keep: the summary, where to look, and an end when somebody asks for it."""
    process = subprocess.Popen(
        [sys.executable, str(DEMO), "--keep"],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    )
    try:
        assert process.stdout is not None
        printed = ""
        for line in process.stdout:
            printed += line
            if "KUBECONFIG=" in line:
                break
        kubeconfig = Path(line.partition("KUBECONFIG=")[2].strip())
        verdicts = re.findall(r"^   (seen|NOT SEEN|not reached) +(.*)$", printed, re.M)
        assert verdicts == [("seen", promise) for promise in demo.STEPS], printed
        assert kubeconfig.exists()
        process.send_signal(signal.SIGINT)
        assert process.wait(20) == 0
        assert not kubeconfig.exists()
    finally:
        process.kill()
        process.wait(5)


def test_without_partitions_in_the_fleet_it_fails_and_says_how_the_pods_stand(capsys):
    """A fleet like the demo's, less the machines whose GPUs can be had in parts."""
    mixed = CATALOGUE["mixed"]
    builds = tuple(build for build in mixed.builds if build.name != "mig")
    assert not asyncio.run(demo.run(Fleet("mixed", replace(mixed, builds=builds), 3), patience_s=5))
    printed = capsys.readouterr().out
    assert re.search(r"NOT +not within 5 s: left and right run", printed)
    assert re.search(r"pod left is on no node:[^;]*mig\.example\.com", printed)
    verdicts = re.findall(r"^   (seen|NOT SEEN|not reached) ", printed, re.M)
    assert verdicts == ["seen"] * 4 + ["NOT SEEN"] + ["not reached"] * 5


def test_a_wrong_answer_is_a_failure_and_what_comes_after_it_is_not_played(monkeypatch, capsys, allot_server):
    async def wrong(demo):
        raise NotSeen("it is otherwise")

    async def never(demo):
        raise AssertionError("played after a promise was broken")

    monkeypatch.setattr(demo, "STEPS", {"first": wrong, "second": never})
    story = Story(["first", "second"])
    allot_server.run(demo.Demo(Path(), allot_server.client(), story, 1.0).play())
    assert not story.summary()
    assert "it is otherwise" in capsys.readouterr().out


@pytest.mark.parametrize(("seen", "all_of_it"), [(["one", "two"], True), (["one"], False), ([], False)])
def test_only_if_every_promise_was_seen_all_is_well(seen, all_of_it):
    story = Story(["one", "two"])
    for promise in seen:
        story.end(promise)
    assert story.summary() == all_of_it
