"""Tests of what only root may do."""

import os

import pytest


def needs_root(why: str) -> pytest.MarkDecorator:
    """Anybody else is told what was not tried; where CI is set it is tried all the same, and fails."""
    return pytest.mark.skipif(os.geteuid() != 0 and not os.environ.get("CI"), reason=why)
