"""What the containers of a pod ask of device plugins, in the order in which they start. Pure.

A resource that is served by a claim (KEP-5004) is not asked for here: the pod's status says which request of
which claim stands for it, and what counts is a claim that the pod really uses on this node. An attempt at
another node may have left the name of one that is gone.
"""

from collections.abc import Callable, Collection

from allot.api import Quantity, core

from .loans import Asked


def asked(pod: core.Pod, claims: Collection[str], is_counted: Callable[[str], bool]) -> tuple[Asked, ...]:
    """`claims` are the names of those that the pod uses; `is_counted` knows the resources of plugins."""
    extended = pod.status.extended_resource_claim_status
    by_claim = {
        (one.container_name, one.resource_name)
        for one in (extended.request_mappings if extended is not None else ())
        if extended is not None and extended.resource_claim_name in claims
    }
    found = []
    for container, ends in (
        *((one, not one.is_sidecar) for one in pod.spec.init_containers),
        *((one, False) for one in pod.spec.containers),
    ):
        for resource, amount in sorted(container.resources.requests.items()):
            count = Quantity.parse(amount).as_int() if is_counted(resource) else 0
            if count and (container.name, resource) not in by_claim:
                found.append(Asked(container.name, resource, count, ends))
    return tuple(found)
