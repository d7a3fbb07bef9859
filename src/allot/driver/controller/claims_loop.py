"""A claim at a time: what is allocated at once, what is given back, and what somebody left half done.

Which of these is due is `answers.due`'s to say. A claim that vanished with our finalizer or an allocation
of ours was deleted by force: what it held is freed all the same, once the server says that it is gone.
"""

from allot.api import Object
from allot.base import Clock
from allot.informers import Again, Change, Deleted, Index, Informer, Key, Reconciler, Telemetry

from . import answers
from .allocating import Allocating
from .answers import Due
from .asking import Asking
from .claims import Claims
from .refreshing import LIMITS, WORKERS, Refreshing
from .values import NotUsable
from .views import claim_of, class_of


class ClaimsLoop:
    def __init__(
        self,
        driver: str,
        claims: Claims,
        classes: Informer,
        asking: Asking,
        allocating: Allocating,
        refreshing: Refreshing,
        clock: Clock,
        telemetry: Telemetry,
    ) -> None:
        self._driver, self._claims, self._classes = driver, claims, classes
        self._asking, self._allocating, self._refreshing = asking, allocating, refreshing
        self._lost: dict[Key, list[Object]] = {}
        self.loop = Reconciler(
            "driver claims", self.reconcile, clock, telemetry, workers=WORKERS, limits=LIMITS
        )

    def heard(self, change: Change) -> None:
        key = Key.of(change.object)
        if isinstance(change, Deleted):
            last = self._claims.last_of(change.object)
            self._refreshing.settled(self.loop, key)
            if answers.may_hold(claim_of(last), self._driver):
                self._lost.setdefault(key, []).append(last)
                self.loop.add(key)
        elif self._due(self._claims.get(key) or change.object) is not Due.NOTHING:
            self.loop.add(key)

    def class_heard(self, change: Change, claims_of: Index) -> None:
        for claim in claims_of[change.object.name]:
            if claim_of(claim).spec.is_immediate:
                self.loop.add(Key.of(claim))

    async def reconcile(self, key: Key) -> Again | None:
        while self._lost.get(key):
            lost = self._lost[key][0]
            async with self._claims.turn((lost.uid,)):
                if await self._claims.is_gone(lost):
                    await self._allocating.forget(lost)
            self._lost[key].remove(lost)
            self._refreshing.changed()
        self._lost.pop(key, None)
        claim = self._claims.get(key)
        if claim is None:
            return None
        async with self._claims.turn((claim.uid,)):
            now = self._claims.get(key)  # somebody may have had it meanwhile
            return await self._settle(key, now) if now is not None and now.uid == claim.uid else None

    async def _settle(self, key: Key, claim: Object) -> Again | None:
        match self._due(claim):
            case Due.PROTECT:
                await self._claims.protect([claim])
            case Due.ALLOCATE:
                return await self._allocate(key, claim)
            case Due.ABORT | Due.GIVE_BACK:
                await self._allocating.give_back(claim)
                self._refreshing.changed()
        return None

    async def _allocate(self, key: Key, claim: Object) -> Again | None:
        try:
            ask = await self._asking.ask(claim)
            refused = await self._allocating.allocate([claim], [ask], None, None)
        except NotUsable as why:
            self._allocating.tell(claim, "NotUsable", str(why))
            return self._refreshing.patience(self.loop, key)
        if refused:
            return self._refreshing.waits(self.loop, key)
        self._refreshing.settled(self.loop, key)
        self._refreshing.changed()
        return None

    def _due(self, claim: Object) -> Due:
        view = claim_of(claim)
        found = self._classes.cache.get(view.spec.resource_class_name)
        return answers.due(view, class_of(found) if found is not None else None, self._driver)
