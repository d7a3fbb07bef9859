"""After the load: was every promise kept while it was fast?

The checkers read what the server told its watchers while the load ran, from the
first claim to the last: D1 (one holder), C1 and C2 (what an allocation implies) and
D4 (an allocation is what was asked for).
"""

import heapq
import itertools
from collections.abc import AsyncIterator, Sequence

from allot.api import resource
from allot.client import Client
from allot.sim import checkers, recording

from .following import Follower

CHECKERS = ("D1", "C1", "C2", "D4")


async def judge(client: Client, followers: Sequence[Follower]) -> list[str]:
    """What is wrong, in the order in which it went wrong."""
    judges = (checkers.OneHolder(), checkers.ClaimRules(transactions=True), checkers.AsAsked())
    wrong = [follower.lost for follower in followers if follower.lost]
    stage = [seen async for seen in _stage(client)]
    history = heapq.merge(*(follower.seen() for follower in followers), key=lambda seen: seen.revision)
    for seen in itertools.chain(stage, history):
        for judge in judges:
            wrong += [f"revision {seen.revision}: {text}" for text in judge.see(seen)]
    for judge in judges:
        wrong += [f"at rest: {text}" for text in judge.rest()]
    return wrong


async def _stage(client: Client) -> AsyncIterator[recording.Seen]:
    """What was there before the first claim and never changed."""
    nodes = client.resource("", "v1", "nodes", namespaced=False)
    for listed in (client.of(resource.DEVICE_CLASS), nodes, client.of(resource.RESOURCE_SLICE)):
        async for page in listed.pages():
            for object in page.objects:
                yield recording.Seen(0, listed.plural, "ADDED", object)
