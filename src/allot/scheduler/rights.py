"""What the scheduler may read. Most of it must be; classic claims and classes of compute resources are for
those who were given the right.

A role that was written for another scheduler, as upstream's own, names none of their kinds. Who asked
for them all the same would be refused for ever, and place no pod at all.
"""

import asyncio
import logging

from allot.api import errors
from allot.client import Client
from allot.informers import ResourceId

from .mirror import ELSEWHERE, OPTIONAL, SOURCES

log = logging.getLogger(__name__)

FIRST_S = 0.2
LONGEST_S = 30.0
FOR_A_MOMENT = frozenset(
    kind.code for kind in (errors.TooManyRequests, errors.Internal, errors.Unavailable, errors.Timeout)
)


async def readable(client: Client) -> tuple[ResourceId, ...]:
    """The resources to follow."""
    hidden = [what for what in OPTIONAL if not await _may_read(client, what)]
    for what in hidden:
        if what in ELSEWHERE:
            continue
        log.warning("pods that need it are not placed: %s.%s may not be read", what.plural, what.group)
    return tuple([what for what in SOURCES if what not in hidden])


async def _may_read(client: Client, what: ResourceId) -> bool:
    """A server that is away for a moment is asked again: who followed on a guess what it may not read
    would wait for the first list for ever (seed 7 of worlds with everything)."""
    reviews = client.resource("authorization.k8s.io", "v1", "selfsubjectaccessreviews", namespaced=False)
    wanted = {"group": what.group, "version": what.version, "resource": what.plural, "verb": "watch"}
    kind = {"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview"}
    wait_s = FIRST_S
    while True:
        try:
            answer = await reviews.create({**kind, "spec": {"resourceAttributes": wanted}})
            return bool((answer.fields.get("status") or {}).get("allowed"))
        except errors.ApiError as failed:
            if failed.code not in FOR_A_MOMENT:
                return True  # this server tells nobody: the first list will show it
            log.info("asking what may be read, again in %.1f s: %s", wait_s, failed)
        await asyncio.sleep(wait_s)
        wait_s = min(2 * wait_s, LONGEST_S)
