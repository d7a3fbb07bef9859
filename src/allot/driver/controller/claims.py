"""Claims as this driver last saw or wrote them, each worked on by one task at a time.

CLAIMS1  What was written here is not overlooked because a cache is behind: of what was heard and what
         was written, the newer counts.
CLAIMS2  One claim, one task: whoever works on several has all of them, in one order.
CLAIMS3  Every write names the uid and the version that it was decided on. A claim that was made anew
         never gets a result that was meant for the one before.
"""

import asyncio
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

from allot.api import Object, errors
from allot.client import Client
from allot.informers import Cache, Key

from . import answers
from .views import CLAIMS, is_as_new


class Claims:
    def __init__(self, driver: str, client: Client, cache: Cache) -> None:
        self._driver, self._client, self._cache = driver, client, cache
        self._resource = client.resource(CLAIMS.group, CLAIMS.version, CLAIMS.plural)
        self._written: dict[Key, Object] = {}
        self._turns: dict[str, _Turn] = {}

    def get(self, key: Key) -> Object | None:
        """CLAIMS1."""
        heard, mine = self._cache.get(key.name, key.namespace), self._written.get(key)
        if mine is None:
            return heard
        if heard is None or heard.uid != mine.uid or is_as_new(heard, mine):
            del self._written[key]
            return heard
        return mine

    def last_of(self, gone: Object) -> Object:
        """A claim that is gone, as it was last: what was written here may be what ended it."""
        mine = self._written.pop(Key.of(gone), None)
        return mine if mine is not None and mine.uid == gone.uid else gone

    @asynccontextmanager
    async def turn(self, uids: Iterable[str]) -> AsyncIterator[None]:
        """CLAIMS2."""
        async with AsyncExitStack() as stack:
            for uid in sorted(set(uids)):
                turn = self._turns.setdefault(uid, _Turn())
                turn.wanted += 1
                stack.callback(self._leave, uid, turn)
                await stack.enter_async_context(turn.lock)
            yield

    def _leave(self, uid: str, turn: "_Turn") -> None:
        turn.wanted -= 1
        if not turn.wanted:
            del self._turns[uid]

    # -- writing --------------------------------------------------------------------------------

    async def protect(self, claims: Sequence[Object]) -> list[Object]:
        """Our finalizer on each, in one request where there are several and the server can."""
        patches = [{"finalizers": answers.with_finalizer(claim, self._driver)} for claim in claims]
        if len(claims) > 1 and self._client.has_transactions:
            writes = [
                self._resource.writes.patch(
                    claim.name, {"metadata": {**_this(claim), **patch}}, claim.namespace
                )
                for claim, patch in zip(claims, patches, strict=True)
            ]
            try:
                return [self._wrote(one) for one in await self._client.together(writes)]
            except (errors.NotFound, errors.MethodNotAllowed, errors.Forbidden):
                if self._client.has_transactions:
                    raise
        return [await self._metadata(claim, patch) for claim, patch in zip(claims, patches, strict=True)]

    async def unprotect(self, claim: Object) -> Object:
        return await self._metadata(claim, {"finalizers": answers.without_finalizer(claim, self._driver)})

    async def say(self, claim: Object, status: Mapping[str, Any]) -> Object:
        patch = {"metadata": _this(claim), "status": status}
        return self._wrote(
            await self._resource.patch(claim.name, patch, claim.namespace, subresource="status")
        )

    async def read(self, claim: Object) -> Object | None:
        """The claim as the server has it now. None: it is gone, or another one has its name."""
        try:
            live = await self._resource.get(claim.name, claim.namespace)
        except errors.NotFound:
            return None
        return self._wrote(live) if live.uid == claim.uid else None

    async def is_gone(self, claim: Object) -> bool:
        """As the server says, and not a cache: it tells all claims as gone when v1alpha1 is served no more.
        Raises NotFound while that is so."""
        try:
            return (await self._resource.get(claim.name, claim.namespace)).uid != claim.uid
        except errors.NotFound:
            await self._resource.list(claim.namespace, limit=1)
            return True

    async def _metadata(self, claim: Object, patch: Mapping[str, Any]) -> Object:
        whole = {"metadata": {**_this(claim), **patch}}
        return self._wrote(await self._resource.patch(claim.name, whole, claim.namespace))

    def _wrote(self, claim: Object) -> Object:
        self._written[Key.of(claim)] = claim
        return claim


class _Turn:
    def __init__(self) -> None:
        self.lock = asyncio.Lock()
        self.wanted = 0  # by so many, the one who has it included


def _this(claim: Object) -> dict[str, str]:
    """CLAIMS3."""
    return {"uid": claim.uid, "resourceVersion": claim.resource_version}
