"""Consumers of classic claims that are not pods: kept while their object exists, and not longer (C7).

KEP-3063 lets any object be listed in `reservedFor`. Each one that is listed is followed by itself, with a
watch that selects its name. That an object is gone is believed only of a list that was asked for after its
reservation had been seen: a watch may be behind, and the harm is a device that is taken from its user (C6).
Of a kind that is not served, or that cannot be watched, nothing is known: its objects stay listed.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field

from allot.api import resource
from allot.informers import Informer, Key, ResourceId, discover

from ..controller import World

PATIENCE_S = 30.0
"""For a list. Where it cannot be had, nothing is known."""

Reference = resource.ResourceClaimConsumerReference


@dataclass(frozen=True, slots=True)
class _Followed:
    informer: Informer
    stop: Callable[[], None]
    claims: set[Key] = field(default_factory=set)  # that list it


class Consumers:
    def __init__(self, world: World, look_at: Callable[[Key], None]) -> None:
        """`look_at` is called with each claim whose consumer has changed."""
        self._world = world
        self._look_at = look_at
        self._followed: dict[ResourceId, _Followed] = {}
        self._kinds: dict[tuple[str, str], ResourceId] = {}  # by group and resource
        self._turns: dict[ResourceId, asyncio.Lock] = {}
        world.at_end(self._leave_all)

    def is_known(self, claim: Key, consumer: Reference) -> bool:
        """Whether the object is there, as far as it has been heard of."""
        what = self._selected(consumer)
        followed = self._followed.get(what) if what is not None else None
        is_followed = followed is not None and claim in followed.claims
        return followed is not None and is_followed and _shows(followed.informer, claim, consumer)

    async def is_there(self, claim: Key, consumer: Reference) -> bool:
        """Follows the object, for the claim. True where nothing can be known."""
        if (consumer.api_group, consumer.resource) not in self._kinds:
            await self._discover(consumer)
        what = self._selected(consumer)
        if what is None:
            return True
        async with self._turns.setdefault(what, asyncio.Lock()):  # nobody ends what another waits for
            if self.is_known(claim, consumer):
                return True
            followed = self._follow(what)
            followed.claims.add(claim)
            try:
                async with asyncio.timeout(PATIENCE_S):
                    await followed.informer.wait_synced()
            except TimeoutError:
                return True
            return _shows(followed.informer, claim, consumer)

    def leave(self, claim: Key, still: tuple[Reference, ...] = ()) -> None:
        """The claim lists these and no others."""
        kept = {self._selected(one) for one in still}
        for what, followed in tuple(self._followed.items()):
            if claim in followed.claims and what not in kept:
                followed.claims.discard(claim)
                if not followed.claims:
                    self._end(what)

    async def _discover(self, consumer: Reference) -> None:
        """A kind that is not served may come later: it is asked for again."""
        for one in (await discover(self._world.client)).served:
            what = one.what
            is_meant = (what.group, what.plural) == (consumer.api_group, consumer.resource)
            if is_meant and what.namespaced and one.can("list", "watch"):
                self._kinds[what.group, what.plural] = what

    def _selected(self, consumer: Reference) -> ResourceId | None:
        what = self._kinds.get((consumer.api_group, consumer.resource))
        if what is None:
            return None
        return ResourceId(what.group, what.version, what.plural, True, f"metadata.name={consumer.name}")

    def _follow(self, what: ResourceId) -> _Followed:
        """From a list that is asked for now."""
        claims = self._followed[what].claims if what in self._followed else set()
        if what in self._followed:
            self._end(what)
        informer = self._world.informers.use(what)
        stop = informer.handle(lambda change: self._changed(what))
        followed = self._followed[what] = _Followed(informer, stop, claims)
        return followed

    def _changed(self, what: ResourceId) -> None:
        followed = self._followed.get(what)
        for claim in tuple(followed.claims) if followed is not None else ():
            self._look_at(claim)

    def _end(self, what: ResourceId) -> None:
        followed = self._followed.pop(what)
        followed.stop()
        if not self._turns[what].locked():
            del self._turns[what]
        self._world.informers.leave(followed.informer)

    def _leave_all(self) -> None:
        for what in tuple(self._followed):
            self._end(what)


def is_pod(consumer: Reference) -> bool:
    return not consumer.api_group and consumer.resource == "pods"


def _shows(informer: Informer, claim: Key, consumer: Reference) -> bool:
    found = informer.cache.get(consumer.name, claim.namespace)
    return found is not None and found.uid == consumer.uid
