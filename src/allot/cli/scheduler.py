"""allot scheduler: place pods, on our API server or on a real Kubernetes.

Several schedulers may run under different names (`spec.schedulerName`). They stand for one
lease, so that one of them works at a time: where the server does not guard devices, two would
give one device away twice. Our API server does, so there they may run side by side
(`--no-leader-elect`).
"""

import argparse

from allot import scheduler
from allot.allocation import LEAST_WASTE, POLICIES
from allot.apiserver import identities
from allot.informers import Telemetry

from . import component, flags
from .component import Running

LEASE = "kube-scheduler"


def arguments(parser: argparse.ArgumentParser) -> None:
    component.arguments(parser)
    parser.add_argument(
        "--name",
        type=flags.something,
        action="append",
        help="place pods with this spec.schedulerName; may be repeated",
    )
    parser.add_argument(
        "--lease",
        type=flags.object_name,
        default=LEASE,
        help="that this scheduler works under (default: %(default)s)",
    )
    parser.add_argument(
        "--policy",
        choices=sorted(POLICIES),
        default=LEAST_WASTE.name,
        help="for devices (default: %(default)s)",
    )
    parser.add_argument("--packed", action="store_true", help="fill nodes up, rather than spread pods")
    parser.add_argument(
        "--binding-timeout",
        type=flags.seconds,
        default=scheduler.Settings().binding_timeout_s,
        metavar="S",
        help="how long devices may take to be made ready (default: %(default)s)",
    )


def run(options: argparse.Namespace) -> int:
    defaults = scheduler.Settings()
    settings = scheduler.Settings(
        names=tuple(options.name or defaults.names),
        policy=POLICIES[options.policy],
        packed=options.packed,
        binding_timeout_s=options.binding_timeout,
    )

    async def work(on: Running) -> None:
        surroundings = scheduler.Surroundings(
            on.client, on.informers, on.clock, on.ids, on.metrics, Telemetry(on.metrics, on.clock), on.gates
        )
        await scheduler.run(surroundings, settings, on.election, standing=on.ready, leading=on.leading)

    return component.run("scheduler", options.lease, identities.SCHEDULER, options, work)
