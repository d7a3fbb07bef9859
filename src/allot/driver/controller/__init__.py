"""The kit for a driver's half in the control plane, for classic claims (KEP-3063).

The author writes `allocate`, `deallocate` and `unsuitable_nodes` as plain functions over values; the rest is
done here.

    values           what the author reads and answers; read this first
    calling          Controller, what the author declares; calls, one at a time and to their end
    answers          what is due about a claim, and what a PodScheduling is to say: pure
    claims_loop      a claim at a time: immediate allocation, giving back, what was left half done
    scheduling_loop  a pod at a time: unsuitable nodes, and the allocation once a node is selected
    allocating       the order of writes, and what follows from a refusal
    claims           claims as last seen or written, each worked on by one task
    asking           a claim with its class and parameters; parameters: any object, by reference
    refreshing       answers that may be different by now
    working          everything put together, under a lease
    sessions         an autoscaler's what-if: pure; extender: the same over HTTP
    views            what is read of the API's objects
    run              a controller as a program

What it promises
    * The driver's finalizer is on a claim before the author is asked to do anything for it, and goes when
      nothing is held (C9): ALLOC1 to ALLOC4.
    * A claim in use is never given back, and one that was allocated is not moved (ANSWER2).
    * After a crash at any point what was begun is completed or undone; what was deleted by force is freed.
    * Nothing works twice on one claim, and what was written is not overlooked: CLAIMS1 to CLAIMS3.
"""

from allot.informers import ResourceId

from .calling import Controller
from .extender import extending
from .run import arguments, run
from .sessions import Snapshot
from .values import (
    Allocation,
    Answers,
    Ask,
    Claim,
    Class,
    NotUsable,
    Refused,
    Unsuitable,
    on_nodes,
    read,
    with_labels,
)
from .working import Around, Working, controlling, lease_of

__all__ = [
    "Allocation",
    "Answers",
    "Around",
    "Ask",
    "Claim",
    "Class",
    "Controller",
    "NotUsable",
    "Refused",
    "ResourceId",
    "Snapshot",
    "Unsuitable",
    "Working",
    "arguments",
    "controlling",
    "extending",
    "lease_of",
    "on_nodes",
    "read",
    "run",
    "with_labels",
]
