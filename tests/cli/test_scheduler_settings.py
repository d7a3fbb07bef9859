"""What the flags of `allot scheduler` come to."""

import argparse

import pytest

from allot.cli import scheduler as command
from allot.scheduler import Settings


def settings_of(*arguments: str) -> Settings:
    parser = argparse.ArgumentParser()
    command.arguments(parser)
    return command.settings_of(parser.parse_args(arguments))


def test_without_flags_everything_is_as_it_is_by_default():
    assert settings_of() == Settings()


def test_each_time_limit_has_its_flag():
    found = settings_of("--driver-timeout", "5", "--binding-timeout", "7")
    assert (found.driver_timeout_s, found.binding_timeout_s) == (5.0, 7.0)


def test_flags_that_contradict_each_other_are_told():
    with pytest.raises(ValueError, match="contradict each other"):
        settings_of("--packed", "--scoring-strategy", "LeastAllocated")
