"""Asks the probes of containers, each in its own time, and knows how they stand.

An attempt is watched from the moment that it has begun, hook included, until it has ended. What the probes
of an attempt say is not kept: an agent that begins anew believes the pod's status where it is about the same
attempt, and asks again.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

from allot.base import Clock

from . import probes
from .checks import Looked, Reaching, look
from .dialing import Network
from .errands import Errands
from .probes import Outcome, Purpose, Standing, Verdict
from .runtimes import Attempt
from .views import Container, Probe

Which = tuple[str, str, int]  # pod, container, number


class Known(NamedTuple):
    """What the pod's status says of an attempt that was there before the agent."""

    is_started: bool = False
    is_ready: bool = False


class Failure(NamedTuple):
    purpose: Purpose
    probe: Probe


Fail = Callable[[Attempt, Purpose, Outcome], None]


@dataclass(slots=True)
class _Watched:
    attempt: Attempt
    container: Container
    standings: dict[Purpose, Standing]
    started: asyncio.Event = field(default_factory=asyncio.Event)


class Probing:
    def __init__(self, errands: Errands, reaching: Reaching, network: Network, clock: Clock) -> None:
        self._errands = errands
        self._reaching, self._network, self._clock = reaching, network, clock
        self._watched: dict[Which, _Watched] = {}
        self.hear: Callable[[str], None] = lambda uid: None
        self.address_of: Callable[[str], str] = lambda uid: ""
        self.failed: Fail = lambda attempt, purpose, outcome: None

    def watch(self, attempt: Attempt, container: Container, known: Known) -> None:
        which = which_of(attempt)
        if which in self._watched:
            return
        standings = {purpose: probes.at_first(purpose) for purpose, _ in probes.probes_of(container)}
        if known.is_started and Purpose.STARTUP in standings:
            standings[Purpose.STARTUP] = Standing(Verdict.GOOD)
        if known.is_ready and Purpose.READINESS in standings:
            standings[Purpose.READINESS] = Standing(Verdict.GOOD)
        watched = self._watched[which] = _Watched(attempt, container, standings)
        if self._has_started(watched):
            watched.started.set()
        for purpose, probe in probes.probes_of(container):
            self._begin(which, watched, purpose, probe)

    def is_started(self, attempt: Attempt) -> bool:
        watched = self._watched.get(which_of(attempt))
        return watched is not None and self._has_started(watched)

    def is_ready(self, attempt: Attempt) -> bool:
        watched = self._watched.get(which_of(attempt))
        if watched is None or not self._has_started(watched):
            return False
        standing = watched.standings.get(Purpose.READINESS)
        return standing is None or standing.is_good

    def failure(self, attempt: Attempt) -> Failure | None:
        """Why the attempt is to be killed, if it is."""
        watched = self._watched.get(which_of(attempt))
        if watched is None:
            return None
        for purpose, probe in probes.probes_of(watched.container):
            if probes.kills(purpose, watched.standings[purpose]):
                return Failure(purpose, probe)
        return None

    def forget(self, attempt: Attempt) -> None:
        which = which_of(attempt)
        if self._watched.pop(which, None) is not None:
            for purpose in Purpose:
                self._errands.end((which, purpose))

    def forget_pod(self, uid: str) -> None:
        for watched in [one for which, one in self._watched.items() if which[0] == uid]:
            self.forget(watched.attempt)

    def _has_started(self, watched: _Watched) -> bool:
        standing = watched.standings.get(Purpose.STARTUP)
        return standing is None or standing.is_good

    def _begin(self, which: Which, watched: _Watched, purpose: Purpose, probe: Probe) -> None:
        self._errands.begin((which, purpose), lambda: self._probe(watched, purpose, probe))

    async def _probe(self, watched: _Watched, purpose: Purpose, probe: Probe) -> None:
        runs_s = self._clock.now().timestamp() - watched.attempt.started_at
        await asyncio.sleep(max(0.0, probes.first_after_s(probe) - runs_s))
        if purpose is not Purpose.STARTUP:
            await watched.started.wait()
        address = self.address_of(watched.attempt.pod_uid)
        at = Looked(watched.attempt, watched.container, probe, probes.timeout_s(probe), address)
        while not probes.is_over(purpose, watched.standings[purpose]):
            self._note(watched, purpose, probe, await look(at, self._reaching, self._network))
            await asyncio.sleep(probes.every_s(probe))

    def _note(self, watched: _Watched, purpose: Purpose, probe: Probe, outcome: Outcome) -> None:
        was = watched.standings[purpose]
        now = watched.standings[purpose] = probes.advanced(was, probe, outcome)
        if not outcome.is_good:
            self.failed(watched.attempt, purpose, outcome)
        if self._has_started(watched):
            watched.started.set()
        if was.verdict is not now.verdict:
            self.hear(watched.attempt.pod_uid)


def which_of(attempt: Attempt) -> Which:
    return attempt.pod_uid, attempt.name, attempt.number
