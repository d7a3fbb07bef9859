"""The life of a claim, as a table: who gives it devices, what shows that, and how they come back.

Read from the claim and never stored beside it, so that a restart knows it again.

| claim | allocates | finalizer | its last reservation goes | the scheduler wants it elsewhere |
|---|---|---|---|---|
| structured | the scheduler | delete-protection | the allocation goes in the same write | clears it |
| classic, delayed | its driver | the driver's | the allocation stays | asks the driver |
| classic, immediate | its driver, at once | the driver's | the allocation stays | never |
| numeric, delayed | the scheduler | numeric | the allocation goes in the same write | leaves it |
| numeric, immediate | the scheduler, for its first pod | numeric | the allocation stays | never |
| foreign | somebody else | theirs | the allocation stays | clears it |

A claim is classic when it names a resource class (`shape`), and numeric when the scheduler has protected or
allocated it all the same: its class said so (KEP-4381), and may say otherwise later. A structured one is
foreign when it is allocated without our finalizer: it was allocated by somebody else, who also takes it back
when its users have left.
"""

from enum import Enum
from typing import Final, NamedTuple

from . import shape
from .limits import FINALIZER
from .types import ResourceClaim


class Ending(Enum):
    """What becomes of an allocation that nobody has reserved any more."""

    CLEAR = "clear"
    KEEP = "keep"
    REQUEST = "request"  # of its driver: `deallocationRequested`
    LEAVE = "leave"  # it to the claim controller, which sees that nobody uses it


class Lifecycle(NamedTuple):
    finalizer: str | None
    """Its presence means: allocated, or about to be. None: it is not ours to set or to remove."""
    on_last: Ending
    """What the claim controller does with the last reservation."""
    gives_back: Ending
    """How the scheduler takes back an idle allocation."""


STRUCTURED: Final = Lifecycle(FINALIZER, Ending.CLEAR, Ending.CLEAR)
NUMERIC_DELAYED: Final = Lifecycle(shape.NUMERIC_FINALIZER, Ending.CLEAR, Ending.LEAVE)
NUMERIC_IMMEDIATE: Final = Lifecycle(shape.NUMERIC_FINALIZER, Ending.KEEP, Ending.KEEP)
CLASSIC_DELAYED: Final = Lifecycle(None, Ending.KEEP, Ending.REQUEST)
CLASSIC_IMMEDIATE: Final = Lifecycle(None, Ending.KEEP, Ending.KEEP)
FOREIGN: Final = Lifecycle(None, Ending.KEEP, Ending.CLEAR)


def of(claim: ResourceClaim) -> Lifecycle:
    if shape.is_numeric(claim):
        return NUMERIC_IMMEDIATE if shape.is_immediate(claim) else NUMERIC_DELAYED
    if shape.is_classic(claim):
        return CLASSIC_IMMEDIATE if shape.is_immediate(claim) else CLASSIC_DELAYED
    is_foreign = claim.status.allocation is not None and FINALIZER not in claim.metadata.finalizers
    return FOREIGN if is_foreign else STRUCTURED


def is_protected(claim: ResourceClaim) -> bool:
    """Whether the finalizer of its lifecycle is there."""
    return of(claim).finalizer in claim.metadata.finalizers


def unprotected(claim: ResourceClaim) -> list[str]:
    """The finalizers that stay when that of its lifecycle goes."""
    return [one for one in claim.metadata.finalizers if one != of(claim).finalizer]
