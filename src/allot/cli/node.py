"""allot node: the agent of a node, until interrupted.

It registers a Node of that name, keeps its lease, runs the pods that are put there, as processes of this
machine or as containers of its containerd, and has DRA drivers prepare their devices: any driver that
registers below --root, in whatever language. Its credential is that of its node, and so are its rights:

    allot credentials system:node:worker-1
    allot node --name worker-1 --kubeconfig allot-data/credentials/system_node_worker-1.kubeconfig

Containers outlive it: started again with the same --root it goes on where it was.
"""

import argparse
import sys
from pathlib import Path

from allot.api import classic, numeric
from allot.apiserver import identities
from allot.informers import Telemetry
from allot.nodeagent import Agent, BadCheckpoint, HollowNode, Process, Settings, runtimes
from allot.wire import UnixSockets

from . import component, flags
from .component import Running
from .wording import first, plain

KUBELET_ROOT = Path("/var/lib/kubelet")
CDI_DIRECTORIES = (Path("/etc/cdi"), Path("/var/run/cdi"))


def arguments(parser: argparse.ArgumentParser) -> None:
    component.reaching(parser)
    parser.add_argument("--name", type=flags.object_name, required=True, help="of the Node")
    flags.add_runtime(parser, "what containers are")
    parser.add_argument(
        "--root",
        type=flags.path,
        default=KUBELET_ROOT,
        metavar="DIR",
        help="what it knows, and where drivers register: DIR/plugins_registry (default: %(default)s)",
    )
    parser.add_argument(
        "--cdi-dir",
        type=flags.path,
        action="append",
        metavar="DIR",
        help="where drivers put CDI specs; may be repeated, the last one counts most "
        f"(default: {', '.join(map(str, CDI_DIRECTORIES))})",
    )
    parser.add_argument(
        "--address", default="127.0.0.1", help="under which the API server reaches it (default: %(default)s)"
    )
    parser.add_argument(
        "--port", type=flags.port_number, default=0, help="that it serves logs on; default: one that is free"
    )
    parser.add_argument(
        "--compute-resources",
        action="store_true",
        help="devices of device plugins are compute resources of the node, with properties that classes "
        "select; else they are counted",
    )


def run(options: argparse.Namespace) -> int:
    root: Path = options.root.absolute()
    settings = Settings(
        options.name,
        root,
        tuple(options.cdi_dir or CDI_DIRECTORIES),
        options.address,
        options.port,
        heeds_classic=options.feature_gates[classic.limits.GATE],
        publishes_capacity=options.feature_gates[numeric.limits.GATE],
        exports_compute=options.compute_resources,
    )

    sockets = UnixSockets()

    async def work(on: Running) -> None:
        async with runtimes.attached(options.runtime, root, settings.cdi_directories, sockets) as runtime:
            process = Process(
                on.client,
                on.informers,
                on.clock,
                on.ids,
                on.metrics,
                Telemetry(on.metrics, on.clock),
                sockets,
                runtime,
                await on.access.credentials.current(),
                on.access.server.authorities,
            )
            await Agent(settings, process).run(on.ready)

    try:
        return component.run("node", "", identities.node(options.name), options, work)
    except ExceptionGroup as several:
        wrong = first(several)
        if not isinstance(wrong, BadCheckpoint | HollowNode | OSError):
            raise
        print(f"allot node: {plain(wrong)}", file=sys.stderr)
        return 1
