"""allot scheduler: place pods, on our API server or on a real Kubernetes.

Several schedulers may run under different names (`spec.schedulerName`). They stand for one
lease, so that one of them works at a time: where the server does not guard devices, two would
give one device away twice. Our API server does, so there they may run side by side
(`--no-leader-elect`).
"""

import argparse
import sys

from allot import replay, scheduler
from allot.allocation import LEAST_WASTE, POLICIES
from allot.apiserver import identities
from allot.informers import Telemetry

from . import component, flags, recording
from .component import Running
from .wording import plain

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
    deciding(parser)
    recording.arguments(parser, "--record")
    parser.add_argument(
        "--binding-timeout",
        type=flags.seconds,
        default=scheduler.Settings().binding_timeout_s,
        metavar="S",
        help="how long devices may take to be made ready (default: %(default).0f)",
    )
    parser.add_argument(
        "--driver-timeout",
        type=flags.seconds,
        default=scheduler.Settings().driver_timeout_s,
        metavar="S",
        help="how long a driver may take to allocate a classic claim (default: %(default).0f)",
    )


def deciding(parser: argparse.ArgumentParser, *, unsaid: str = "") -> None:
    """What decides between nodes and devices that would do. Where nothing is said it is as `unsaid` says, or
    what a scheduler does by itself."""
    parser.add_argument(
        "--policy",
        choices=sorted(POLICIES),
        default=None if unsaid else LEAST_WASTE.name,
        help=f"for devices (default: {unsaid or LEAST_WASTE.name})",
    )
    parser.add_argument("--packed", action="store_true", help="short for --scoring-strategy MostAllocated")
    parser.add_argument(
        "--scoring-strategy",
        choices=[one.value for one in scheduler.Strategy],
        help="spread pods, fill nodes up, or as --scoring-shape says "
        f"(default: {unsaid or scheduler.Scoring().strategy.value})",
    )
    parser.add_argument(
        "--scoring-resource",
        type=flags.weighted,
        action="append",
        metavar="NAME[=WEIGHT]",
        help="what scoring looks at, extended resources too; may be repeated "
        f"(default: {unsaid or 'cpu, memory and pods'})",
    )
    parser.add_argument(
        "--scoring-shape",
        type=flags.shape,
        metavar="PERCENT=SCORE,...",
        help="how good a node is that is filled so far, from 0 to 10, e.g. 0=0,70=10,100=5",
    )


def run(options: argparse.Namespace) -> int:
    try:
        settings = settings_of(options)
    except ValueError as wrong:
        print(f"allot scheduler: {wrong}", file=sys.stderr)
        return 2

    try:
        writing = recording.begun(options) if options.record else None
    except (replay.BadRecord, OSError) as wrong:
        print(f"allot scheduler: --record: {plain(wrong)}", file=sys.stderr)
        return 2

    async def work(on: Running) -> None:
        dependencies = scheduler.Dependencies(
            on.client,
            on.informers,
            on.clock,
            on.ids,
            on.metrics,
            Telemetry(on.metrics, on.clock),
            on.gates,
            recorder=replay.Keeper(writing.put, on.clock) if writing is not None else scheduler.UNRECORDED,
        )
        pods = on.informers.use(scheduler.PODS)
        on.pages["/metrics/resources"] = lambda: scheduler.resource_page(pods.cache)
        try:
            await scheduler.run(dependencies, settings, on.election, ready=on.ready, leading=on.leading)
        finally:
            on.informers.leave(pods)

    try:
        return component.run("scheduler", options.lease, identities.SCHEDULER, options, work)
    finally:
        if writing is not None:
            writing.close()


def settings_of(options: argparse.Namespace) -> scheduler.Settings:
    """Raises ValueError where the options contradict each other."""
    return scheduler.Settings(
        names=tuple(options.name or scheduler.Settings().names),
        policy=POLICIES[options.policy],
        scoring=scoring_of(options),
        binding_timeout_s=options.binding_timeout,
        driver_timeout_s=options.driver_timeout,
    )


def scoring_of(options: argparse.Namespace) -> scheduler.Scoring:
    defaults, ratio = scheduler.Scoring(), scheduler.Strategy.REQUESTED_TO_CAPACITY_RATIO
    wanted = options.scoring_strategy or defaults.strategy.value
    if options.packed:
        if options.scoring_strategy not in (None, scheduler.Strategy.MOST_ALLOCATED.value):
            raise ValueError(f"--packed and --scoring-strategy {wanted} contradict each other")
        wanted = scheduler.Strategy.MOST_ALLOCATED.value
    strategy = scheduler.Strategy(wanted)
    if (options.scoring_shape is not None) != (strategy is ratio):
        raise ValueError(f"--scoring-shape goes with --scoring-strategy {ratio.value}, and that with a shape")
    resources = tuple(options.scoring_resource or defaults.resources)
    if len({name for name, _ in resources}) < len(resources):
        raise ValueError("--scoring-resource names one resource twice")
    return scheduler.Scoring(strategy, resources, options.scoring_shape or defaults.shape)
