"""One copy acts, the others wait: leadership around a component's work.

Every copy of a component runs its informers, so that whoever takes over has its
caches ready. Only the leader works. When the lease cannot be kept, the work is
cancelled and has ended before anybody else may begin (LEASE2, `client.election`); then
the copy stands for election again.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from allot.base import Clock
from allot.client import LeadershipLost, LeaseSettings, Resource, lead

from .reflector import Sleep

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Election:
    """An election to stand in: which lease, and with whose rights it is written."""

    settings: LeaseSettings
    leases: Resource
    clock: Clock
    sleep: Sleep = asyncio.sleep


async def lead_forever(election: Election, work: Callable[[], Awaitable[None]]) -> None:
    """Do `work` whenever this copy leads. Returns when the work is done by itself."""
    while True:
        try:
            await lead(
                election.settings,
                election.leases,
                work,
                election.clock,
                sleep=election.sleep,
                failing=lambda why: log.warning("lease %s: %s", election.settings.name, why),
            )
            return
        except LeadershipLost as lost:
            log.warning("another copy may lead now: %s", lost)
