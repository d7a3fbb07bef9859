"""How to keep listening: from the server's words to the work that follows from them.

Read in the order in which a change travels:

    reflector    list and watch one resource; the contract of all of this is written there
    cache        the objects as last told, their indexes, and what each telling changed
    informer     a cache with its handlers; registry: one of them a resource and process
    owners       the index by owner; discovery: which resources there are
    workqueue    which key next, and when: a pure state machine
    aside        what somebody cannot read, logged once and counted
    reconciler   the loop that takes keys and makes things so
    events       telling people what was done, counted and bounded
    leading      one copy acts, the others wait

    async with Informers(client, rng) as informers:
        pods = informers.use(ResourceId("", "v1", "pods"))
        loop = Reconciler("pods", reconcile, clock, Telemetry(metrics))
        pods.handle(lambda change: loop.add(Key.of(change.object)))
        await informers.synced()
        await loop.run()
"""

from .aside import SetAside
from .cache import Added, Cache, Change, Deleted, Index, IndexFunction, Key, Updated
from .discovery import Catalogue, Served, discover, is_served
from .events import NORMAL, WARNING, Budget, Events
from .informer import Handler, Informer, ResourceId
from .leading import Election, lead_forever
from .owners import OWNER_INDEX, controller_of, owner_uids, owners
from .reconciler import ALARM_LEAST_S, WORKERS, Again, Reconciler, Telemetry
from .reflector import Pace, Report, SyncState
from .registry import Informers
from .workqueue import Limits, Taken, WorkQueue

__all__ = [
    "ALARM_LEAST_S",
    "NORMAL",
    "OWNER_INDEX",
    "WARNING",
    "WORKERS",
    "Added",
    "Again",
    "Budget",
    "Cache",
    "Catalogue",
    "Change",
    "Deleted",
    "Election",
    "Events",
    "Handler",
    "Index",
    "IndexFunction",
    "Informer",
    "Informers",
    "Key",
    "Limits",
    "Pace",
    "Reconciler",
    "Report",
    "ResourceId",
    "Served",
    "SetAside",
    "SyncState",
    "Taken",
    "Telemetry",
    "Updated",
    "WorkQueue",
    "controller_of",
    "discover",
    "is_served",
    "lead_forever",
    "owner_uids",
    "owners",
]
