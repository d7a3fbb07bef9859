"""Disruption budgets: how many pods of a group may be away at once, counted.

    plan     how many must be healthy, how many are, and so how many may still go
    owners   how many pods the controllers of pods want
    loop     hears what may change that, and writes it into the budget's status

What it promises
    * PDB1  What a budget allows, taken in full, leaves it as many healthy pods as it desires.
    * PDB2  A charge is never undone: what an eviction writes meanwhile makes this write fail.
    * PDB3  A pod that was to go and is still there after two minutes counts again, at that moment.
    * PDB4  What cannot be counted allows nothing, and says why.
"""

from ..controller import Controller
from .loop import NEEDS, make

CONTROLLER = Controller("disruption-controller", "disruption-controller", NEEDS, make)

__all__ = ["CONTROLLER"]
