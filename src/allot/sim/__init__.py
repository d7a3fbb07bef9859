"""The same cluster in a made-up world: virtual time, faults, checkers.

    loop        an event loop whose time is made up
    lots        chance by name: one thing's luck is not another's
    script      what people do and what befalls components, decided beforehand
    people, nodes, scheduling   who lives in the world, in a page each; things: what they write;
                schedulers: or the real one
    agents      machines with the real agent and drivers; machines: each of them, its disk (disk),
                its containers (containers); ways: a node's way to the server
    component   something that can be killed at any moment and comes back
    faults      what goes wrong between a component and its server; trouble: and with itself
    unsteady    a store behind which requests meet in the middle
    recording   everything that happened, as the API told it; journal: what no API tells
    checkers/   the promises of the system, one file each
    world       a whole cluster in one made-up hour, from one seed
    running     many seeds; shrinking: from a seed that fails to a short story

Never imported by what it simulates.
"""

from .running import FAULTS, Outcome, Total, faults_of, run_many, run_one
from .shrinking import Story, shrink
from .step import (
    HOUR_S,
    PODS,
    SHARE_WITH_AGENTS,
    SHARE_WITH_AUTOSCALER,
    SHARE_WITH_CLASSIC,
    SHARE_WITH_COMPUTE,
    SHARE_WITH_NUMERIC,
    Scope,
)
from .world import Cut, Report, World, simulate

__all__ = [
    "FAULTS",
    "HOUR_S",
    "PODS",
    "SHARE_WITH_AGENTS",
    "SHARE_WITH_AUTOSCALER",
    "SHARE_WITH_CLASSIC",
    "SHARE_WITH_COMPUTE",
    "SHARE_WITH_NUMERIC",
    "Cut",
    "Outcome",
    "Report",
    "Scope",
    "Story",
    "Total",
    "World",
    "faults_of",
    "run_many",
    "run_one",
    "shrink",
    "simulate",
]
