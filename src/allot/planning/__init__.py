"""Questions about a cluster that could be: as it was read, changed on a copy, decided by the real scheduler.

dump        a cluster as a file without secrets, and back
parameters  what is kept of objects with numeric parameters
manifests   objects from files as a server would store them; the pods of workloads
changes     what could be done to a cluster, and the sentences that say it
fictional   nodes that are not there, made from one that is
quotas      whether what comes would be admitted
future      a cluster to which it was done, before pods have found their places
unchosen    a pod as another one would be that is made in its place
whatif      and after they have
telling     the answer for people
defrag      how fragmented devices are, and the fewest moves after which something fits
"""

from . import defrag, future, manifests, telling
from .changes import Apply, BadChange, Change, parse
from .dump import BadDump, Dump, load, save, scrubbed, take, written
from .fictional import PASSING, Imagined, free_names, imagined
from .future import Cluster, belongs_to_node, comes_back, is_waiting, whole
from .manifests import BadManifest
from .parameters import ReadByTemplates
from .whatif import Answer, unbound, what_if

__all__ = [
    "PASSING",
    "Answer",
    "Apply",
    "BadChange",
    "BadDump",
    "BadManifest",
    "Change",
    "Cluster",
    "Dump",
    "Imagined",
    "ReadByTemplates",
    "belongs_to_node",
    "comes_back",
    "defrag",
    "free_names",
    "future",
    "imagined",
    "is_waiting",
    "load",
    "manifests",
    "parse",
    "save",
    "scrubbed",
    "take",
    "telling",
    "unbound",
    "what_if",
    "whole",
    "written",
]
