"""Leading: the loop around `election`, which decides."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from dataclasses import replace

from allot.api import Object, age, encode, errors
from allot.base import Clock

from .election import (
    Action,
    Due,
    Effect,
    Event,
    Failed,
    Look,
    Moment,
    Record,
    Renew,
    Saw,
    Settings,
    State,
    StopLeading,
    Write,
    Wrote,
    step,
)  # fmt: skip
from .resource import Resource
from .retry import Sleep

RELEASE_S = 2.0
"""For giving the lease back, when there is nothing else left to do."""


class LeadershipLost(Exception):
    """This process led and does not any more; whatever it did as leader must end."""


async def lead(
    settings: Settings,
    leases: Resource,
    work: Callable[[], Awaitable[None]],
    clock: Clock,
    *,
    sleep: Sleep = asyncio.sleep,
    failing: Callable[[str], None] = lambda why: None,
) -> None:
    """Wait to be elected, then do `work`; return when it is done, and give the lease back.

    Raises LeadershipLost, after `work` was cancelled and has ended, when the lease
    could not be kept. `failing` is told why it cannot be read or written, once for each
    reason in a row; that somebody else was faster is no failure, and that the server is away
    is said by the way to it.
    """
    election = _Election(settings, leases, clock, sleep, failing)
    await election.until_leading()
    working = asyncio.ensure_future(work())
    keeping = asyncio.ensure_future(election.until_lost())
    try:
        await asyncio.wait((working, keeping), return_when=asyncio.FIRST_COMPLETED)
        if keeping.done():
            working.cancel()
            await asyncio.gather(working, return_exceptions=True)
            raise LeadershipLost(f"{settings.identity}: {keeping.result()}")
        working.result()
    finally:
        for task in (working, keeping):
            task.cancel()
        await asyncio.gather(working, keeping, return_exceptions=True)
        if election.leading:
            with contextlib.suppress(errors.ApiError, TimeoutError):
                await election.release()


class _Election:
    """Carries out the effects of `step`."""

    def __init__(
        self,
        settings: Settings,
        leases: Resource,
        clock: Clock,
        sleep: Sleep,
        failing: Callable[[str], None],
    ) -> None:
        self._state = State(settings)
        self._leases = leases
        self._clock = clock
        self._sleep = sleep
        self._failing = failing
        self._next: Action = Look()
        self._lease: Object | None = None  # as it was last read or written

    @property
    def leading(self) -> bool:
        return self._state.leading

    async def until_leading(self) -> None:
        while not self._state.leading:
            await self._advance()

    async def until_lost(self) -> str:
        """Renew for as long as that works; returns why it ended."""
        while True:
            for effect in await self._advance():
                if isinstance(effect, StopLeading):
                    return effect.why

    async def release(self) -> None:
        """Let others begin at once: an empty holder holds nothing.

        A renewal that was cut short may have been carried out all the same: then the lease is another
        version of what was written last, and is read before it is given up.
        """
        seen, version = self._state.seen or Record(), self._state.seen_version
        async with asyncio.timeout(RELEASE_S):
            while seen.holder == self._state.settings.identity:
                now = age.micro_timestamp(self._clock.now())
                try:
                    await self._write(Write(replace(seen, holder="", duration_s=1, renewed=now), version))
                    return
                except errors.Conflict:
                    saw = await self._look()
                    seen, version = saw.record or Record(), saw.version

    async def _advance(self) -> tuple[Effect, ...]:
        if not isinstance(self._next, Write) and self._next.after_s:
            await self._sleep(self._next.after_s)
        event = await self._carried_out(self._next)
        before = self._state.failed
        self._state, effects = step(self._state, event)
        if isinstance(event, Failed) and not event.is_race and not event.is_away and event.why != before:
            self._failing(event.why)
        for effect in effects:
            if isinstance(effect, Look | Write | Renew):
                self._next = effect
        return effects

    async def _carried_out(self, effect: Action) -> Event:
        if isinstance(effect, Renew):
            return Due(self._moment())
        try:
            async with asyncio.timeout(self._patience_s()):
                if isinstance(effect, Write):
                    lease = self._lease = await self._write(effect)
                    return Wrote(self._moment(), Record.read(lease), lease.resource_version)
                return await self._look()
        except errors.ApiError as refused:
            is_away = isinstance(refused, errors.Unavailable | errors.Timeout)
            return Failed(self._moment(), refused.message, isinstance(refused, errors.Conflict), is_away)
        except TimeoutError:
            return Failed(self._moment(), "no answer in time")

    async def _look(self) -> Saw:
        settings = self._state.settings
        try:
            lease = await self._leases.get(settings.name, settings.namespace)
        except errors.NotFound:
            return Saw(self._moment(), None)
        self._lease = lease
        return Saw(self._moment(), Record.read(lease), lease.resource_version)

    async def _write(self, effect: Write) -> Object:
        settings = self._state.settings
        metadata = {"name": settings.name, "namespace": settings.namespace}
        lease = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": metadata}
        if not effect.version:
            return await self._leases.create({**lease, "spec": effect.record.spec()})
        # Laid over what was read, so that what this program does not know of leases stays. An update and
        # no patch: the roles that Kubernetes gives its own components allow nothing else.
        seen = self._lease if self._lease is not None else Object(encode(lease))
        laid = {"metadata": {"resourceVersion": effect.version}, "spec": effect.record.spec()}
        return await self._leases.update(seen.changed(laid).fields)

    def _patience_s(self) -> float:
        """A leader does not wait for an answer past the moment it must stop."""
        if not self._state.leading:
            return self._state.settings.renew_deadline_s
        return max(0.05, self._state.deadline_s() - self._clock.monotonic_s())

    def _moment(self) -> Moment:
        return Moment(self._clock.monotonic_s(), self._clock.now())
