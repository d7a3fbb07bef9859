"""A few made-up worlds; `allot sim --seeds A-B` runs more of them, and longer ones."""

import hashlib
import subprocess
import sys

from allot.sim import HOUR_S, PODS, Cut, Scope, run_many, run_one
from allot.sim.checkers.reading import allocation
from allot.sim.lots import Lots
from allot.sim.together import Together

SHORT = Scope(seconds=600, pods=15)


def test_every_promise_holds_while_every_fault_strikes():
    """Whole hours with fifty pods. A fault that never strikes tests nothing."""
    total = run_many([1, 2], Scope(), jobs=0)
    assert not total.broken
    assert not total.never
    assert (Scope().seconds, Scope().pods) == (HOUR_S, PODS) == (3600, 50)
    assert total.pods >= 2 * PODS


def test_every_promise_holds_with_the_real_scheduler():
    """In three copies, with drivers that publish anew, parts of cards and extended resources."""
    report = run_one(2, Scope(real_scheduler=True))
    assert report.good, report.wrong
    assert report.pods >= PODS


def test_every_promise_holds_with_classic_claims():
    """With drivers that are not to be relied on, and a scheduler that remembers nothing."""
    report = run_one(3, Scope(pods=10, real_scheduler=True, agents=0.0, classic=1.0))
    assert report.good, report.wrong
    talks = [one for one in report.history if one.resource == "podschedulings"]
    assert any((one.fields.get("status") or {}).get("resourceClaims") for one in talks)
    assert any((one.fields.get("spec") or {}).get("selectedNode") for one in talks)


def test_every_promise_holds_with_an_autoscaler():
    """In two copies, with a provider that is not to be relied on: groups grow, and nodes go again."""
    alone = {"agents": 0.0, "classic": 0.0, "compute": 0.0, "numeric": 0.0}
    report = run_one(1, Scope(pods=10, real_scheduler=True, autoscaler=1.0, **alone))
    assert report.good, report.wrong
    asked = [one.type for one in report.history if one.resource == "provider"]
    assert {"RESIZE", "BEGUN", "REMOVE"} <= set(asked)
    assert asked.count("TERM") > 1  # another copy led in between


def test_every_promise_holds_where_one_server_has_transactions_and_another_has_none():
    """Then a claim is given back and gone at once, or in steps."""
    assert Together.drawn(Lots(9).draw("transactions")[0]) is Together.SOME
    report = run_one(9, Scope(seconds=600, pods=8, agents=0.0, classic=0.0, numeric=0.0))
    assert report.good, report.wrong
    gone = [one for one in report.history if one.resource == "resourceclaims" and one.type == "DELETED"]
    assert {allocation(one.fields) is None for one in gone} == {True, False}


def test_so_many_steps_are_played_as_were_asked_for():
    report = run_one(4, SHORT, Cut(steps=12))
    assert report.good, report.wrong
    assert report.steps == 12


def test_a_story_can_go_without_a_step_or_a_fault():
    whole = run_one(4, SHORT)
    assert whole.struck["refused"] and whole.struck["crash"]
    part = run_one(4, SHORT, Cut(without_steps={0}, without_faults={"refused", "crash"}))
    assert part.steps == whole.steps - 1
    assert not part.struck["refused"] and not part.struck["crash"]


PROGRAM = """
import hashlib
from allot.sim import Scope, run_one
report = run_one(5, Scope(seconds=600, pods=15))
story = "".join(f"{s.revision} {s.type} {s.object.raw!r}" for s in report.history)
told = "".join(map(str, report.journal))
print(hashlib.sha256((story + told).encode()).hexdigest(), sorted(report.struck.items()), report.wrong)
"""


def test_a_seed_is_the_same_world_in_every_process():
    """VTIME2, to the byte, whatever the interpreter's hash seed is."""
    worlds = {
        subprocess.run(
            [sys.executable, "-c", PROGRAM],
            capture_output=True,
            text=True,
            check=True,
            env={"PYTHONHASHSEED": seed},
        ).stdout
        for seed in ("1", "2")
    }
    assert len(worlds) == 1
    assert hashlib.sha256(b"").hexdigest() not in worlds.pop()
