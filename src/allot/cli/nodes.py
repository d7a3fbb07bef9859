"""allot nodes: hollow nodes alone, on our API server or on a real Kubernetes, until interrupted.

Nodes without a machine, with devices of a fleet from the catalogue, on which pods start, run and end. Every
node writes as itself (`system:node:NAME`) and is judged like any other: at once through --socket; with
a kubeconfig by impersonation, so it must be that of somebody who may act for nodes (an administrator).
"""

import argparse
import sys
from collections.abc import Callable

from msgspec.structs import replace

from allot import hollow
from allot.api import Request, Response, Transport, User
from allot.apiserver import identities
from allot.client import Client
from allot.fleet import UnknownFleet, fleet
from allot.informers import Telemetry

from . import component, played
from .component import Running

LEASE = "allot-hollow-nodes"


def arguments(parser: argparse.ArgumentParser) -> None:
    component.arguments(parser)
    played.arguments(parser)


def run(options: argparse.Namespace) -> int:
    if options.fleet == played.LIST:
        return played.show_fleets()
    try:
        wanted = fleet(options.fleet, options.nodes)
    except UnknownFleet as unknown:
        print(f"allot nodes: {unknown}", file=sys.stderr)
        return 2

    async def work(on: Running) -> None:
        actors = hollow.Actors(on.client, clients_of_nodes(on), on.clock, played.renewing(options))
        process = hollow.Process(actors, on.informers, Telemetry(on.metrics, on.clock))
        await hollow.run(process, wanted, played.stages(options), on.election, ready=on.ready)

    return component.run("nodes", LEASE, identities.HOLLOW_NODES, options, work)


class ActingAs:
    """The same way to the server, taken for somebody else. It is not this one's to close."""

    def __init__(self, way: Transport, user: User) -> None:
        self._way = way
        groups = [group for group in user.groups if group != identities.AUTHENTICATED]
        self._headers = {"impersonate-user": user.name, "impersonate-group": groups[0]}

    async def send(self, request: Request) -> Response:
        return await self._way.send(replace(request, headers={**request.headers, **self._headers}))

    async def close(self) -> None: ...


def clients_of_nodes(on: Running) -> Callable[[str], Client]:
    clients: dict[str, Client] = {}

    def of_node(name: str) -> Client:
        if name not in clients:
            user = identities.node(name)
            way = on.socket.transport(user) if on.socket is not None else ActingAs(on.transport, user)
            clients[name] = Client(way, user_agent="hollow-node")
        return clients[name]

    return of_node
