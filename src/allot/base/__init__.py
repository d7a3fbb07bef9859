"""Ground floor: no word of the domain appears here."""

from .clock import Clock, SystemClock
from .ids import Ids, RandomIds
from .invariants import InvariantBroken, require

__all__ = ["Clock", "Ids", "InvariantBroken", "RandomIds", "SystemClock", "require"]
