"""Who is told what a scheduler hears and decides, in the order in which it does: for records.

Where it sits
    The loop tells it, from the one task that changes the snapshot. So what it is told, done again
    in that order to an empty snapshot, is the scheduler's own at every decision: what it heard, what it
    decided, and how bindings ended. Beside these a scheduler remembers only its `Prospects`, which are
    told before each decision.
"""

from typing import Protocol

from allot.api import Gates

from .binding import ClaimWritten
from .cycle import Outcome
from .framework import CycleState
from .mirror import News
from .parameter_watches import KindTold
from .pod import PodInfo
from .prospects import Prospects
from .settings import Settings

Learned = News | KindTold | ClaimWritten


class Recorder(Protocol):
    """None of it may wait, or fail."""

    def begin(self, settings: Settings, gates: Gates) -> None:
        """A term begins: nothing is known yet."""

    def learned(self, what: Learned) -> None: ...

    def deciding(self, prospects: Prospects) -> None:
        """A pod is about to be decided, with this in mind."""

    def decided(self, state: CycleState, outcome: Outcome | Exception) -> None: ...

    def ended(self, pod: PodInfo, is_bound: bool) -> None:
        """A binding has ended. Where the pod is not bound, what was held for it is given back."""


class Unrecorded:
    def begin(self, settings: Settings, gates: Gates) -> None: ...

    def learned(self, what: Learned) -> None: ...

    def deciding(self, prospects: Prospects) -> None: ...

    def decided(self, state: CycleState, outcome: Outcome | Exception) -> None: ...

    def ended(self, pod: PodInfo, is_bound: bool) -> None: ...


UNRECORDED: Recorder = Unrecorded()
