"""How to say it: the verbs of the API over any transport.

    client = Client(transport)
    pods = client.resource("", "v1", "pods")
    pod = await pods.get("web-0", "shop")
    async for event in pods.watch("shop", resource_version=pod.resource_version): ...

Every answer that says no is raised as the `ApiError` it describes. Objects are
`allot.api.Object`: whole, whatever fields this program knows by name.

When a server answers 429 or 503 and says when to come back, the client comes
back, a bounded number of times: such a request was not carried out. Any other
failure is the caller's to judge. Warnings that come with an answer go to `warn`.
"""

import asyncio
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

import msgspec

from allot.api import Kind, Object, Request, Response, Transport, encode, errors, transaction

from . import together
from .gathering import Gathering
from .resource import Resource
from .retry import Sleep
from .writes import Write

ATTEMPTS = 10
RETRY_AFTER_S_MAX = 30
_BUSY = (429, 503)
_JSON = "application/json"
_WARNING = re.compile(r'\d{3} \S+ "((?:[^"\\]|\\.)*)"')  # code, agent, quoted text


class Client:
    def __init__(
        self,
        transport: Transport,
        *,
        user_agent: str = "allot",
        warn: Callable[[str], object] | None = None,
        sleep: Sleep = asyncio.sleep,
    ) -> None:
        self._transport = transport
        self._warn = warn
        self._sleep = sleep
        self._user_agent = user_agent
        self.has_transactions = True  # as long as the server has not said otherwise
        self._gathering = Gathering(self.together, sleep)

    def resource(self, group: str, version: str, plural: str, *, namespaced: bool = True) -> Resource:
        return Resource(self.send, group, version, plural, namespaced)

    def of(self, kind: Kind, version: str = "") -> Resource:
        """The resource of a table entry, in its preferred version unless another is named."""
        return self.resource(
            kind.group, version or kind.versions[0].name, kind.plural, namespaced=kind.namespaced
        )

    async def get(self, path: str, query: Mapping[str, str] | None = None) -> Any:
        """Any JSON document, decoded: /version, /apis, /openapi/v3."""
        response = await self.send("GET", path, query or {})
        return msgspec.json.decode(response.body)

    async def post(self, path: str, document: Mapping[str, Any]) -> Object:
        """What is created and not kept: access reviews."""
        response = await self.send("POST", path, {}, encode(document))
        return Object(response.body)

    async def together(self, writes: Sequence[Write], *, dry_run: bool = False) -> list[Object]:
        """Carry out all of the writes or none, as one transaction of the server; the answer to each.

        Raises what refused one of them; `member_of` says which. Only our own server has transactions: from
        any other this is NotFound, of no member, and `has_transactions` is False from then on.
        """
        query = {"dryRun": "All"} if dry_run else {}
        try:
            response = await self.send("POST", transaction.PATH, query, together.document(writes))
        except (errors.NotFound, errors.MethodNotAllowed, errors.Forbidden) as refused:
            if together.member_of(refused) is None:
                self.has_transactions = False
            raise
        return together.results(response.body)

    def gathered(self, writes: Sequence[Write], *, has_time: bool = False) -> Awaitable[list[Object]]:
        """As `together`; while others are under way it may be sent as one with those of other tasks. What has
        time waits for them a moment."""
        return self._gathering.together(writes, has_time=has_time)

    async def send(
        self,
        method: str,
        path: str,
        query: Mapping[str, str],
        body: bytes = b"",
        content_type: str = _JSON,
        accept: str = _JSON,
        wait_when_busy: bool = True,
    ) -> Response:
        """One request, answered. Raises the ApiError that the answer describes."""
        headers = {"accept": accept, "user-agent": self._user_agent}
        if body:
            headers["content-type"] = content_type
        request = Request(method, path, query, headers, body)
        for attempts_left in reversed(range(ATTEMPTS if wait_when_busy else 1)):
            response = await self._transport.send(request)
            if self._warn is not None:
                _pass_on_warnings(response, self._warn)
            if response.status < 400:
                return response
            wait_s = _retry_after_s(response)
            if response.status not in _BUSY or wait_s is None or not attempts_left:
                break
            await self._sleep(wait_s)
        raise await _refusal(response)

    async def close(self) -> None:
        """Ends every watch of this client."""
        await self._transport.close()


def _pass_on_warnings(response: Response, warn: Callable[[str], object]) -> None:
    for name, value in response.headers:
        match = _WARNING.search(value) if name.lower() == "warning" else None
        if match is not None:
            warn(re.sub(r"\\(.)", r"\1", match[1]))


def _retry_after_s(response: Response) -> float | None:
    for name, value in response.headers:
        if name.lower() == "retry-after" and value.isascii() and value.isdigit():
            return min(int(value[:6]), RETRY_AFTER_S_MAX)
    return None


async def _refusal(response: Response) -> errors.ApiError:
    body = response.body
    if response.stream is not None:
        body = b"".join([chunk async for chunk in response.stream])
    try:
        status = msgspec.json.decode(body)
    except msgspec.DecodeError:
        status = None
    if not isinstance(status, dict) or status.get("kind") != "Status":
        shown = body[:500].decode(errors="replace").strip()
        status = {"message": shown or f"the server answered {response.status}"}
    error = errors.from_status(status, response.status)
    if not error.retry_after_s:
        error.retry_after_s = int(_retry_after_s(response) or 0)
    return error
