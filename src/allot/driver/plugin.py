"""Prepare and unprepare, as a kubelet asks for them: any number of times, with the effect of once.

Prepare, for the claims of one call together:

    known and prepared     the answer is the one that was given before; a lost CDI file comes back
    anything else          read the claim from the API · note that it is begun · call the author ·
                           write the CDI file · note what was prepared · answer

Unprepare: call the author · remove the CDI file · forget the claim · answer. A claim that is not
known was unprepared before, or never prepared: there is nothing to do, and that is no error.

What it promises
    KIT1  Every claim of a call is in its answer; an error of one claim is that claim's alone.
    KIT2  The author's functions are called one at a time, and to their end, also when the kubelet has
           given up waiting. Whoever asks again meanwhile waits, and hears what came of it.
    KIT3  The answer to a repeated call is the same, without a word to the author or the API.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from allot.api import errors
from allot.base import Clock, Metrics
from allot.client import Resource
from allot.wire import cdi, dra

from .claims import Claim, Given, NotUsable, read
from .configs import Config
from .deeds import done
from .injecting import Injecting, prepared
from .operations import Operations
from .state import BadState, Entry, State, begun
from .status_loop import Statuses

log = logging.getLogger(__name__)

T = TypeVar("T", dra.NodePrepareResourceResponse, dra.NodeUnprepareResourceResponse)

Prepare = Callable[[Claim], Given | Awaitable[Given]]
Unprepare = Callable[[Entry], Awaitable[None] | None]


@dataclass(frozen=True, slots=True)
class Deeds:
    """What the author wrote: plain functions, or coroutine functions."""

    prepare: Prepare
    unprepare: Unprepare
    configs: tuple[type[Config], ...] = ()


class Plugin:
    def __init__(
        self,
        driver: str,
        deeds: Deeds,
        claims: Resource,
        state: State,
        files: Injecting,
        clock: Clock,
        metrics: Metrics,
        statuses: Statuses,
    ) -> None:
        self._driver, self._deeds, self._claims = driver, deeds, claims
        self._state, self._files, self._statuses = state, files, statuses
        self._operations = Operations(state, files, clock, metrics)
        self.start, self.stop = self._operations.start, self._operations.stop

    async def prepare(self, request: dra.NodePrepareResourcesRequest) -> dra.NodePrepareResourcesResponse:
        answers = await self._counted("prepare", lambda: self._prepare(request.claims))
        return dra.NodePrepareResourcesResponse(answers)

    async def unprepare(
        self, request: dra.NodeUnprepareResourcesRequest
    ) -> dra.NodeUnprepareResourcesResponse:
        answers = await self._counted("unprepare", lambda: self._unprepare(request.claims))
        return dra.NodeUnprepareResourcesResponse(answers)

    async def _counted(self, operation: str, deed: Callable[[], Awaitable[dict[str, T]]]) -> dict[str, T]:
        """KIT2: what went wrong is counted also when the kubelet has given up waiting."""

        async def judged() -> dict[str, T]:
            answers = await deed()
            wrong = sum(bool(answer.error) for answer in answers.values())
            if wrong:
                self._operations.failed(operation, wrong)
            return answers

        return await self._operations.alone(operation, judged)

    # -- prepare

    async def _prepare(self, asked: Sequence[dra.Claim]) -> dict[str, dra.NodePrepareResourceResponse]:
        wanted = {claim.uid: claim for claim in asked}
        known = {uid: self._state.entries[uid] for uid in wanted if uid in self._state.entries}
        ready = {uid: entry for uid, entry in known.items() if self._state.is_prepared(entry)}
        new = [claim for uid, claim in wanted.items() if uid not in ready]
        read = await asyncio.gather(*map(self._read, new))
        usable = [claim for claim in read if isinstance(claim, Claim)]
        failures = {one.uid: why for one, why in zip(new, read, strict=True) if isinstance(why, str)}
        await self._state.put(map(begun, usable))  # STATE1
        entries = dict(ready)
        for claim in usable:
            try:
                entries[claim.uid] = await self._prepared(claim)
            except Exception as problem:
                failures[claim.uid] = self._why("prepare", str(claim), problem)
        for uid, entry in tuple(entries.items()):
            try:
                await asyncio.to_thread(self._files.write, entry)
            except (cdi.InvalidSpec, OSError) as problem:
                failures[uid] = self._why("prepare", str(entry), problem)
                del entries[uid]
        await self._state.put(entries.values())  # STATE2
        return {
            uid: _answer(entries[uid])
            if uid in entries
            else dra.NodePrepareResourceResponse(error=failures[uid])
            for uid in wanted
        }

    async def _read(self, asked: dra.Claim) -> Claim | str:
        """The claim as the API has it, or why not."""
        name = f"{asked.namespace}/{asked.name}"
        try:
            found = await self._claims.get(asked.name, asked.namespace)
            return read(found, asked.uid, self._driver, self._deeds.configs)
        except NotUsable as why:
            return self._why("prepare", name, why)
        except (errors.ApiError, ValueError, OSError) as why:
            return self._why("prepare", name, NotUsable(f"claim {name} cannot be read: {why}"))

    async def _prepared(self, claim: Claim) -> Entry:
        given = await done(self._deeds.prepare, claim) or {}
        entry = prepared(claim, given, self._driver, self._state.boot)
        self._statuses.told(claim, given)
        return entry

    # -- unprepare

    async def _unprepare(self, asked: Iterable[dra.Claim]) -> dict[str, dra.NodeUnprepareResourceResponse]:
        failures: dict[str, str] = {}
        wanted = tuple(dict.fromkeys(claim.uid for claim in asked))
        known = [self._state.entries[uid] for uid in wanted if uid in self._state.entries]
        for entry in known:
            self._statuses.forget(entry.uid)
            try:
                await done(self._deeds.unprepare, entry)
                await asyncio.to_thread(self._files.remove, entry.uid)
            except Exception as problem:
                failures[entry.uid] = self._why("unprepare", str(entry), problem)
        await self._state.drop(uid for uid in wanted if uid not in failures)
        return {uid: dra.NodeUnprepareResourceResponse(failures.get(uid, "")) for uid in wanted}

    def _why(self, operation: str, claim: str, problem: Exception) -> str:
        """KIT1: what the kubelet hears. Nobody's own bug comes without its trace."""
        expected = isinstance(problem, NotUsable | cdi.InvalidSpec | OSError | BadState)
        log.warning(
            "%s %s: %s",
            operation,
            claim,
            problem,
            exc_info=None if expected else problem,
            extra={"driver": self._driver, "operation": operation, "claim": claim},
        )
        return str(problem) or type(problem).__name__


def _answer(entry: Entry) -> dra.NodePrepareResourceResponse:
    return dra.NodePrepareResourceResponse(
        tuple(
            dra.Device(
                (held.request.partition("/")[0],), held.pool, held.device, held.cdi_devices, held.share_id
            )
            for held in entry.devices
        )
    )
