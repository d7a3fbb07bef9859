"""What a person may say about the stages of pods."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from allot.hollow.settings import BadWish, Stages, duration_s, wishes

STAGES = Stages(start_s=1, run_s=2, stop_s=3)


@pytest.mark.parametrize(
    ("text", "seconds"), [("0s", 0), ("250ms", 0.25), ("30s", 30), ("1h30m", 5400), ("1.5m", 90)]
)
def test_durations_are_written_as_people_write_them(text, seconds):
    assert duration_s(text) == seconds


@pytest.mark.parametrize(
    "text", ["", "5", "s", "-1s", "1s 2s", "1d", "٣s", "1s2", "1e3s", "nan", "9" * 400 + "h"]
)
def test_what_is_no_duration_is_refused_by_name(text):
    with pytest.raises(BadWish, match="run-time"):
        wishes({"hollow.allot.dev/run-time": text}, STAGES)


@pytest.mark.parametrize("text", ["", "-1", "256", "one", "1.0", "9" * 5000])
def test_what_is_no_exit_code_is_refused_by_name(text):
    with pytest.raises(BadWish, match="exit-code"):
        wishes({"hollow.allot.dev/exit-code": text}, STAGES)


def test_a_pod_that_wishes_nothing_gets_what_is_usual():
    usual = wishes({"other": "thing"}, STAGES)
    assert (usual.start_s, usual.run_s, usual.stop_s, usual.exit_code) == (1, None, 3, 0)


def test_every_stage_can_be_wished_for():
    own = {
        "hollow.allot.dev/start-delay": "5s",
        "hollow.allot.dev/run-time": "1m",
        "hollow.allot.dev/stop-delay": "10ms",
        "hollow.allot.dev/exit-code": "3",
    }
    wished = wishes(own, STAGES)
    assert (wished.start_s, wished.run_s, wished.stop_s, wished.exit_code) == (5, 60, 0.01, 3)


@given(st.text(max_size=12))
def test_no_text_is_worse_than_a_refusal(text):
    """S4."""
    try:
        assert duration_s(text) >= 0
    except ValueError as refused:
        assert "duration" in str(refused)
