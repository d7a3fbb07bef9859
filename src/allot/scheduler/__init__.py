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

from .budgets import Budgets
from .capacity import Room, room_for
from .capacity_of_nodes import SOURCE
from .claim import ClaimInfo
from .cycle import Cycle, Unplaced
from .explaining import explained
from .framework import Plugin, Rejection
from .loop import Dependencies, Scheduler, run
from .mirror import CLAIMS, NODES, PODS, RESOURCE_CLASSES, SLICES, SOURCES, Mirror, News, PodTold, Stands
from .node import NodeInfo
from .parameter_watches import KindTold, ParameterWatches
from .parameters import kinds_of
from .plugins import deciding as deciding_plugins
from .plugins import default as default_plugins
from .pod import PodInfo
from .reach import places
from .reading import Gathered, Reading, Unread, gather, read, reading_of
from .resource_page import resource_page
from .rights import readable
from .settings import SCORE_MAX, Scoring, Settings, Strategy
from .simulation import Rejections, Simulation
from .snapshot import Snapshot, snapshot_for
from .why import Why, names_of, why_claim, why_pod
from .writes import Deallocate, Preempt, SearchOn

__all__ = [
    "CLAIMS",
    "NODES",
    "PODS",
    "RESOURCE_CLASSES",
    "SCORE_MAX",
    "SLICES",
    "SOURCE",
    "SOURCES",
    "Budgets",
    "ClaimInfo",
    "Cycle",
    "Deallocate",
    "Dependencies",
    "Gathered",
    "KindTold",
    "Mirror",
    "News",
    "NodeInfo",
    "ParameterWatches",
    "Plugin",
    "PodInfo",
    "PodTold",
    "Preempt",
    "Reading",
    "Rejection",
    "Rejections",
    "Room",
    "Scheduler",
    "Scoring",
    "SearchOn",
    "Settings",
    "Simulation",
    "Snapshot",
    "Stands",
    "Strategy",
    "Unplaced",
    "Unread",
    "Why",
    "deciding_plugins",
    "default_plugins",
    "explained",
    "gather",
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
    "why_pod",
]
