"""allot up: a whole cluster in one process, until interrupted.

API server, controllers, scheduler and hollow nodes: nodes without a machine, with devices of a fleet
from the catalogue, on which pods start, run and end. With --agents also nodes with a machine: this one.
Prints `ready` when it serves and every node has registered. Started again on the same data directory it
goes on where it was.
"""

import argparse
import asyncio
import signal
import sys

from allot.api import errors
from allot.apiserver import Options, ServingOptions
from allot.cluster import ClusterOptions, cluster, way_to_nodes
from allot.fleet import UnknownFleet, fleet
from allot.store import StoreError

from . import auditing, encrypting, flags, played
from .apiserver import arguments as server_arguments
from .apiserver import run_loop
from .wording import plain


def arguments(parser: argparse.ArgumentParser) -> None:
    server_arguments(parser, log_level="warning")
    played.arguments(parser)
    parser.add_argument(
        "--agents",
        type=flags.count,
        default=0,
        metavar="N",
        help="further nodes, which are real: pods on them are processes of this machine and get the fleet's "
        "devices from drivers over sockets; default: none",
    )


def run(options: argparse.Namespace) -> int:
    if options.fleet == played.LIST:
        return played.show_fleets()
    try:
        wanted = _wanted(options)
    except (UnknownFleet, ValueError) as wrong:
        print(f"allot up: {wrong}", file=sys.stderr)
        return 2
    try:
        return run_loop(_stay_up(wanted))
    except (OSError, StoreError, ValueError, errors.ApiError) as wrong:
        print(f"allot up: {plain(wrong)}", file=sys.stderr)
        return 1


def _wanted(options: argparse.Namespace) -> ClusterOptions:
    server = Options(gates=options.feature_gates, anonymous_health=options.anonymous_health)
    serving = ServingOptions(
        options.data_dir,
        options.store,
        options.host,
        options.port,
        tuple(options.name),
        server,
        way_to_nodes,
        options.socket,
        auditing.settings(options),
        encrypting.settings(options),
    )
    nodes = fleet(options.fleet, options.nodes)
    stages, renewing = played.stages(options), played.renewing(options)
    return ClusterOptions(serving, nodes, stages, renewing, options.agents)


async def _stay_up(options: ClusterOptions) -> int:
    working = asyncio.create_task(_work(options))

    def stop() -> None:
        if not working.cancelling():  # asked twice, it is still allowed to put things away
            working.cancel()

    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stop)
    try:
        lost = await working
    except asyncio.CancelledError:
        return 0
    print(f"allot up: ended: {lost}", file=sys.stderr)
    return 1


async def _work(options: ClusterOptions) -> str:
    """Until cancelled, or until the server has lost its store: then why."""
    async with cluster(options) as running:
        serving = running.serving
        print(f"serving {serving.url}, kubeconfig {serving.kubeconfig}", file=sys.stderr)
        print("ready", flush=True)
        return await serving.lost()
