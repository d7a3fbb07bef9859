"""The autoscaler in a made-up world: the real one, in two copies that stand for one lease."""

from collections.abc import Mapping

from allot import autoscaler
from allot.api import Gates
from allot.apiserver import identities
from allot.base import Clock, Metrics, RandomIds
from allot.client import Client
from allot.informers import Election, Informers, Pace, Telemetry

from .component import Connect, Main
from .node_groups import NodeGroups
from .recording import Notes
from .schedulers import Lease, Luck
from .step import AUTOSCALERS

SETTINGS = autoscaler.Settings(unneeded_s=150.0, after_growth_s=120.0)
PATIENCE = autoscaler.Patience(arrival_s=150.0, backoff_s=60.0)
PACE = autoscaler.Pace(pause_s=8.0, period_s=30.0)
"""Minutes are made up here, and decisions are not: they cost most."""


def autoscalers(
    groups: NodeGroups, notes: Notes, luck: Luck, clocks: Mapping[str, Clock], lease: Lease, pace: Pace
) -> dict[str, Main]:
    times = {"unneeded_s": SETTINGS.unneeded_s, "after_growth_s": SETTINGS.after_growth_s}
    times |= {"arrival_s": PATIENCE.arrival_s, "backoff_s": PATIENCE.backoff_s}
    notes.note("", "SETTINGS", **times)

    def one(name: str) -> Main:
        async def main(connect: Connect) -> None:
            rng, clock, metrics = luck(name), clocks[name], Metrics()
            client, ids = Client(connect(identities.AUTOSCALER)), RandomIds(rng)
            leases = client.resource("coordination.k8s.io", "v1", "leases")
            mine = lease("allot-autoscaler", f"{name.replace(' ', '-')}-{ids.suffix(5)}")
            options = autoscaler.Options(groups.configuration(), SETTINGS, PATIENCE, PACE)
            async with Informers(client, rng, pace=pace) as informers:
                around = autoscaler.Dependencies(
                    client,
                    informers,
                    groups.way(name),
                    clock,
                    ids,
                    metrics,
                    Telemetry(metrics, clock),
                    Gates(),
                )
                election = Election(mine, leases, clock)
                await autoscaler.run(around, options, election, ready=lambda: notes.note(name, "TERM"))

        return main

    return {name: one(name) for name in AUTOSCALERS}
