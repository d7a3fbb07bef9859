"""allot controllers: every control loop in one process, beside others of its kind.

Prints `ready` once its caches are filled and it stands for election; `leading` on
stderr whenever it is elected. Interrupted, it gives the lease back, so that another
copy goes on at once.
"""

import argparse
import asyncio
import logging
import random
import signal
import socket
import sys
from pathlib import Path

from allot.api import Gates, UnknownGate
from allot.base import Metrics, RandomIds, SystemClock
from allot.client import Access, BadAccess, Client, HttpsTransport, LeaseSettings, Measured, kubeconfig
from allot.controllers import ALL, AccountClients, Process
from allot.controllers import run as run_controllers
from allot.informers import Election, Informers

from .apiserver import GATE_HELP, read_gates, run_loop
from .exposing import exposed

LEASE, LEASE_NAMESPACE = "kube-controller-manager", "kube-system"


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--kubeconfig", type=Path, help="default: KUBECONFIG, then ~/.kube/config")
    parser.add_argument("--context", default="", help="of the kubeconfig; default: its current one")
    parser.add_argument(
        "--leader-elect",
        action=argparse.BooleanOptionalAction,
        default=True,
        help="work only while holding the lease, so that several copies may run (default)",
    )
    parser.add_argument("--identity", default="", help="in the election; default: this host and a random end")
    parser.add_argument(
        "--metrics-port", type=int, metavar="P", help="serve /metrics on loopback; 0 picks a free port"
    )
    parser.add_argument("--feature-gates", default="", help=GATE_HELP)
    parser.add_argument("--lease-duration", type=int, default=15, metavar="S", help="default: 15")
    parser.add_argument("--renew-deadline", type=float, default=10.0, metavar="S", help="default: 10")
    parser.add_argument("--retry-period", type=float, default=2.0, metavar="S", help="default: 2")


def run(options: argparse.Namespace) -> int:
    logging.basicConfig(level=logging.INFO, stream=sys.stderr, format="%(levelname).1s %(name)s: %(message)s")
    try:
        gates = read_gates(options.feature_gates)
        access = kubeconfig.load(options.kubeconfig or "", context=options.context)
    except (BadAccess, OSError, UnknownGate) as wrong:
        print(f"allot controllers: {wrong}", file=sys.stderr)
        return 1
    return run_loop(_serve(access, gates, options))


async def _serve(access: Access, gates: Gates, options: argparse.Namespace) -> int:
    working = asyncio.create_task(_work(access, gates, options))
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, working.cancel)
    try:
        await working
    except asyncio.CancelledError:
        return 0
    return 1  # control loops do not end by themselves


async def _work(access: Access, gates: Gates, options: argparse.Namespace) -> None:
    clock, rng, metrics = SystemClock(), random.Random(), Metrics()
    ids = RandomIds(rng)
    transport = Measured(HttpsTransport(access), metrics, clock, access.server.authority)
    client = Client(transport, user_agent="allot-controllers")
    clients = AccountClients(access.server, client, clock, metrics)
    try:
        async with (
            exposed(metrics, options.metrics_port) as port,
            Informers(client, rng, metrics=metrics) as informers,
        ):
            if options.metrics_port is not None:
                print(f"metrics http://127.0.0.1:{port}/metrics", file=sys.stderr, flush=True)
            await run_controllers(
                Process.of(informers, clients, clock, rng, ids, metrics, gates),
                ALL,
                _election(options, client, clock, ids) if options.leader_elect else None,
                standing=lambda: print("ready", flush=True),
                leading=lambda: print("leading", file=sys.stderr, flush=True),
            )
    finally:
        await clients.close()
        await client.close()


def _election(options: argparse.Namespace, client: Client, clock: SystemClock, ids: RandomIds) -> Election:
    settings = LeaseSettings(
        LEASE,
        LEASE_NAMESPACE,
        options.identity or f"{socket.gethostname()}_{ids.uid()}",
        options.lease_duration,
        options.renew_deadline,
        options.retry_period,
    )
    return Election(settings, client.resource("coordination.k8s.io", "v1", "leases"), clock)
