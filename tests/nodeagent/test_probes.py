"""How a probe stands, outcome by outcome."""

from hypothesis import given
from hypothesis import strategies as st

from allot.nodeagent import probes
from allot.nodeagent.probes import Outcome, Purpose, Standing, Verdict, advanced, at_first
from allot.nodeagent.views import Probe

PURPOSES = st.sampled_from(list(Purpose))
THRESHOLDS = st.integers(1, 5)


def after(purpose: Purpose, probe: Probe, outcomes: str) -> Standing:
    """`+` is a success, `-` a failure."""
    standing = at_first(purpose)
    for one in outcomes:
        standing = advanced(standing, probe, Outcome(one == "+"))
    return standing


def test_before_the_first_outcome_a_container_is_alive_not_ready_and_has_not_started():
    assert at_first(Purpose.LIVENESS).is_good
    assert at_first(Purpose.READINESS).verdict is Verdict.BAD
    assert at_first(Purpose.STARTUP).verdict is Verdict.UNKNOWN


def test_a_verdict_changes_after_so_many_equal_outcomes_in_a_row():
    probe = Probe(success_threshold=2, failure_threshold=3)
    assert not after(Purpose.READINESS, probe, "+-+").is_good
    assert after(Purpose.READINESS, probe, "++").is_good
    assert after(Purpose.READINESS, probe, "++--+--").is_good, "never three in a row"
    assert not after(Purpose.READINESS, probe, "++---").is_good


def test_a_startup_probe_is_over_either_way_and_kills_when_it_fails():
    probe = Probe(failure_threshold=2)
    assert not probes.is_over(Purpose.STARTUP, after(Purpose.STARTUP, probe, "-"))
    for outcomes, kills in (("-+", False), ("--", True)):
        standing = after(Purpose.STARTUP, probe, outcomes)
        assert probes.is_over(Purpose.STARTUP, standing)
        assert probes.kills(Purpose.STARTUP, standing) is kills


def test_readiness_kills_nobody():
    standing = after(Purpose.READINESS, Probe(failure_threshold=1), "-----")
    assert not probes.kills(Purpose.READINESS, standing)
    assert not probes.is_over(Purpose.READINESS, standing)


def test_the_grace_of_a_probe_comes_before_that_of_its_pod():
    assert probes.grace_s(Probe(termination_grace_period_seconds=1), 30) == 1.0
    assert probes.grace_s(Probe(termination_grace_period_seconds=0), 30) == 0.0
    assert probes.grace_s(Probe(), 30) == 30.0


@given(PURPOSES, THRESHOLDS, THRESHOLDS, st.text("+-", max_size=40))
def test_the_verdict_is_that_of_the_last_long_enough_run(purpose, successes, failures, outcomes):
    """An oracle that reads the whole history at once."""
    probe = Probe(success_threshold=successes, failure_threshold=failures)
    expected = at_first(purpose).verdict
    for end in range(1, len(outcomes) + 1):
        seen = outcomes[:end]
        if seen.endswith("+" * successes):
            expected = Verdict.GOOD
        elif seen.endswith("-" * failures):
            expected = Verdict.BAD
    assert after(purpose, probe, outcomes).verdict is expected
