"""allot provider --groups FILE --listen ADDRESS: hollow nodes for autoscalers that speak gRPC.

Serves the cluster autoscaler's external provider protocol: `allot autoscaler`, or Kubernetes' own cluster
autoscaler with --cloud-provider=externalgrpc, grows and shrinks groups of hollow nodes by it. The groups'
FILE is that of `allot autoscaler`, and each group names a fleet. Nodes are written as the nodes themselves,
so a kubeconfig must be that of somebody who may act for nodes; `allot up` or `allot nodes` plays them.
"""

import argparse
import asyncio
import sys

from allot import autoscaler
from allot.apiserver import identities
from allot.fleet import CATALOGUE
from allot.wire import remote

from . import component, flags, groups
from .component import Running
from .nodes import clients_of_nodes


def arguments(parser: argparse.ArgumentParser) -> None:
    component.reaching(parser)
    parser.add_argument("--socket", type=flags.path, metavar="PATH", help="of an API server on this machine")
    parser.add_argument(
        "--groups", type=flags.something, required=True, metavar="FILE", help="each with a `fleet`"
    )
    parser.add_argument(
        "--listen",
        type=flags.something,
        default="127.0.0.1:8086",
        metavar="ADDRESS",
        help="HOST:PORT, where port 0 picks a free one, or unix:PATH; default: %(default)s",
    )
    for name, words in (
        ("--cert", "certificate to serve with; without one nothing is encrypted, and anybody may ask"),
        ("--key", "of the certificate"),
        ("--cacert", "whose certificates callers must have"),
    ):
        parser.add_argument(name, type=flags.something, metavar="FILE", help=words)
    parser.add_argument(
        "--delay", type=flags.seconds, default=0.0, metavar="S", help="that a node takes to come; default: 0"
    )
    parser.add_argument(
        "--no-devices",
        action="store_true",
        help="leave the devices out of templates, as providers do that know nothing of them",
    )


def run(options: argparse.Namespace) -> int:
    at = remote.Endpoint(
        address=options.listen, cert=options.cert or "", key=options.key or "", cacert=options.cacert or ""
    )
    try:
        entries = groups.read(options.groups).configuration.groups
        for at_number, entry in enumerate(entries):
            if entry.fleet not in CATALOGUE:
                raise autoscaler.BadGroups(
                    f"groups[{at_number}].fleet: {entry.fleet!r} is none of {', '.join(CATALOGUE)}"
                )
        at.check()
    except (autoscaler.BadGroups, autoscaler.BadConfiguration) as wrong:
        print(f"allot provider: {options.groups}: {wrong}", file=sys.stderr)
        return 2
    except remote.BadEndpoint as wrong:
        print(f"allot provider: --listen: {wrong}", file=sys.stderr)
        return 2

    async def work(on: Running) -> None:
        hollow = autoscaler.HollowProvider(on.client, clients_of_nodes(on))
        serving = autoscaler.Serving(
            on.client, hollow, entries, tells_devices=not options.no_devices, delay_s=options.delay
        )
        server, address = await remote.serve(at, serving.handlers())
        print(f"provider {address}", file=sys.stderr, flush=True)
        on.ready()
        working = asyncio.ensure_future(serving.run())
        try:
            await working
        finally:
            working.cancel()
            await server.close()

    try:
        return component.run("provider", "", identities.HOLLOW_NODES, options, work)
    except (remote.BadEndpoint, OSError) as refused:
        print(f"allot provider: {refused}", file=sys.stderr)
        return 1
