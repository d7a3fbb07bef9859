"""allot controllers: every control loop in one process, beside others of its kind."""

import argparse

from allot.apiserver import identities
from allot.base import Clock, Metrics
from allot.client import Client, Measured, Socket
from allot.controllers import ALL, AccountClients, Controller, Process
from allot.controllers import run as run_controllers

from . import component
from .component import Running

LEASE = "kube-controller-manager"

arguments = component.arguments


def run(options: argparse.Namespace) -> int:
    return component.run("controllers", LEASE, identities.CONTROLLER_MANAGER, options, _work)


async def _work(on: Running) -> None:
    clients = _clients(on)
    try:
        authorities = on.access.server.authorities.decode()
        process = Process.of(
            on.informers, clients, on.clock, on.rng, on.ids, on.metrics, on.gates, authorities
        )
        await run_controllers(process, ALL, on.election, ready=on.ready, leading=on.leading)
    finally:
        await clients.close()


def _clients(on: Running) -> "AccountClients | NamedClients":
    if on.socket is None:
        return AccountClients(on.access.server, on.client, on.clock, on.metrics)
    return NamedClients(on.socket, on.clock, on.metrics, on.access.server.authority)


class NamedClients:
    """One client a controller, each with the rights of its service account, which it need not prove."""

    def __init__(self, shared: Socket, clock: Clock, metrics: Metrics, host: str) -> None:
        self._socket = shared
        self._clock = clock
        self._metrics = metrics
        self._host = host
        self._clients: dict[str, Client] = {}

    def __call__(self, controller: Controller) -> Client:
        client = self._clients.get(controller.account)
        if client is None:
            transport = self._socket.transport(identities.controller(controller.account))
            measured = Measured(transport, self._metrics, self._clock, self._host)
            client = self._clients[controller.account] = Client(measured, user_agent=controller.name)
        return client

    async def close(self) -> None:
        for client in self._clients.values():
            await client.close()
