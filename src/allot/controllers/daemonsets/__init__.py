"""Daemon sets: one pod on every node that suits.

    suiting     which nodes, and how a pod is made for one
    plan        which nodes lack a pod, which pods go, and rolling updates
    loop        does it

Pods are made for a node and bound by the scheduler, like all others.

What it promises
    * DSET1  Once things are quiet, every node that suits has one pod of the set, of its newest template.
    * DSET2  An update leaves no more nodes than its limit without an available pod.
"""

from ..controller import Controller
from ..workloads import PODS, REVISIONS
from .loop import DAEMON_SETS, NODES, make

CONTROLLER = Controller(
    "daemonset-controller", "daemon-set-controller", (DAEMON_SETS, REVISIONS, NODES, PODS), make
)

__all__ = ["CONTROLLER"]
