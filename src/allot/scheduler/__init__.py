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

from .capacity import Room, room_for
from .cycle import Cycle
from .loop import Dependencies, Scheduler, run
from .mirror import CLAIMS, PODS
from .plugins import default as default_plugins
from .pod import PodInfo
from .reading import Reading, Unread, read
from .resource_page import resource_page
from .settings import SCORE_MAX, Scoring, Settings, Strategy
from .simulation import Simulation
from .snapshot import Snapshot
from .why import Why, names_of, why_claim, why_pod

__all__ = [
    "CLAIMS",
    "PODS",
    "SCORE_MAX",
    "Cycle",
    "Dependencies",
    "PodInfo",
    "Reading",
    "Room",
    "Scheduler",
    "Scoring",
    "Settings",
    "Simulation",
    "Snapshot",
    "Strategy",
    "Unread",
    "Why",
    "default_plugins",
    "names_of",
    "read",
    "resource_page",
    "room_for",
    "run",
    "why_claim",
    "why_pod",
]
