"""One line at the beginning of an outage and one at its end."""

import logging

import pytest

from allot.base import Outage
from allot.base.outage import QUIET_S


class Time:
    def __init__(self) -> None:
        self.s = 100.0

    def __call__(self) -> float:
        return self.s


def test_an_outage_is_said_once_and_so_is_its_end(caplog: pytest.LogCaptureFixture):
    now = Time()
    outage = Outage(logging.getLogger("allot.test"), "the server", now)
    outage.worked()
    for _ in range(50):
        outage.failed("nobody listens")
        now.s += 1
        outage.worked()  # some of what is asked is answered all the same
    now.s += QUIET_S
    outage.worked()
    outage.worked()
    said = [record.getMessage() for record in caplog.records]
    assert said == ["the server is away, trying on: nobody listens", "the server is back after 49 s"]


def test_another_outage_is_said_again(caplog: pytest.LogCaptureFixture):
    now = Time()
    outage = Outage(logging.getLogger("allot.test"), "the server", now)
    for _ in range(2):
        outage.failed("x")
        now.s += 2 * QUIET_S
        outage.worked()
    assert len(caplog.records) == 4
