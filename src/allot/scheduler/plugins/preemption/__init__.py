"""Preemption: who must go so that a pod of higher priority fits; pods with devices included.

    trial      what if these pods were gone? On a fork of the snapshot, with the cycle's checks
    budgets    how many pods may be disturbed
    price      what a set of victims costs, in upstream's order
    choosing   the cheapest victims on one node
    plugin     DefaultPreemption: which nodes are looked at, and when it is better to wait

What it promises
    EVICT1  Nobody of the same or a higher priority is evicted, and nobody by a pod whose
            preemptionPolicy is Never.
    EVICT2  Without the victims the pod fits, by the checks of the cycle; with any one of them
            back it does not.
    EVICT3  Where victims exist on some node they are found, within the bounds on work; of those
            that are found the cheapest are taken.
    EVICT4  Nobody is evicted for room that is coming anyway: pods that end, claims whose last
            pod is gone, victims of an earlier decision.
    EVICT5  Room that is made for a pod is not taken by pods of lower priority.

Upstream looks at victims of the node alone and cannot see devices come free. Here a device
that several nodes share may be freed by evicting a pod elsewhere.
"""

from .plugin import DefaultPreemption

__all__ = ["DefaultPreemption"]
