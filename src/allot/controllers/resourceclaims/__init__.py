"""Claims: made from templates, kept for who needs them, and given back.

What it does, in the order of a claim's life:

    generating   a pod that refers to a template gets a claim of its own, recorded in its status
    pod_loop     does that; reserves allocated claims for pods that came without the scheduler
    releasing    reservations of pods that are gone, finished or replaced go; with the last one the
                 allocation goes, in the same write, and then the finalizer (C1)
    consumers    those of classic claims that are not pods: whether they still exist
    released     not before the node has let go of the devices (N2)
    claim_loop   does that; deletes generated claims that nobody needs any more
    counting     how often claims were made, or could not be
    loop         which pod or claim a change touches; memory: what the caches may not show yet

What it promises
    C1, C3, C4, C6 and N2 of the system's invariants. It never allocates. Consumers that are not
    pods are kept: of structured claims until whoever put them there removes them, of classic ones
    while their object exists.
"""

from ..controller import Controller
from .loop import NEEDS, make

CONTROLLER = Controller("resourceclaim-controller", "resource-claim-controller", NEEDS, make)

__all__ = ["CONTROLLER"]
