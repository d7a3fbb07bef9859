"""What a cycle asks the loop to write: values, in the order in which they must happen.

`binding` makes the writes; nothing here awaits. Before a pod is bound come the
`Write`s; where nothing fits, a `Remedy` may make room.
"""

from dataclasses import dataclass

from allot.api import resource

from .claim import ClaimInfo
from .extended import DeviceRequests
from .pod import PodInfo


@dataclass(frozen=True, slots=True)
class AllocateClaim:
    """Protect the claim from deletion, write its allocation and reserve it for the pod."""

    claim: ClaimInfo
    allocation: resource.AllocationResult


@dataclass(frozen=True, slots=True)
class ReserveClaim:
    """The claim has its devices: see to it that the pod is listed among those who use them."""

    claim: ClaimInfo


@dataclass(frozen=True, slots=True)
class CreateExtendedClaim:
    """Make the claim that serves the pod's extended resources, allocate it, and tell the pod."""

    uid: str  # the one the ledger knows until the server has given another
    devices: DeviceRequests
    allocation: resource.AllocationResult


@dataclass(frozen=True, slots=True)
class KeepExtendedClaim:
    """An earlier attempt made the claim that serves the pod's extended resources: tell the pod, and go on."""

    claim: ClaimInfo
    devices: DeviceRequests


Write = AllocateClaim | ReserveClaim | CreateExtendedClaim | KeepExtendedClaim


@dataclass(frozen=True, slots=True)
class Deallocate:
    """Take back a claim that nobody uses, from where this pod cannot use it."""

    claim: ClaimInfo


@dataclass(frozen=True, slots=True)
class DeleteClaim:
    """Remove an extended-resource claim that an earlier attempt left, and that cannot be gone on with."""

    claim: ClaimInfo


@dataclass(frozen=True, slots=True)
class Preempt:
    """Evict pods so that this one can have their place."""

    node: str
    victims: tuple[PodInfo, ...]


@dataclass(frozen=True, slots=True)
class SearchOn:
    """Nothing to be done was found so far, and not everything has been looked at."""


RoomMaking = Deallocate | DeleteClaim | Preempt
Remedy = RoomMaking | SearchOn
