"""Deployments: pods of the newest template take the place of those before, step by step.

    views       a deployment's wishes as numbers
    revisions   which replica set has which template, and how they are numbered
    rollout     how large each replica set is next: rolling, recreated, resized
    status      counts and conditions
    loop        adopts, makes, sizes and forgets replica sets

The pods themselves are the replica sets' business. A deployment makes at most one set for
a template, because the set's name follows from it; and it sizes a set only in the
version it has seen, so a cache that is behind costs a conflict and nothing else.
"""

from ..controller import Controller
from .loop import DEPLOYMENTS, PODS, REPLICA_SETS, make

CONTROLLER = Controller(
    "deployment-controller", "deployment-controller", (DEPLOYMENTS, REPLICA_SETS, PODS), make
)

__all__ = ["CONTROLLER"]
