"""The four things that can be said about a demand and a node.

They are values: "nothing fits" is an ordinary day, not an exception.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec

from allot.api import resource
from allot.base import Ids

if TYPE_CHECKING:
    from .capacity import Consumed
    from .demand import Alternative
    from .kind import Device
    from .question import Question


class Pick(msgspec.Struct, frozen=True):
    """One device of a plan."""

    alternative: "Alternative"
    device: "Device"
    consumed: "Consumed | None"  # what it takes of a device that can be shared


@dataclass(frozen=True, slots=True)
class Plan:
    """A choice of devices that satisfies every claim. Nothing is recorded anywhere yet."""

    picks: tuple[Pick, ...]
    question: "Question"
    cost: tuple[float, ...] = ()
    """What the policy thinks of it, less is better; comparable between nodes."""
    steps: int = 0

    def results(self, ids: Ids) -> tuple[resource.AllocationResult, ...]:
        """One AllocationResult a claim, in claim order, with fresh share ids."""
        from .result import written

        return written(self, ids)


@dataclass(frozen=True, slots=True)
class NoFit:
    """No choice exists on this node. The question can be asked why, device by device."""

    question: "Question"
    steps: int = 0


@dataclass(frozen=True, slots=True)
class Undecided:
    """The step budget ran out. Says nothing about whether the claims fit."""

    steps: int


@dataclass(frozen=True, slots=True)
class Refused:
    """The problem itself is wrong, as upstream's order of trying would find out."""

    error: str
    node_only: bool = False  # another node may still do
    device: str = ""  # where the error was met, if it is about one

    @property
    def cause(self) -> str:
        """The error without the device: the same words on every node where the cause is the same."""
        return self.error.replace(f" on device {self.device}", "") if self.device else self.error


Answer = Plan | NoFit | Undecided | Refused
