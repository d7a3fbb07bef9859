"""Nodes that fall silent: they are told to be unreachable, tainted, and their pods leave.

    health     a node that was not heard of for too long is not known to be ready
    taints     what the conditions of a node mean for pods
    eviction   when a pod must leave a node with NoExecute taints
    loop       listens for heartbeats, writes conditions and taints
    leaving    deletes pods when their time has come

What it promises
    * Silence is measured by this process's own clock, from what it has heard itself: clocks
      of nodes do not matter, and a new leader gives every node its full time.
    * How long a node may be silent follows the duration of its lease, within bounds: a node
      that says it will be heard of once in minutes is not given up on in one.
    * When most nodes fall silent at once, the fault is likely elsewhere: nobody is evicted.
    * A pod is deleted only after the server has confirmed that its node is still tainted.
"""

from ..controller import Controller
from ..workloads import PODS
from .leaving import NODES
from .loop import LEASES, make

CONTROLLER = Controller("node-lifecycle-controller", "node-controller", (NODES, LEASES, PODS), make)

__all__ = ["CONTROLLER"]
