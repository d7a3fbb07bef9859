"""Extended resources by DRA (KEP-5004): `example.com/gpu: 1`, served by devices. Pure.

    mapping    which device class stands behind a name
    asked      what the containers of a pod ask for: the pod's signature
    choice     who serves it on a node: device plugin, DRA or nobody
    requests   the device requests for the part of DRA, and which container gets which
    claim      the claim that carries them, the pod's status, and what an attempt left behind

In the order of a cycle

    asked = read_asked(pod.spec)                     # once a pod; equal for equal pods
    choice = Choice(asked, snapshot.extended)        # once a signature and state of the classes
    found = choice.on(node.allocatable)              # Delegation | Lacking, for each node
    devices = device_requests(asked, found)          # DeviceRequests | Refused, for each delegation
    claim = in_memory(pod, devices)                  # goes to the allocator with the others
    body(pod, devices), status_patch(...)            # what is written before the pod is bound

`name in delegation` is what the fit of ordinary resources must leave alone on that node.
"""

from .asked import NOTHING, Asked, Asking, Wish, read_asked
from .choice import Choice, Delegation, Lacking
from .claim import (
    IN_MEMORY_NAME,
    asks_for,
    body,
    claim_name,
    generate_name,
    in_memory,
    in_memory_uid,
    in_users_words,
    owner_of,
    pods_of,
    status_patch,
)
from .mapping import ExtendedResources, implicit_name
from .requests import DeviceRequests, device_requests, in_words

__all__ = [
    "IN_MEMORY_NAME",
    "NOTHING",
    "Asked",
    "Asking",
    "Choice",
    "Delegation",
    "DeviceRequests",
    "ExtendedResources",
    "Lacking",
    "Wish",
    "asks_for",
    "body",
    "claim_name",
    "device_requests",
    "generate_name",
    "implicit_name",
    "in_memory",
    "in_memory_uid",
    "in_users_words",
    "in_words",
    "owner_of",
    "pods_of",
    "read_asked",
    "status_patch",
]
