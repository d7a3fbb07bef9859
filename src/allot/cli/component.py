"""One component as its own process: where the server is, who leads, what is shown.

`allot controllers` and `allot scheduler` differ in what they do and in nothing else.
Each prints `ready` once it can work and `leading` on stderr whenever it is elected.
Interrupted, it gives the lease back, so that another copy goes on at once.
"""

import argparse
import asyncio
import os
import random
import signal
import socket
import sys
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

from allot.api import Gates, Transport, User
from allot.base import CannotListen, Metrics, Page, RandomIds, SystemClock, exposed, logs
from allot.client import (
    Access,
    BadAccess,
    Client,
    HttpsTransport,
    LeaseSettings,
    Measured,
    Socket,
    kubeconfig,
)
from allot.informers import Election, Informers, Pace

from . import flags
from .apiserver import run_loop
from .wording import plain

LEASE_NAMESPACE = "kube-system"
PACE = Pace(absent_s=30.0)
"""A kind that the server does not have may be switched on while this runs, and components are few."""


@dataclass(frozen=True, slots=True)
class Running:
    """What a component is handed."""

    access: Access
    socket: Socket | None  # then that is the way to the server
    transport: Transport  # what `client` goes by
    client: Client
    informers: Informers
    clock: SystemClock
    rng: random.Random
    ids: RandomIds
    metrics: Metrics
    gates: Gates
    election: Election | None
    pages: dict[str, Page]  # what it shows beside its metrics, by path

    @staticmethod
    def ready() -> None:
        print("ready", flush=True)

    @staticmethod
    def leading() -> None:
        print("leading", file=sys.stderr, flush=True)


Work = Callable[[Running], Awaitable[None]]


def arguments(parser: argparse.ArgumentParser) -> None:
    reaching(parser)
    parser.add_argument(
        "--socket",
        type=flags.path,
        metavar="PATH",
        help="of an API server on this machine (DATA-DIR/api.sock); faster, and needs no credential",
    )
    parser.add_argument(
        "--leader-elect",
        action=argparse.BooleanOptionalAction,
        default=True,
        help="work only while holding the lease, so that several copies may run (default)",
    )
    parser.add_argument("--identity", default="", help="in the election; default: this host and a random end")
    parser.add_argument(
        "--lease-duration", type=flags.whole_seconds, default=15, metavar="S", help="default: 15"
    )
    parser.add_argument("--renew-deadline", type=flags.seconds, default=10.0, metavar="S", help="default: 10")
    parser.add_argument("--retry-period", type=flags.seconds, default=2.0, metavar="S", help="default: 2")


def reaching(parser: argparse.ArgumentParser) -> None:
    """For a component that stands for no election and comes in by the front door."""
    logs.arguments(parser, "info")
    parser.add_argument(
        "--kubeconfig",
        type=flags.path,
        help="default: KUBECONFIG, then ~/.kube/config, then in a pod its service account",
    )
    parser.add_argument("--context", default="", help="of the kubeconfig; default: its current one")
    parser.add_argument(
        "--metrics-port",
        type=flags.port_number,
        metavar="P",
        help="serve /metrics, and of the scheduler /metrics/resources, on loopback; 0 picks a free port",
    )
    flags.add_feature_gates(parser)
    parser.set_defaults(socket=None, leader_elect=False)


def run(name: str, lease: str, user: User, options: argparse.Namespace, work: Work) -> int:
    """Run until interrupted. `name` is the command's, for messages and the user agent; `user` is
    whom it acts for where a socket leads to the server, and nobody's credential says it."""
    wrong_times = _wrong_times(options)
    if wrong_times:
        print(f"allot {name}: {wrong_times}", file=sys.stderr)
        return 2
    try:
        access = _access(options)
    except (BadAccess, OSError) as wrong:
        print(f"allot {name}: {plain(wrong)}", file=sys.stderr)
        return 1
    try:
        return run_loop(_until_interrupted(_work(name, lease, user, access, options, work)))
    except CannotListen as taken:
        print(f"allot {name}: --metrics-port: {taken}", file=sys.stderr)
        return 1


def _access(options: argparse.Namespace) -> Access:
    """By a kubeconfig; in a pod that has none, by what the cluster put there."""
    path = _kubeconfig(options)
    is_named = bool(path or options.context or os.environ.get("KUBECONFIG"))
    is_there = any(file.exists() for file in kubeconfig.default_files(os.environ))
    if not is_named and not is_there and "KUBERNETES_SERVICE_HOST" in os.environ:
        return kubeconfig.in_cluster()
    return kubeconfig.load(path, context=options.context)


def _kubeconfig(options: argparse.Namespace) -> Path | str:
    """Beside a socket there is one too: it has the server's address and certificate."""
    if options.kubeconfig or not options.socket:
        return options.kubeconfig or ""
    beside: Path = options.socket.parent / "kubeconfig"
    if not beside.exists():
        raise BadAccess(
            f"--socket {options.socket}: no API server has run there, for {beside} does not exist "
            "(--kubeconfig names another)"
        )
    return beside


def _wrong_times(options: argparse.Namespace) -> str:
    """A lease is renewed in time only if it is tried, and given up, before others may take it."""
    if not options.leader_elect or options.retry_period < options.renew_deadline < options.lease_duration:
        return ""
    return (
        f"--retry-period ({options.retry_period:g}) must be below --renew-deadline "
        f"({options.renew_deadline:g}), and that below --lease-duration ({options.lease_duration})"
    )


async def _until_interrupted(work: Awaitable[None]) -> int:
    working = asyncio.ensure_future(work)
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, working.cancel)
    try:
        await working
    except asyncio.CancelledError:
        return 0
    return 1  # components do not end by themselves


async def _work(
    name: str, lease: str, user: User, access: Access, options: argparse.Namespace, work: Work
) -> None:
    clock, rng, metrics = SystemClock(), random.Random(), Metrics()
    pages: dict[str, Page] = {}
    ids = RandomIds(rng)
    shared = Socket(options.socket) if options.socket else None
    way = shared.transport(user) if shared else HttpsTransport(access)
    transport = Measured(way, metrics, clock, access.server.authority)
    client = Client(transport, user_agent=f"allot-{name}")
    try:
        async with (
            exposed(metrics, options.metrics_port, pages) as port,
            Informers(client, rng, metrics=metrics, pace=PACE) as informers,
        ):
            if options.metrics_port is not None:
                print(f"metrics http://127.0.0.1:{port}/metrics", file=sys.stderr, flush=True)
            election = _election(lease, options, client, clock, ids) if options.leader_elect else None
            gates: Gates = options.feature_gates
            await work(
                Running(
                    access,
                    shared,
                    transport,
                    client,
                    informers,
                    clock,
                    rng,
                    ids,
                    metrics,
                    gates,
                    election,
                    pages,
                )
            )
    finally:
        await client.close()


def _election(
    lease: str, options: argparse.Namespace, client: Client, clock: SystemClock, ids: RandomIds
) -> Election:
    settings = LeaseSettings(
        lease,
        LEASE_NAMESPACE,
        options.identity or f"{socket.gethostname()}_{ids.uid()}",
        options.lease_duration,
        options.renew_deadline,
        options.retry_period,
    )
    return Election(settings, client.resource("coordination.k8s.io", "v1", "leases"), clock)
