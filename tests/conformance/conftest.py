"""What drivers try again and again they say at the level of information: it is shown where a test fails."""

import logging

import pytest


@pytest.fixture(autouse=True)
def _drivers_say_what_they_do(caplog: pytest.LogCaptureFixture):
    caplog.set_level(logging.INFO, logger="allot")
