"""What an answer may cost, in one coin for everything that takes time or memory.

A step is one device tried, some microseconds. Claims are written by strangers, so whatever
else grows with what they write is paid for as well: reading devices, evaluating selectors,
comparing what devices have in common, counting what remains, remembering what failed. That
work is done in small units, many to a step, and paid for before it is done. Nothing that is
bought for a budget can be larger than the budget, so it bounds memory too.
"""

from typing import Final

WORK_A_STEP: Final = 128
"""Units of work to a step: turns of a small loop, a fraction of a microsecond each. A search that
counts spends most of its budget on them, and then a hundred thousand steps are a few seconds."""


class BudgetSpent(Exception):
    """The answer is `Undecided`."""


class Budget:
    __slots__ = ("_left", "_limit")

    def __init__(self, steps: int) -> None:
        self._limit = self._left = steps * WORK_A_STEP

    @property
    def steps(self) -> int:
        """What was spent. What could not be paid for was not done either, and counts as one step."""
        return -(-min(self._limit - self._left, self._limit + 1) // WORK_A_STEP)

    @property
    def steps_left(self) -> int:
        return self._left // WORK_A_STEP

    def step(self) -> None:
        """One device is about to be tried. Raises BudgetSpent."""
        self._left -= WORK_A_STEP
        if self._left < 0:
            raise BudgetSpent

    def work(self, units: int) -> None:
        """Pay for units of work that are about to be done. Raises BudgetSpent."""
        self._left -= units
        if self._left < 0:
            raise BudgetSpent
