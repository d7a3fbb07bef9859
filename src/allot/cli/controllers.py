"""allot controllers: every control loop in one process, beside others of its kind."""

import argparse

from allot.controllers import ALL, AccountClients, Process
from allot.controllers import run as run_controllers

from . import component
from .component import Running

LEASE = "kube-controller-manager"

arguments = component.arguments


def run(options: argparse.Namespace) -> int:
    return component.run("controllers", LEASE, options, _work)


async def _work(on: Running) -> None:
    clients = AccountClients(on.access.server, on.client, on.clock, on.metrics)
    try:
        authorities = on.access.server.authorities.decode()
        process = Process.of(
            on.informers, clients, on.clock, on.rng, on.ids, on.metrics, on.gates, authorities
        )
        await run_controllers(process, ALL, on.election, standing=on.ready, leading=on.leading)
    finally:
        await clients.close()
