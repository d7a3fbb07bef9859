"""Replica sets: so many pods of one template, no more and no fewer.

    plan   how many to make, which to delete, and how the set stands
    loop   adopts and releases by selector, makes and deletes, writes the status

What it promises
    * RSET1  A cache that is behind does not make pods twice: what was made counts from the
             moment the server said so (`workloads.memory`).
    * RSET2  Pods of others are never touched; the set's own are deleted by uid.
    * RSET3  Once things are quiet, the set has exactly the pods it wants, and its status says so.
"""

from ..controller import Controller
from ..workloads import PODS
from .loop import REPLICA_SETS, make

CONTROLLER = Controller("replicaset-controller", "replicaset-controller", (REPLICA_SETS, PODS), make)

__all__ = ["CONTROLLER"]
