"""What can go wrong between a component and its server, by lot.

Every request of a component passes a `FaultyTransport`. The lots are drawn from the
world's one generator, so that a seed decides them; how often each fault struck is
counted, because a fault that never strikes tests nothing.

    refused      the server was not reached; nothing happened
    conflict     somebody else was faster, or so it is said; nothing happened
    unanswered   it was done, and the answer was lost: the outcome is unknown
    slow         the request, or its answer, took its time
    cut          a watch broke off
    delayed      an event came late
    repeated     a watch told something twice
    forgotten    the server's history was compacted under a watch, and the watch cut

A component that is fenced is dead to the server: whatever it still tries, in a
`finally` block perhaps, does not arrive.
"""

import asyncio
import random
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace

from allot.api import Request, Response, Transport, errors

RATES: Mapping[str, float] = {
    "refused": 0.02,
    "conflict": 0.02,
    "unanswered": 0.02,
    "slow": 0.05,
    "cut": 0.01,
    "delayed": 0.05,
    "repeated": 0.01,
    "forgotten": 0.001,
}
SLOW_S_MAX = 3.0
DELAY_S_MAX = 2.0


@dataclass
class Faults:
    rng: random.Random
    compact: Callable[[], Awaitable[None]]
    rates: Mapping[str, float] = field(default_factory=lambda: dict(RATES))
    active: bool = True
    struck: Counter[str] = field(default_factory=Counter)

    def strikes(self, name: str) -> bool:
        if not self.active or self.rng.random() >= self.rates[name]:
            return False
        self.struck[name] += 1
        return True


class Fenced(Exception):
    """The component is dead; nothing of it reaches the server any more."""


class FaultyTransport:
    def __init__(self, inner: Transport, faults: Faults) -> None:
        self._inner = inner
        self._faults = faults
        self._fenced = False
        self.frozen_until = 0.0  # a component that does not get to run, while its lease runs out

    def fence(self) -> None:
        self._fenced = True

    async def send(self, request: Request) -> Response:
        await self._wait_while_frozen()
        faults = self._faults
        if faults.strikes("slow"):
            await asyncio.sleep(faults.rng.uniform(0, SLOW_S_MAX))
        self._require_alive()
        if faults.strikes("refused"):
            raise errors.Unavailable("made up: the server was not reached")
        if request.method in ("PUT", "PATCH") and faults.strikes("conflict"):
            raise errors.Conflict("made up: the object has been modified")
        response = await self._inner.send(request)
        self._require_alive()
        if request.method != "GET" and faults.strikes("unanswered"):
            raise errors.Timeout("made up: the answer was lost")
        if response.stream is None:
            return response
        return replace(response, stream=self._faulty(response.stream))

    async def close(self) -> None:
        await self._inner.close()

    async def _faulty(self, stream: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        faults = self._faults
        async for piece in stream:
            await self._wait_while_frozen()
            self._require_alive()
            if faults.strikes("delayed"):
                await asyncio.sleep(faults.rng.uniform(0, DELAY_S_MAX))
            if faults.strikes("forgotten"):
                await faults.compact()
                raise errors.Unavailable("made up: the watch broke off, and its past is gone")
            if faults.strikes("cut"):
                raise errors.Unavailable("made up: the watch broke off")
            yield piece
            if faults.strikes("repeated"):
                yield piece

    async def _wait_while_frozen(self) -> None:
        left_s = self.frozen_until - asyncio.get_running_loop().time()
        if left_s > 0:
            await asyncio.sleep(left_s)

    def _require_alive(self) -> None:
        if self._fenced:
            raise Fenced
