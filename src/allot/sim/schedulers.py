"""Who schedules in a made-up world: the stand-in, or the real scheduler.

The real one runs in two copies that stand for one lease, and beside them alone under
another name for some of the pods, so that two give devices away at the same time.
"""

import random
from collections.abc import Callable, Mapping

from allot.api import Gates
from allot.apiserver import identities
from allot.base import Clock, Metrics, RandomIds
from allot.client import Client, LeaseSettings
from allot.informers import Election, Informers, Pace, Telemetry
from allot.scheduler import Dependencies, Settings, run

from .component import Connect, Main
from .forgetful import schedule as schedule_forgetfully
from .scheduling import schedule
from .script import OTHER_SCHEDULER
from .step import FORGETFUL, Scope

Luck = Callable[[str], random.Random]
"""A generator for a component's next life."""
Lease = Callable[[str, str], LeaseSettings]
"""The lease of a component by that name, for an identity."""


def schedulers(
    scope: Scope,
    luck: Luck,
    clocks: Mapping[str, Clock],
    lease: Lease,
    pace: Pace,
    *,
    mixed: bool,
    classic: bool = False,
) -> dict[str, Main]:
    """With `mixed`, the one that stands alone is of a version that knows no transactions. With `classic`
    there is one more, which remembers nothing."""

    def stand_in(name: str) -> Main:
        return lambda connect: schedule(connect, luck(name), pace)

    def real(name: str, settings: Settings, stands_for: str, *, is_old: bool = False) -> Main:
        async def main(connect: Connect) -> None:
            rng, clock, metrics = luck(name), clocks[name], Metrics()
            client = Client(connect(identities.SCHEDULER))
            client.has_transactions = not is_old
            leases = client.resource("coordination.k8s.io", "v1", "leases")
            ids = RandomIds(rng)
            mine = lease(stands_for, f"{name.replace(' ', '-')}-{ids.suffix(5)}")
            election = Election(mine, leases, clock) if stands_for else None
            async with Informers(client, rng, pace=pace) as informers:
                around = Dependencies(
                    client, informers, clock, ids, metrics, Telemetry(metrics, clock), Gates()
                )
                await run(around, settings, election)

        return main

    if not scope.real_scheduler:
        return {"scheduler": stand_in("scheduler")}
    other = Settings(names=(OTHER_SCHEDULER,))
    forgetful = {FORGETFUL: lambda connect: schedule_forgetfully(connect, luck(FORGETFUL), pace)}
    return {
        **(forgetful if classic else {}),
        "scheduler a": real("scheduler a", Settings(), "kube-scheduler"),
        "scheduler b": real("scheduler b", Settings(), "kube-scheduler"),
        "scheduler c": real("scheduler c", other, "", is_old=mixed),
    }
