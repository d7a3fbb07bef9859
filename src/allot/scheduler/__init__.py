"""Where each pod goes.

The cycle in five lines:

    a pod comes out of the queue with its signature: all that decides where it fits
    the board of that signature looks again at the nodes that moved, and has the best one
    what the pod needs there is held in the snapshot, so the next pod can be decided at once
    the writes follow: claims allocated and reserved, then the pod bound
    where nothing fits, something makes room, or the pod is told why and waits for what helps

Read in this order: `framework` (what a plugin is), `snapshot` (what it sees), `board` and
`cycle` (how it is decided), `queue` (who is next), `plugins`, then `mirror` and `intake` (how
news come in), and `binding`, `awaiting` and `loop`, which talk to the server. `reading`, `why`
and `capacity` answer questions from outside, `simulation` those that begin with "what if".
"""

from .binding import ClaimWritten
from .board import Board, Rank
from .budgets import Budgets
from .capacity import Room, room_for, why_closed
from .capacity_of_nodes import SOURCE
from .claim import ClaimInfo, is_newer
from .cycle import Cycle, Outcome, Placed, Unplaced
from .explaining import explained
from .framework import CycleState, Plugin, Rejection, Tier
from .loop import Dependencies, Scheduler, run
from .mirror import (
    CLAIMS,
    CLASSES,
    COMPUTE_LISTS,
    NODES,
    PODS,
    RESOURCE_CLASSES,
    SLICES,
    SOURCES,
    Mirror,
    News,
    PodTold,
    Stands,
)
from .node import NodeInfo
from .parameter_watches import KindTold, ParameterWatches
from .parameters import ParameterKind, Standing, kinds_of
from .plugins import deciding as deciding_plugins
from .plugins import default as default_plugins
from .pod import PodInfo
from .prospects import NOTHING_KNOWN, Known, LeftOff, Prospects
from .reach import places
from .reading import Gathered, Reading, Unread, gather, read, reading_of
from .recording import UNRECORDED, Learned, Recorder
from .resource_page import resource_page
from .rights import readable
from .settings import SCORE_MAX, Scoring, Settings, Strategy
from .simulation import Rejections, Simulation
from .snapshot import Snapshot, snapshot_for
from .why import Why, names_of, why_claim, why_pod
from .writes import (
    AllocateClaim,
    AskDrivers,
    AwaitDrivers,
    CreateExtendedClaim,
    Deallocate,
    DeleteClaim,
    EndTalk,
    KeepExtendedClaim,
    LeaveClaims,
    Negotiate,
    Preempt,
    Remedy,
    ReserveClaim,
    SearchOn,
    TakeCompute,
    Write,
)

__all__ = [
    "CLAIMS",
    "CLASSES",
    "COMPUTE_LISTS",
    "NODES",
    "NOTHING_KNOWN",
    "PODS",
    "RESOURCE_CLASSES",
    "SCORE_MAX",
    "SLICES",
    "SOURCE",
    "SOURCES",
    "UNRECORDED",
    "AllocateClaim",
    "AskDrivers",
    "AwaitDrivers",
    "Board",
    "Budgets",
    "ClaimInfo",
    "ClaimWritten",
    "CreateExtendedClaim",
    "Cycle",
    "CycleState",
    "Deallocate",
    "DeleteClaim",
    "Dependencies",
    "EndTalk",
    "Gathered",
    "KeepExtendedClaim",
    "KindTold",
    "Known",
    "Learned",
    "LeaveClaims",
    "LeftOff",
    "Mirror",
    "Negotiate",
    "News",
    "NodeInfo",
    "Outcome",
    "ParameterKind",
    "ParameterWatches",
    "Placed",
    "Plugin",
    "PodInfo",
    "PodTold",
    "Preempt",
    "Prospects",
    "Rank",
    "Reading",
    "Recorder",
    "Rejection",
    "Rejections",
    "Remedy",
    "ReserveClaim",
    "Room",
    "Scheduler",
    "Scoring",
    "SearchOn",
    "Settings",
    "Simulation",
    "Snapshot",
    "Standing",
    "Stands",
    "Strategy",
    "TakeCompute",
    "Tier",
    "Unplaced",
    "Unread",
    "Why",
    "Write",
    "deciding_plugins",
    "default_plugins",
    "explained",
    "gather",
    "is_newer",
    "kinds_of",
    "names_of",
    "places",
    "read",
    "readable",
    "reading_of",
    "resource_page",
    "room_for",
    "run",
    "snapshot_for",
    "why_claim",
    "why_closed",
    "why_pod",
]
