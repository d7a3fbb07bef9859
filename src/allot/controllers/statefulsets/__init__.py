"""Stateful sets: pods with names of their own, which keep them.

    identity   which names, and how the pod of one is made
    plan       which pod comes or goes next, and how the set stands
    loop       does it

What it promises
    * SSET1  Every wanted ordinal has one pod, and no other ordinal has any once the set is at rest. A name is
             used again only when the pod that had it is gone: two of them never run at once.
    * OrderedReady: a pod is made when all before it are available, and taken away, one at a time and the
      last one first, when all that stay are.
    * A rolling update goes from the last ordinal to the partition, and takes a pod that serves only while
      fewer than `maxUnavailable` pods of the set are away.
    * Pods below the partition are made from the template that the set had before.

Resource claims from templates are made for each pod by the claim controller, as for any pod: a pod that comes
back under its name gets a new one. Volumes are not provisioned: pods name the volume claims that
`volumeClaimTemplates` would make, and nobody makes them (the server warns).
"""

from ..controller import Controller
from ..workloads import PODS, REVISIONS
from .loop import STATEFUL_SETS, make

CONTROLLER = Controller(
    "statefulset-controller", "statefulset-controller", (STATEFUL_SETS, REVISIONS, PODS), make
)

__all__ = ["CONTROLLER"]
