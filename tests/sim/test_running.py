"""Many seeds, and what they come to together."""

import json
from collections import Counter

import pytest

from allot.cli.main import main
from allot.sim import FAULTS, Outcome, Scope, Total, run_many


def outcome(seed, *wrong, struck=()):
    return Outcome(seed, tuple(wrong), Counter(struck), steps=1, pods=2, events=3, cpu_s=0.5)


def test_a_fault_that_never_struck_makes_a_run_fail():
    total = Total()
    total.add(outcome(1, struck=FAULTS[1:]))
    assert total.never == [FAULTS[0]]
    assert not total.good
    total.add(outcome(2, struck=FAULTS[:1]))
    assert total.good, "over the whole run every fault has struck"


def test_a_broken_promise_makes_a_run_fail_and_is_recorded():
    total = Total()
    total.add(outcome(7, "at rest: C3: x", struck=FAULTS))
    assert not total.good
    assert total.as_json()["broken"] == {"7": ["at rest: C3: x"]}


def test_two_processes_come_to_the_same_as_one():
    scope = Scope(seconds=120, pods=5)
    here, there = (run_many([1, 2], scope, jobs=jobs) for jobs in (0, 2))
    assert not here.broken
    assert (here.struck, here.pods, here.events) == (there.struck, there.pods, there.events)


def test_claims_for_extended_resources_are_misused():
    """A run in which nobody did would say nothing of C12."""
    total = run_many([1, 2, 3], Scope(seconds=900, pods=5, real_scheduler=True), jobs=0)
    assert not total.broken
    misused = total.as_json()["misused"]
    assert any(how.startswith("name") for how in misused) and any(how.startswith("list") for how in misused)


def test_the_command_writes_down_what_came_of_it(tmp_path, capsys):
    file = tmp_path / "result.json"
    status = main(["sim", "--seeds", "3-4", "--minutes", "0.1", "--pods", "1", "--json", str(file)])
    told, record = capsys.readouterr().out, json.loads(file.read_text())
    never = [name for name, count in record["faults"].items() if not count]
    assert status == (1 if never else 0)
    assert "2 worlds" in told and ("never struck in this run" in told) == bool(never)
    assert (record["seeds"], record["broken"]) == (2, {})
    assert set(record["faults"]) == set(FAULTS)


def test_the_command_plays_the_beginning_of_a_world(capsys):
    assert main(["sim", "--seed", "3", "--steps", "5", "--minutes", "10", "--pods", "10"]) == 0
    told = capsys.readouterr().out
    assert "seed 3: 5 steps" in told
    assert "faults: " in told


@pytest.mark.parametrize(
    ("option", "given"),
    [("--seeds", "5-1"), ("--seeds", "a-b"), ("--minutes", "0"), ("--minutes", "long"), ("--pods", "many")],
)
def test_what_makes_no_sense_is_named(option, given, capsys):
    with pytest.raises(SystemExit) as ended:
        main(["sim", option, given])
    assert ended.value.code == 2
    said = capsys.readouterr().err
    assert f"argument {option}: {given!r} is not" in said
