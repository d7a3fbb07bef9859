"""Claims that the scheduler knows from the answers to its own writes, until the watch tells of them.

Of what a watch has told it tells the end too (REFL4). A claim that was made and went again between two lists
was never told: nobody says that it is gone, and its devices would be held until the scheduler begins anew.
So what was made here is looked for once a list has been taken over.
"""

from collections.abc import Callable

from allot.api import Object
from allot.informers import Informer, Key


class Unheard:
    def __init__(self, claims: Informer, gone: Callable[[Object], None]) -> None:
        """`gone` is told of a claim that was made, and is no more."""
        self._claims = claims
        self._gone = gone
        self._made: dict[Key, Object] = {}

    def made(self, claim: Object) -> None:
        if self._claims.cache.get(claim.name, claim.namespace) is None:
            self._made[Key.of(claim)] = claim
            self._look(claim)

    def heard(self, claim: Object) -> None:
        self._made.pop(Key.of(claim), None)

    async def run(self) -> None:
        """For ever."""
        lists = self._claims.lists
        while True:
            await self._claims.wait_lists(lists + 1)
            lists = self._claims.lists
            for claim in [*self._made.values()]:
                self._look(claim)

    def _look(self, claim: Object) -> None:
        """What the cache shows of a moment after the claim was made is all there is to know (REFL8)."""
        if not self._claims.has_heard(claim.resource_version):
            return
        del self._made[Key.of(claim)]
        found = self._claims.cache.get(claim.name, claim.namespace)
        if found is None or found.uid != claim.uid:
            self._gone(claim)
