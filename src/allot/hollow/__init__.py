"""Nodes without a machine: a fleet of them, and what stands in for the machine.

    settings      how long stages last, and what a pod may wish by annotation
    registering   what must be written so that the API shows a fleet; register_loop writes it
    life          the states of a pod's containers, which follow from times
    machine       what `node` asks of a machine, out of those; addresses for its pods
    actors        every node for itself, and one component for the rest
    loop          a fleet, registered and led

How a pod lives on a node is written in `node`, and what that promises holds here. Besides
    * After a restart it goes on: nothing is registered twice, pods that ran still run and
      end when they would have ended.
    * Work follows what changes. There is no task and no watch for a node; thousands of
      nodes cost a lease each minute.

Any Node with the label `hollow.allot.dev/fleet` is played, also one that a person makes. One
that is deleted is gone, until the next start if it belongs to the fleet.
"""

from allot.node import Renewing

from .actors import Actors
from .loop import Process, run
from .machine import HollowMachine
from .settings import Stages, Wishes

__all__ = ["Actors", "HollowMachine", "Process", "Renewing", "Stages", "Wishes", "run"]
