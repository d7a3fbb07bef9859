"""The life of a pod on a node, whatever the node is made of.

    stages         the life, row by row: read this first
    machine        the port: what a node does with a pod, and what it sees of it
    plan           which deed is next: one function, pure
    admission      who fits on a node, and who is refused
    claims         N1: the claims of a pod, and whether they are there for it
    holding        N2: what each node has prepared, and what it has said about it
    statuses       what is written about a pod; readiness: its conditions
    conditions     what a node says of itself
    hosts          which nodes, what is heard of them, and how each of them speaks
    pod_loop       reads, asks the plan, does the deed
    prepared_loop  says which claims a node has prepared
    renewals       whose lease is due; lease_loop renews, and says that nodes are ready
    loop           all of it together

What it promises
    * A pod starts only if all its claims are allocated, reserved for it, and on its node's
      list of prepared claims; the server is asked last (N1).
    * A claim leaves that list only after everything of the pod that uses it has ended and is
      unprepared (N2, N7), and the end of a pod is told after that.
    * A pod starts only if it fits beside the pods that its node has admitted; one that does not
      fails at once. Those that run are never refused.
    * After a restart it goes on: a stage is read from the API, the list and the machine (N5).
    * Work follows what changes. There is no task and no watch for a node, and none for a pod.
"""

from .claims import ClaimRef, NotReady, Unfinished
from .conditions import Conditions, awake, is_awake
from .hosts import (
    FOLLOWED,
    NODES,
    PREPARED,
    SHARED,
    Heard,
    Hosts,
    lists_prepared,
    own,
    owner_reference,
    pods_by_node,
)
from .lease_loop import LEASE_NAMESPACE, LeaseLoop, Renewing, lease
from .loop import lead
from .machine import (
    NOTHING,
    Container,
    DeviceHealth,
    Devices,
    Found,
    Machine,
    Observed,
    Rejected,
    Running,
    State,
    Terminated,
    Waiting,
)
from .pod_loop import PodLoop

__all__ = [
    "FOLLOWED",
    "LEASE_NAMESPACE",
    "NODES",
    "NOTHING",
    "PREPARED",
    "SHARED",
    "ClaimRef",
    "Conditions",
    "Container",
    "DeviceHealth",
    "Devices",
    "Found",
    "Heard",
    "Hosts",
    "LeaseLoop",
    "Machine",
    "NotReady",
    "Observed",
    "PodLoop",
    "Rejected",
    "Renewing",
    "Running",
    "State",
    "Terminated",
    "Unfinished",
    "Waiting",
    "awake",
    "is_awake",
    "lead",
    "lease",
    "lists_prepared",
    "own",
    "owner_reference",
    "pods_by_node",
]
