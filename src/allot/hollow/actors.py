"""Who acts: every node for itself, and one component for what no node may do alone.

A hollow node writes with the rights of `system:node:NAME`, so that the node authorizer and
node restriction judge it like any other. Reading all pods and all claims is beyond a node's
rights; the component reads them once for everybody.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from allot.api import Object, age
from allot.base import Clock
from allot.client import Client

from .registering import owner_reference
from .settings import Renewing

LEASE_NAMESPACE = "kube-node-lease"


@dataclass(frozen=True, slots=True)
class Actors:
    component: Client
    of_node: Callable[[str], Client]
    clock: Clock
    renewing: Renewing


def lease(node: Object, now: datetime, renewing: Renewing) -> dict[str, Any]:
    return {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {
            "name": node.name,
            "namespace": LEASE_NAMESPACE,
            "ownerReferences": [owner_reference(node)],
        },
        "spec": {"holderIdentity": node.name, **renewed(now, renewing)},
    }


def renewed(now: datetime, renewing: Renewing) -> dict[str, Any]:
    """What a renewal says. The duration too: it may have been another one before."""
    return {"leaseDurationSeconds": renewing.duration_s, "renewTime": age.micro_timestamp(now)}
