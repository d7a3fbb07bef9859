"""A hostile kubelet: is this a DRA driver, in whatever language it was written?

    cases     what the contract asks, case by case, and how it is tried: read this first
    stage     claims in the API, calls to the driver, CDI files: what cases have at hand
    devices   which devices a case may use
    player    plays the cases, one after another, and cleans up
    report    what was asked and what was seen, for people and for programs

A case passes, fails with what was seen, or could not be tried, and then says what it would need. What
was not tried is no pass.
"""

from .cases import CASES, Case
from .player import play
from .report import Outcome, Report, Verdict
from .stage import NoDriver, Settings

__all__ = ["CASES", "Case", "NoDriver", "Outcome", "Report", "Settings", "Verdict", "play"]
