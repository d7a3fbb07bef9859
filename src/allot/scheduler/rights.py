"""What the scheduler may read. Most of it must be; classic claims and classes of compute resources are for
those who were given the right.

A role that was written for another scheduler, as upstream's own, names none of their kinds. Who asked
for them all the same would be refused for ever, and place no pod at all.
"""

import logging

from allot.api import errors
from allot.client import Client
from allot.informers import ResourceId

from .mirror import ELSEWHERE, OPTIONAL, SOURCES

log = logging.getLogger(__name__)


async def readable(client: Client) -> tuple[ResourceId, ...]:
    """The resources to follow."""
    hidden = [what for what in OPTIONAL if not await _may_read(client, what)]
    for what in hidden:
        if what in ELSEWHERE:
            continue
        log.warning("pods that need it are not placed: %s.%s may not be read", what.plural, what.group)
    return tuple([what for what in SOURCES if what not in hidden])


async def _may_read(client: Client, what: ResourceId) -> bool:
    reviews = client.resource("authorization.k8s.io", "v1", "selfsubjectaccessreviews", namespaced=False)
    wanted = {"group": what.group, "version": what.version, "resource": what.plural, "verb": "watch"}
    kind = {"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview"}
    try:
        answer = await reviews.create({**kind, "spec": {"resourceAttributes": wanted}})
    except errors.ApiError:
        return True  # nobody knows: whoever follows it will see
    return bool((answer.fields.get("status") or {}).get("allowed"))
