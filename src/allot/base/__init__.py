"""Ground floor: no word of the domain appears here."""

from .clock import Clock, SystemClock
from .ids import Ids, RandomIds
from .invariants import InvariantBroken, require
from .loopwatch import LoopWatch
from .metrics import Counter, Gauge, Histogram, Metrics

__all__ = [
    "Clock",
    "Counter",
    "Gauge",
    "Histogram",
    "Ids",
    "InvariantBroken",
    "LoopWatch",
    "Metrics",
    "RandomIds",
    "SystemClock",
    "require",
]
