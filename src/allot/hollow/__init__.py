"""Nodes without a machine: registered, alive, and playing the kubelet for their pods.

    settings      how long stages last, and what a pod may wish by annotation
    registering   what must be written so that the API shows a fleet; register_loop writes it
    node_loop     renews leases, and says that nodes are ready
    life          what happens to a pod next, and when
    statuses, addresses   what is written about a pod
    pod_loop      reads caches, asks the above and `node`, writes as the pod's node
    actors        every node for itself, and one component for the rest
    loop          all of it together

What it promises
    * A pod starts only if all its claims are allocated, reserved for it, and on its node's
      list of prepared claims; the server is asked last (N1).
    * A claim leaves that list only after the pod has ended (N2).
    * A pod starts only if it fits beside the pods that its node has admitted; one that does not
      fails at once. Those that run are never refused.
    * After a restart it goes on: nothing is registered twice, pods that ran still run and
      end when they would have ended.
    * Work follows what changes. There is no task and no watch for a node; thousands of
      nodes cost a lease each minute.

Any Node with the label `hollow.allot.dev/fleet` is played, also one that a person makes. One
that is deleted is gone, until the next start if it belongs to the fleet.
"""

from .actors import Actors
from .loop import Process, run
from .settings import Renewing, Stages, duration_s

__all__ = ["Actors", "Process", "Renewing", "Stages", "duration_s", "run"]
