"""How fast it schedules, measured end to end: `allot bench scheduling`.

    catalogue    every workload by its name: a table of shapes
      shape        a workload as data        scenes, objects: what it is made of
    measuring    one measurement, from an empty store to the verdict
      place        the API server, here or in a process of its own
      furnishing   nodes, slices, and claims that are allocated before
      cast         controllers and scheduler at work
      load         pods come, are bound, and leave
      following    what the server said meanwhile, kept in files
      judging      the checkers read it: was every promise kept?
      writes, processes, profiling   what it cost
    generations  the same pods with classic, numeric or structured claims (bench/classic.py, bench/numeric.py)

A shape says what happens and nothing here decides how: the parts are the ones that a
cluster is made of, with their own identities and rights.
"""

from .cast import CASTS, Fallen, Scheduler, Wanted
from .catalogue import NOT_HERE, SHAPES, UnknownShape, find
from .load import STALL_S, Stalled
from .measuring import WINDOW_S, Report, Settings, measure
from .place import TRANSPORTS, Connect, NotReady
from .shape import Amount, Scene, Shape

__all__ = [
    "CASTS",
    "NOT_HERE",
    "SHAPES",
    "STALL_S",
    "TRANSPORTS",
    "WINDOW_S",
    "Amount",
    "Connect",
    "Fallen",
    "NotReady",
    "Report",
    "Scene",
    "Scheduler",
    "Settings",
    "Shape",
    "Stalled",
    "UnknownShape",
    "Wanted",
    "find",
    "measure",
]
