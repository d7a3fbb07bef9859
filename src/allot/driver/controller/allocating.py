"""Allocating claims together, and giving one back: the order of writes, and what follows from a refusal.

    allocate     finalizer on each · the author's `allocate` · allocation, driver and reservation, in one
                 write a claim
    refuse       what was allocated of the others is given back · finalizers go
    give back    the author's `deallocate` · one write clears allocation, driver and request · the finalizer

What it promises
    ALLOC1  Our finalizer is there before the author is asked to do anything for a claim, and goes when
            nothing is held any more (C9).
    ALLOC2  Of the claims that are allocated together all are, or none.
    ALLOC3  Whatever may have been begun for a claim before is undone before it is allocated anew: after a
            crash nobody knows for which node it was.
    ALLOC4  A claim that is deleted, replaced or no longer pending when the result is to be written does not
            keep the resource.
"""

import logging
from collections.abc import Mapping, Sequence

from allot.allocation import Node
from allot.api import Object, errors, meta
from allot.base import Metrics
from allot.client import Client
from allot.informers import WARNING, Events

from . import answers
from .calling import Calls
from .claims import Claims
from .values import Allocation, Ask, NotUsable, Refused
from .views import Pod, as_told, claim_of

log = logging.getLogger(__name__)

WRITE_ATTEMPTS = 5
"""Of a result, while others change the same claim. It is due soon: a resource is held."""


class Allocating:
    def __init__(
        self, driver: str, claims: Claims, calls: Calls, client: Client, events: Events, metrics: Metrics
    ) -> None:
        self._driver, self._claims, self._calls, self._events = driver, claims, calls, events
        self._nodes = client.resource("", "v1", "nodes", namespaced=False)
        self._allocations = metrics.counter(
            "allot_driver_controller_allocations_total", "Claims that were to be allocated.", "result"
        )
        self._deallocations = metrics.counter(
            "allot_driver_controller_deallocations_total", "Claims that were given back."
        )

    async def allocate(
        self, pending: Sequence[Object], asks: Sequence[Ask], node: str | None, pod: Pod | None
    ) -> Mapping[str, Refused]:
        """Why claims were refused, by uid; empty: all are allocated. The caller has their turn."""
        begun = [claim for claim in pending if self._is_protected(claim)]
        new = [claim for claim in pending if not self._is_protected(claim)]
        protected = {
            claim.uid: claim for claim in (*begun, *(await self._claims.protect(new) if new else ()))
        }
        for claim in begun:
            await self._calls.deallocate(as_told(claim))  # ALLOC3
        try:
            given = await self._calls.allocate(asks, node)
        except NotUsable:
            for claim in protected.values():
                await self._unprotect(claim)
            raise
        judged = answers.judged(asks, await self._node(node, given), given)
        refused = {uid: answer for uid, answer in judged.items() if isinstance(answer, Refused)}
        for claim in pending:
            answer = judged[claim.uid]
            if refused:
                await self._abort(protected[claim.uid], is_held=answers.is_held(given, claim.uid))
            elif isinstance(answer, Allocation):
                await self._write(protected[claim.uid], answer, pod)
        for uid, why in refused.items():
            self.tell(protected[uid], "AllocationRefused", _where(node) + why.why)
        self._allocations.add(len(refused), "refused")
        self._allocations.add(len(pending) - len(refused), "withdrawn" if refused else "allocated")
        return refused

    async def give_back(self, claim: Object) -> None:
        """The caller has its turn."""
        await self._calls.deallocate(as_told(claim))
        if claim_of(claim).status.allocation is not None:
            claim = await self._claims.say(claim, answers.RETURNED)
        self._deallocations.add(1)
        await self._unprotect(claim)

    async def forget(self, claim: Object) -> None:
        """The claim went without our finalizer's consent: nobody else will ask for its resource back."""
        await self._calls.deallocate(as_told(claim))
        self._deallocations.add(1)

    def tell(self, claim: Object, reason: str, message: str) -> None:
        self._events.record(claim, WARNING, reason, f"{self._driver}: {message}")

    async def _write(self, claim: Object, allocation: Allocation, pod: Pod | None) -> None:
        for left in reversed(range(WRITE_ATTEMPTS)):
            try:
                await self._claims.say(claim, answers.allocated(self._driver, allocation, pod))
                return
            except (errors.Conflict, errors.NotFound):
                now = await self._claims.read(claim)
                if now is None:
                    await self.forget(claim)  # ALLOC4
                    return
                if claim_of(now).status.allocation is not None:
                    if claim_of(now).status.driver_name != self._driver:
                        await self._calls.deallocate(as_told(claim))  # another was faster (ALLOC4)
                        await self._unprotect(now)
                    return  # else it was written, and the answer was lost
                if now.metadata.deletion_timestamp:
                    await self._abort(now, is_held=True)  # ALLOC4
                    return
                if not left:
                    raise
                claim = now
            except errors.Invalid as wrong:  # what the author answered is not what the API takes
                self.tell(claim, "AllocationRefused", f"the API server does not take the allocation: {wrong}")
                await self._abort(claim, is_held=True)
                raise

    async def _abort(self, claim: Object, *, is_held: bool) -> None:
        if is_held:
            await self._calls.deallocate(as_told(claim))
        await self._unprotect(claim)

    async def _unprotect(self, claim: Object) -> None:
        if self._is_protected(claim):
            try:
                await self._claims.unprotect(claim)
            except errors.NotFound:
                return  # that is where this was going

    def _is_protected(self, claim: Object) -> bool:
        return answers.finalizer(self._driver) in (claim.metadata.finalizers or ())

    async def _node(self, name: str | None, given: Mapping[str, Allocation | Refused]) -> Node | None:
        """The node that must be able to use it, with labels where an answer selects by them."""
        if name is None:
            return None
        answered = given.values() if isinstance(given, Mapping) else ()
        chosen = [
            one.nodes
            for one in answered
            if isinstance(one, Allocation) and isinstance(one.nodes, meta.NodeSelector)
        ]
        if all(answers.names_nodes_only(one) for one in chosen):
            return Node(name)
        try:
            return Node.read((await self._nodes.get(name)).fields)
        except errors.NotFound:
            return Node(name)


def _where(node: str | None) -> str:
    return f"node {node}: " if node else ""
