"""What goes wrong with devices that are not there, and when. Pure: the time is handed in.

lose_s    in every second stretch of so many seconds one device of a pool is gone, each in its turn
flap_s    in every second stretch one device is unhealthy, each in its turn
slow_s    a prepare takes so much longer
fail      so large a part of prepares fails, 0 to 1
"""

import random
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Faults:
    lose_s: float = 0.0
    flap_s: float = 0.0
    slow_s: float = 0.0
    fail: float = 0.0

    def lost(self, devices: Sequence[str], at_s: float) -> str:
        """The device that is gone now, or nothing."""
        return _in_turn(devices, self.lose_s, at_s)

    def sick(self, devices: Sequence[str], at_s: float) -> str:
        return _in_turn(devices, self.flap_s, at_s)

    def fails(self, rng: random.Random) -> bool:
        return rng.random() < self.fail


def _in_turn(devices: Sequence[str], stretch_s: float, at_s: float) -> str:
    if not stretch_s or not devices:
        return ""
    turn, is_odd = divmod(int(at_s / stretch_s), 2)
    return devices[turn % len(devices)] if is_odd else ""
