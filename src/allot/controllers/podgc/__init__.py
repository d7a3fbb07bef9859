"""Pods that nobody will end: those of nodes that are gone, and finished ones beyond counting.

    lost          bound to a node that does not exist: after a while, and after the server
                  has confirmed it, the pod is told to have failed and deleted
    unscheduled   told to end and bound to no node: no agent will ever do it
    shut down     told to end on a node that is marked out of service
    finished      kept to be read, up to a number; then the oldest go

What it promises
    * A pod is never taken for lost on the word of a cache, nor because its node is new.
    * Everything follows from changes; nothing is looked for again and again.
"""

from ..controller import Controller
from ..workloads import PODS
from .loop import NODES, make

CONTROLLER = Controller("pod-garbage-collector-controller", "pod-garbage-collector", (PODS, NODES), make)

__all__ = ["CONTROLLER"]
