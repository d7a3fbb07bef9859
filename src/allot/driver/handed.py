"""Prepare and unprepare of classic claims, as a kubelet asks for them: one claim a call, by its handle.

The same promises as for structured claims (`plugin`): KIT2 and KIT3 hold, a claim is on disk before the
author is called for it and before the kubelet hears of it, and after a reboot it is prepared again. The
handle is all that is needed: neither the claim nor its class nor parameters are read.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import NamedTuple, TypeVar

from msgspec.structs import replace

from allot.base import Clock, Metrics
from allot.wire import CallFailed, Code, cdi, classic

from .claims import Allocated, Claim, Edits, NotUsable, Ready
from .deeds import done
from .injecting import Injecting, prepared
from .operations import Operations
from .state import BadState, Entry, State, begun

log = logging.getLogger(__name__)

T = TypeVar("T")


class Handed(NamedTuple):
    """A claim as a kubelet hands it over."""

    driver: str
    namespace: str
    name: str
    uid: str
    handle: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


class UnknownResource(NotUsable):
    """There is no such resource: what the handle names is not on this node."""


PrepareHanded = Callable[[Handed], Edits | Ready | Awaitable[Edits | Ready]]
"""What containers get with the claim, all of it: a claim is one resource."""
UnprepareHanded = Callable[[Entry], Awaitable[None] | None]

_WHOLE = Allocated("classic", "", "resource")


class HandedPlugin:
    def __init__(
        self,
        driver: str,
        prepare: PrepareHanded,
        unprepare: UnprepareHanded,
        state: State,
        files: Injecting,
        clock: Clock,
        metrics: Metrics,
        require: Callable[[Handed], None] = lambda claim: None,
    ) -> None:
        """`require` raises NotUsable of a claim that cannot be prepared now; nothing is noted of it then."""
        self._require = require
        self._driver, self._prepare, self._unprepare = driver, prepare, unprepare
        self._state, self._files = state, files
        self._operations = Operations(state, files, clock, metrics)
        self.start, self.stop = self._operations.start, self._operations.stop

    async def prepare(
        self, request: classic.NodePrepareResourceRequest
    ) -> classic.NodePrepareResourceResponse:
        claim = Handed(
            self._driver, request.namespace, request.claim_name, request.claim_uid, request.resource_handle
        )
        entry = await self._to_its_end("prepare", claim, lambda: self._prepared(claim))
        return classic.NodePrepareResourceResponse(entry.devices[0].cdi_devices)

    async def unprepare(
        self, request: classic.NodeUnprepareResourceRequest
    ) -> classic.NodeUnprepareResourceResponse:
        claim = Handed(self._driver, request.namespace, request.claim_name, request.claim_uid, "")
        await self._to_its_end("unprepare", claim, lambda: self._undone(claim.uid))
        return classic.NodeUnprepareResourceResponse()

    async def _to_its_end(self, operation: str, claim: Handed, deed: Callable[[], Awaitable[T]]) -> T:
        """KIT2. Raises CallFailed."""
        try:
            return await self._operations.alone(operation, deed)
        except Exception as problem:
            self._operations.failed(operation)
            expected = isinstance(problem, NotUsable | cdi.InvalidSpec | OSError | BadState)
            log.warning("%s %s: %s", operation, claim, problem, exc_info=None if expected else problem)
            raise CallFailed(_code(problem), str(problem) or type(problem).__name__) from None

    async def _prepared(self, claim: Handed) -> Entry:
        known = self._state.entries.get(claim.uid)
        if known is not None and self._state.is_prepared(known):
            await asyncio.to_thread(self._files.write, known)  # KIT3; a lost file comes back
            return known
        self._require(claim)
        whole = Claim(self._driver, claim.namespace, claim.name, claim.uid, (_WHOLE,))
        await self._state.put([replace(begun(whole), handle=claim.handle)])  # STATE1
        given = await done(self._prepare, claim)
        entry = replace(prepared(whole, {_WHOLE: given}, self._driver, self._state.boot), handle=claim.handle)
        await asyncio.to_thread(self._files.write, entry)
        await self._state.put([entry])  # STATE2
        return entry

    async def _undone(self, uid: str) -> None:
        """What is not known was undone before, or never begun: there is nothing to do."""
        entry = self._state.entries.get(uid)
        if entry is not None:
            await done(self._unprepare, entry)
            await asyncio.to_thread(self._files.remove, uid)
            await self._state.drop([uid])


def _code(problem: Exception) -> Code:
    if isinstance(problem, UnknownResource):
        return Code.NOT_FOUND
    return Code.FAILED_PRECONDITION if isinstance(problem, NotUsable) else Code.INTERNAL
