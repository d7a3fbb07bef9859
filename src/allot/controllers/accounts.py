"""Every controller as its own service account, from one credential of the process.

The process may do little itself: read, lead, and ask for tokens. Each controller acts
with a token of its service account in kube-system, so that what one may do, another
may not. Tokens live an hour and are renewed well before they run out.
"""

import asyncio

from allot.api import age, errors
from allot.base import Clock, Metrics
from allot.client import Access, Client, Credential, HttpsTransport, Measured, Server

from .controller import Controller

NAMESPACE = "kube-system"
LIFETIME_S = 3600
RENEW_AT = 0.8  # of the lifetime


class AccountToken:
    """Credentials of a service account. The account is made if it is missing."""

    def __init__(self, name: str, process: Client, clock: Clock) -> None:
        self._name = name
        self._accounts = process.resource("", "v1", "serviceaccounts")
        self._clock = clock
        self._token = ""
        self._renew_at_s = 0.0
        self._one_at_a_time = asyncio.Lock()

    async def current(self) -> Credential:
        async with self._one_at_a_time:
            if not self._token or self._clock.monotonic_s() >= self._renew_at_s:
                await self._renew()
        return Credential.token(self._token)

    async def refused(self) -> bool:
        """The account may have been deleted and made again since."""
        self._token = ""
        return True

    async def _renew(self) -> None:
        request = {
            "apiVersion": "authentication.k8s.io/v1",
            "kind": "TokenRequest",
            "spec": {"expirationSeconds": LIFETIME_S},
        }
        try:
            answer = await self._accounts.create_subresource(self._name, "token", request, NAMESPACE)
        except errors.NotFound:
            await self._make_account()
            answer = await self._accounts.create_subresource(self._name, "token", request, NAMESPACE)
        status = answer.fields.get("status") or {}
        self._token = status.get("token") or ""
        until = age.moment(status.get("expirationTimestamp") or "")
        left_s = (until - self._clock.now()).total_seconds() if until is not None else LIFETIME_S
        self._renew_at_s = self._clock.monotonic_s() + RENEW_AT * left_s

    async def _make_account(self) -> None:
        metadata = {"name": self._name, "namespace": NAMESPACE}
        try:
            await self._accounts.create({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata})
        except errors.AlreadyExists:
            return


class AccountClients:
    """One client a controller, each with its own rights; `close` ends them all."""

    def __init__(self, server: Server, process: Client, clock: Clock, metrics: Metrics) -> None:
        self._server = server
        self._process = process
        self._clock = clock
        self._metrics = metrics
        self._clients: dict[str, Client] = {}

    def __call__(self, controller: Controller) -> Client:
        client = self._clients.get(controller.account)
        if client is None:
            token = AccountToken(controller.account, self._process, self._clock)
            transport = HttpsTransport(Access(self._server, token), clock=self._clock)
            measured = Measured(transport, self._metrics, self._clock, self._server.authority)
            client = self._clients[controller.account] = Client(measured, user_agent=controller.name)
        return client

    async def close(self) -> None:
        for client in self._clients.values():
            await client.close()
