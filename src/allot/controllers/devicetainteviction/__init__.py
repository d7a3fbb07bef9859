"""Pods leave devices that are tainted with NoExecute.

    pools      which taints the newest slices of each pool put on a device
    plan       when a pod must leave, and for which taints
    agenda     everybody who must leave, by the rule that wants it
    forecast   what a rule would do: the dry run of a rule without effect
    status     what is written into a DeviceTaintRule
    pod_loop   deletes pods when their time has come
    rule_loop  finds the pods that a rule concerns, and keeps its status
    loop       which pod or rule a change touches; views: how claims, rules and devices meet

What it promises
    * A taint counts from its own `timeAdded`, so that a new leader does not begin anew.
    * A pod is deleted only after the server has confirmed that it still holds the device, and
      that the device still has the taint.
    * A pod holds a device through any claim that it names, those for its extended resources
      included.
    * Nothing is looked for again and again: a change finds its pods through indexes, and a
      wait is one entry in the work queue.
"""

from ..controller import Controller
from .loop import NEEDS, make

CONTROLLER = Controller(
    "device-taint-eviction-controller", "device-taint-eviction-controller", NEEDS, make
)  # fmt: skip

__all__ = ["CONTROLLER"]
