"""A driver's controller as a program: its flags, and its end.

    --kubeconfig FILE [--lease-namespace NS] [--no-leader-election] [--extender-port P] [--metrics-port P]

It prints `ready` once it follows the API, and works until it is interrupted: while it leads, if several
run. What was begun comes to its end, here or in the process that leads next.
"""

import argparse
import asyncio
import os
import socket
import sys
from collections.abc import Sequence
from contextlib import AsyncExitStack
from pathlib import Path

from allot.base import CannotListen, Metrics, exposed, logs
from allot.client import Access, BadAccess, Client, HttpsTransport

from ..main import access_from, until_interrupted
from .calling import Controller
from .extender import extending
from .working import LEASE_NAMESPACE, Around, controlling, lease_of


def arguments(parser: argparse.ArgumentParser) -> None:
    logs.arguments(parser, "info")
    parser.add_argument(
        "--kubeconfig",
        type=Path,
        metavar="FILE",
        help="default: KUBECONFIG, then ~/.kube/config, then in a pod its service account",
    )
    parser.add_argument(
        "--lease-namespace",
        default=LEASE_NAMESPACE,
        metavar="NS",
        help=f"where the lease lies that several processes share; default: {LEASE_NAMESPACE}",
    )
    parser.add_argument(
        "--no-leader-election", action="store_true", help="work at once: no other process of this driver runs"
    )
    parser.add_argument(
        "--extender-port",
        type=int,
        metavar="P",
        help="answer autoscalers on loopback, if the driver can; 0 picks a free port",
    )
    parser.add_argument(
        "--metrics-port", type=int, metavar="P", help="serve /metrics on loopback; 0 picks a free port"
    )


def main(controller: Controller, argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=f"controller of the DRA driver {controller.name}")
    arguments(parser)
    options = parser.parse_args(argv)
    logs.begin(options.log_level)
    return run(controller, options, parser.prog)


def run(controller: Controller, options: argparse.Namespace, program: str) -> int:
    """Until interrupted. What keeps it from working is one line."""
    if options.extender_port is not None and controller.snapshot is None:
        print(f"{program}: --extender-port: {controller.name} cannot answer autoscalers", file=sys.stderr)
        return 2
    try:
        return asyncio.run(until_interrupted(_serve(controller, options, access_from(options.kubeconfig))))
    except (CannotListen, BadAccess, OSError) as wrong:
        print(f"{program}: {wrong}", file=sys.stderr)
    return 1


async def _serve(controller: Controller, options: argparse.Namespace, access: Access) -> None:
    metrics = Metrics()
    client = Client(HttpsTransport(access), user_agent=f"allot-driver-controller/{controller.name}")
    identity = f"{socket.gethostname()}_{os.getpid()}"
    lease = None if options.no_leader_election else lease_of(controller, identity, options.lease_namespace)
    async with AsyncExitStack() as stack:
        stack.push_async_callback(client.close)
        port = await stack.enter_async_context(exposed(metrics, options.metrics_port))
        around = Around(client, metrics=metrics, lease=lease)
        work = await stack.enter_async_context(controlling(controller, around))
        if options.extender_port is not None:
            answers_at = await stack.enter_async_context(extending(controller, work, options.extender_port))
            print(f"extender http://127.0.0.1:{answers_at}", file=sys.stderr, flush=True)
        if options.metrics_port is not None:
            print(f"metrics http://127.0.0.1:{port}/metrics", file=sys.stderr, flush=True)
        print("ready", flush=True)
        await asyncio.Event().wait()
