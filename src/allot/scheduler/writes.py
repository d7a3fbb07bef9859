"""What a cycle asks the loop to write: values, in the order in which they must happen.

`binding` makes the writes; nothing here awaits. Before a pod is bound come the
`Write`s; where nothing fits, a `Remedy` may make room.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from allot.allocation import Node
from allot.api import compute, resource

from .claim import ClaimInfo
from .extended import DeviceRequests
from .negotiating import Want
from .pod import PodInfo
from .talk import Talk


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


@dataclass(frozen=True, slots=True)
class Negotiate:
    """The drivers of these claims are to allocate them for the node, and are waited for. Comes before all
    other writes: it takes long and may fail."""

    wants: tuple[Want, ...]
    node: Node
    nodes: tuple[str, ...]  # that drivers are asked about
    talk: Talk | None  # as it was heard


@dataclass(frozen=True, slots=True)
class EndTalk:
    """Nothing is left to be said about the pod: its PodScheduling goes, once it is bound."""

    talk: Talk


@dataclass(frozen=True, slots=True)
class TakeCompute:
    """The pod is given these compute resources of its node, by container: part of the binding itself."""

    given: Mapping[str, compute.records.Given]


Write = (
    TakeCompute | AllocateClaim | ReserveClaim | CreateExtendedClaim | KeepExtendedClaim | Negotiate | EndTalk
)


def taken(writes: Iterable[Write]) -> Mapping[str, compute.records.Given]:
    """The compute resources that a binding gives, by container."""
    return next((one.given for one in writes if isinstance(one, TakeCompute)), {})


def as_placed(pod: PodInfo, writes: Iterable[Write]) -> PodInfo:
    """The pod with what it is given: what it takes of its node is what was chosen, not what was asked for."""
    given = taken(writes)
    return pod.taking(given) if given else pod


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
class LeaveClaims:
    """Give up what the pod has reserved: it cannot have the rest, and another may wait for it (P2)."""

    claims: tuple[ClaimInfo, ...]


@dataclass(frozen=True, slots=True)
class AskDrivers:
    """Ask the drivers of the pod's claims which of these nodes will not do."""

    nodes: tuple[str, ...]
    talk: Talk | None  # as it was heard


@dataclass(frozen=True, slots=True)
class AwaitDrivers:
    """They were asked. Nobody makes room before they have answered."""


@dataclass(frozen=True, slots=True)
class SearchOn:
    """Nothing to be done was found so far, and not everything has been looked at."""


RoomMaking = Deallocate | DeleteClaim | LeaveClaims | AskDrivers | Preempt
Remedy = RoomMaking | AwaitDrivers | SearchOn
