"""Slices of drivers that are gone: WIPE1, WIPE2."""

from allot.nodeagent.wiping import Wiping


def test_a_driver_that_was_away_for_long_is_named_once():
    wiping = Wiping(30)
    wiping.note("gpu", False, 0)
    wiping.note("gpu", False, 20)  # still
    assert wiping.due(29.9) == []
    assert wiping.due(30) == ["gpu"]
    wiping.done("gpu")
    assert wiping.due(100) == []


def test_a_driver_that_came_back_in_time_is_not():
    """not removed if plugin restarts quickly"""
    wiping = Wiping(30)
    wiping.note("gpu", False, 0)
    wiping.note("gpu", True, 29)
    assert wiping.due(31) == []
    wiping.note("gpu", False, 40)
    assert wiping.due(69) == []
    assert wiping.due(70) == ["gpu"]


def test_a_wipe_that_failed_is_tried_again_after_longer_and_longer_waits():
    wiping, now_s, waits = Wiping(30), 30.0, []
    wiping.note("gpu", False, 0)
    for _ in range(12):
        wiping.failed("gpu", now_s)
        waits.append(wiping.next_s() - now_s)
        now_s = wiping.next_s()
    assert waits[:4] == [1, 2, 4, 8]
    assert waits[-1] == 300
    wiping.note("gpu", True, now_s)
    assert wiping.due(now_s + 1000) == []
    assert wiping.next_s() is None
