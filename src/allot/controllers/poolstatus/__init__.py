"""Answers how the pools of a driver stand, once for each ResourcePoolStatusRequest.

    survey   what the caches say of the pools that were asked for: pure
    plan     what to do about a request: answer it, wait for its pools, delete it
    loop     does that

What it promises
    * An answer is given once and does not change: whoever wants another asks again.
    * Pools that are still being published are waited for, five times; then they are told as they are.
    * Answers are deleted an hour after they were given, questions that got none a day after they were
      asked. Each has its own moment; nothing is swept.

Alpha, behind DRAResourcePoolStatus: where that is off, nothing is followed and nothing runs.
"""

from ..controller import Controller
from .loop import make

CONTROLLER = Controller(
    "resourcepoolstatusrequest-controller", "resourcepoolstatusrequest-controller", (), make
)

__all__ = ["CONTROLLER"]
