"""allot up: a whole cluster, until interrupted.

API server, controllers, scheduler and hollow nodes: nodes without a machine, with devices of a fleet
from the catalogue, on which pods start, run and end. With --agents also nodes with a machine, and with --here
this machine, with the devices that it has.
Prints `ready` when it serves and every node has registered. Started again on the same data directory it
goes on where it was.

Where there is a second core the API server has a process of its own. That one is begun first of all, and
whatever else takes long to import is imported while it imports its own.
"""

import argparse
import asyncio
import os
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from allot.api import errors
from allot.cluster import ServerProcess
from allot.store import StoreError

from . import flags, played
from .apiserver import arguments as server_arguments
from .apiserver import run_loop, serving_options
from .wording import first, plain

if TYPE_CHECKING:
    from allot.cluster import ClusterOptions, Machine

_CDI_DIR = Path("/var/run/cdi")
_SERVER = "allot.cli.apiserver_of_up"


def arguments(parser: argparse.ArgumentParser) -> None:
    server_arguments(parser, log_level="warning")
    played.arguments(parser)
    parser.set_defaults(nodes=None, fleet=None, claims_with_pods=True)
    parser.add_argument(
        "--here",
        action="store_true",
        help="this machine as a node, under its own name, with every driver that finds something; hollow "
        "nodes only if --nodes or --fleet asks for them",
    )
    parser.add_argument(
        "--agents",
        type=flags.count,
        default=0,
        metavar="N",
        help="further nodes, which are real: pods on them are processes of this machine and get the fleet's "
        "devices from drivers over sockets; default: none",
    )
    flags.add_runtime(parser, "what containers on --here and --agents are")
    parser.add_argument(
        "--cdi-dir",
        type=flags.path,
        metavar="DIR",
        help="where drivers of those put CDI specs; a containerd of --runtime has to read them there "
        f"(default: {_CDI_DIR} with a containerd, else a place of its own for each)",
    )
    parser.add_argument(
        "--one-process",
        action="store_true",
        help="keep the API server in the process of the rest, also where there is a second core",
    )


def run(options: argparse.Namespace) -> int:
    if options.fleet == played.LIST:
        return played.show_fleets()
    apart = ServerProcess(_SERVER, str(options.data_dir)) if _has_two_processes(options) else None
    try:
        return _run(options, apart)
    finally:
        if apart is not None:
            apart.close()


def _has_two_processes(options: argparse.Namespace) -> bool:
    """They talk over the server's socket."""
    return not options.one_process and bool(options.socket) and len(os.sched_getaffinity(0)) > 1


def _run(options: argparse.Namespace, apart: ServerProcess | None) -> int:
    from allot.cluster import CannotServe
    from allot.fleet import UnknownFleet

    try:
        wanted = _wanted(options)
    except (UnknownFleet, ValueError) as wrong:
        print(f"allot up: {wrong}", file=sys.stderr)
        return 2
    try:
        return run_loop(_stay_up(wanted, apart))
    except (OSError, StoreError, ValueError, errors.ApiError, CannotServe) as wrong:
        print(f"allot up: {plain(wrong)}", file=sys.stderr)
        return 1
    except ExceptionGroup as several:  # of a part: an agent whose sockets' paths are too long, say
        failed = first(several)
        if not isinstance(failed, OSError | ValueError):
            raise
        print(f"allot up: {plain(failed)}", file=sys.stderr)
        return 1


def _wanted(options: argparse.Namespace) -> "ClusterOptions":
    from allot.cluster import ClusterOptions, Containers
    from allot.fleet import fleet

    nodes = fleet(*_fleet(options))
    stages, renewing = played.stages(options), played.renewing(options)
    machine = _machine(options.data_dir) if options.here else None
    cdi_dir = options.cdi_dir or (None if options.runtime == flags.PROCESS else _CDI_DIR)
    containers = Containers(options.runtime, cdi_dir)
    serving = serving_options(options)
    return ClusterOptions(serving, nodes, stages, renewing, options.agents, machine, containers)


def _fleet(options: argparse.Namespace) -> tuple[str, int]:
    """Beside a machine whose pods do something, nodes that only seem to are there if they are asked for."""
    is_asked = not options.here or options.fleet is not None or options.nodes is not None
    name, many = (played.FLEET, played.NODES) if is_asked else ("plain", 0)
    return options.fleet or name, many if options.nodes is None else options.nodes


def _machine(data_dir: Path) -> "Machine":
    """And one line about it."""
    from allot.cluster import this_machine

    found = this_machine(data_dir)
    print(found.sentence, file=sys.stderr)
    return found


async def _stay_up(options: "ClusterOptions", apart: ServerProcess | None) -> int:
    ending = asyncio.Event()
    working = asyncio.create_task(_work(options, apart, ending))

    def stop() -> None:
        """Asked twice, by signals to both processes say, it is still allowed to put things away."""
        if not working.cancelling() and not ending.is_set():
            working.cancel()

    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stop)
    try:
        why = await working
    except asyncio.CancelledError:
        return 0
    if why:
        print(f"allot up: ended: {why}", file=sys.stderr)
    return 1 if why else 0


async def _work(options: "ClusterOptions", apart: ServerProcess | None, ending: asyncio.Event) -> str:
    """Until cancelled, or until the server is at its end: then why, or nothing where that was asked for.
    `ending` is set when that has come, and everything is put away."""
    from allot.cluster import ServerEnded, cluster

    try:
        async with cluster(options, apart) as running:
            server = running.server
            print(f"serving {server.url}, kubeconfig {server.kubeconfig}", file=sys.stderr)
            print("ready", flush=True)
            why = await server.over()
            ending.set()
            return why
    except ServerEnded as ended:
        return str(ended)
