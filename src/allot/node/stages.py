"""The life of a pod on a node, row by row.

    seen ──► admitted ──► listed ──► prepared ──► running ──► ended ──► unprepared ──► unlisted ──► reported
      └── refused: there is no room, or its            claims go back before the end is told
          classic claims were never reserved for it

A stage is read, never stored: from the pod as the API shows it, from the list of prepared claims
as the server has accepted it, and from the machine. So a process that begins anew finds each pod
where it was, and whatever was done twice has the effect of once (N3, N5). Pods without claims skip
the rows about claims.

The order is what the promises need. Listed before prepared, and asked for once more in between: no
container starts with a claim that is not the pod's (N1). Ended before unprepared (N7), unprepared
before unlisted: a device is offered again only when nothing can touch it (N2). And the end of a
pod is told last, so that whoever acts on it, on servers without such a list too, finds its
devices free. Exit codes live in the machine until then.
"""

from collections.abc import Mapping
from enum import Enum
from typing import NamedTuple


class Stage(Enum):
    SEEN = "seen"
    ADMITTED = "admitted"
    LISTED = "listed"
    PREPARED = "prepared"
    RUNNING = "running"
    ENDED = "ended"
    UNPREPARED = "unprepared"
    UNLISTED = "unlisted"
    REPORTED = "reported"


# -- deeds ---------------------------------------------------------------------------------------


class Rest(NamedTuple):
    """Nothing will happen by itself."""


class Wait(NamedTuple):
    until_s: float


class Refuse(NamedTuple):
    """It ends before it began: there is no room for it."""


class Explain(NamedTuple):
    """It cannot start; its containers say why."""

    reason: str
    message: str


class List(NamedTuple):
    """The node says that it is about to prepare the pod's claims, and waits until that is accepted."""


class Prepare(NamedTuple):
    """Ask the server for the claims once more (N1), then the machine to prepare them."""


class Run(NamedTuple):
    """The machine does what is due, and says what it sees."""


class Report(NamedTuple):
    """Write the status: what has changed of containers that run, or the end."""


class Stop(NamedTuple):
    grace_s: float


class Unprepare(NamedTuple):
    """The machine gives the devices back."""


class Unlist(NamedTuple):
    """The claims go off the node's list, as far as no other pod of the node holds them."""


class Remove(NamedTuple):
    """Nothing of the pod is left on the machine."""


class Delete(NamedTuple):
    """The pod was deleted and has ended: it goes from the API, with grace 0."""


Deed = (
    Rest
    | Wait
    | Refuse
    | Explain
    | List
    | Prepare
    | Run
    | Report
    | Stop
    | Unprepare
    | Unlist
    | Remove
    | Delete
)


# -- the table -----------------------------------------------------------------------------------


class Row(NamedTuple):
    read_from: str
    deeds: tuple[type[Deed], ...]
    """What may follow. The first is the way on; the others are ways to wait, or back."""


TABLE: Mapping[Stage, Row] = {
    Stage.SEEN: Row("the pod is bound here, and is not counted", (Refuse,)),
    Stage.ADMITTED: Row("it is counted (ADMIT1)", (List, Unlist, Refuse, Explain, Wait, Rest)),
    Stage.LISTED: Row("the accepted list has its claims", (Prepare, Explain, Wait)),
    Stage.PREPARED: Row("the machine has its devices, or it needs none", (Run, Wait, Rest, Unprepare)),
    Stage.RUNNING: Row("the machine has its containers", (Run, Report, Wait, Rest, Stop)),
    Stage.ENDED: Row("nothing runs or will, and the machine has its devices", (Unprepare,)),
    Stage.UNPREPARED: Row("the machine has no devices, and the list still has claims", (Unlist,)),
    Stage.UNLISTED: Row("the accepted list lacks its claims", (Report,)),
    Stage.REPORTED: Row("the API shows the end, or the pod no more", (Remove, Delete, Rest)),
}
