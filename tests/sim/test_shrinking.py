"""A failing seed becomes a story that a person can read."""

from collections import Counter

import pytest

from allot.controllers.resourceclaims import releasing
from allot.sim import Cut, Report, Scope, run_one, shrink
from allot.sim.journal import Entry
from allot.sim.shrinking import promise_of

SHORT = Scope(seconds=600, pods=12)
TRIALS_MAX = 40


@pytest.fixture
def a_bug(monkeypatch):
    """Pods that are done keep what was reserved for them."""
    judge = releasing.judge

    def wrong(consumer, pod, is_known_gone):
        verdict = judge(consumer, pod, is_known_gone)
        return releasing.Verdict.KEEP if pod is not None and pod.is_done else verdict

    monkeypatch.setattr(releasing, "judge", wrong)


def test_a_planted_bug_becomes_a_short_story(a_bug):
    """Out of some sixty steps and hundreds of faults: a pod came, it ended, its claim stayed."""
    report = run_one(3, SHORT)
    assert not report.good, "the bug is not found any more: plant another"
    assert len(report.journal) > 100
    story = shrink(3, SHORT, lambda cut: run_one(3, SHORT, cut), report, TRIALS_MAX)
    assert story.trials <= TRIALS_MAX
    assert len(story.entries) <= 5
    assert any("C3" in text for text in story.wrong)
    told = story.text()
    assert "create" in told and "broken: at rest: C3: claim" in told
    again = run_one(3, SHORT, story.cut)
    assert tuple(again.wrong) == story.wrong, "a story can be played again"


def report_of(cut: Cut, wrong: list[str], entries: list[Entry]) -> Report:
    return Report(1, wrong, Counter(), 0, 0, 0, (), entries)


def test_a_story_without_what_breaks_it_is_not_taken():
    """Only the fault `late` breaks the promise: everything else goes, and it stays."""

    def simulate(cut: Cut) -> Report:
        wrong = ["revision 3: D1: two holders"] if "late" not in cut.without_faults else []
        return report_of(cut, wrong, [])

    story = shrink(1, SHORT, simulate, simulate(Cut()), 200)
    assert "late" not in story.cut.without_faults
    assert {"refused", "crash", "stale"} <= set(story.cut.without_faults)
    assert story.cut.steps == 0


def test_another_promise_is_another_story():
    """A part that breaks something else is not the same bug."""

    def simulate(cut: Cut) -> Report:
        return report_of(cut, ["at rest: C3: other"] if cut != Cut() else ["at rest: D1: this"], [])

    story = shrink(1, SHORT, simulate, simulate(Cut()), 20)
    assert story.cut == Cut()
    assert story.wrong == ("at rest: D1: this",)


@pytest.mark.parametrize(
    "text, name",
    [
        ("revision 7: C6: claim c was taken", "C6"),
        ("at rest: OWNED1: a: b", "OWNED1"),
        ("controllers a ended by itself: E", "controllers a ended by itself"),
    ],
)
def test_the_promise_is_read_from_what_a_checker_says(text, name):
    assert promise_of(text) == name
