"""The client of the drivers' extenders: one session a cycle, whole nodes in, those that fit out.

    extenders = configured(Path("extenders.yaml").read_text())
    cycle = await extenders["gpu.example.com"].start()
    fits = await cycle.filter(pod, nodes)              # nodes may be imagined
    await cycle.select(pod, fits.nodes[0])             # later answers of the cycle count this pod

The configuration names the webhook of each driver:

    extenders:
    - driver: gpu.example.com
      url: http://127.0.0.1:8099/gpu

A cycle whose session the driver no longer keeps raises SessionLost: what was decided in it is void, and a new
cycle begins.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, Final, NamedTuple

import msgspec
import yaml

from allot.api import Request, Transport, errors
from allot.client import Access, BadAccess, HttpsTransport, Limits, Server

ANSWER_S: Final = 30.0
Fields = Mapping[str, Any]


class ExtenderFailed(Exception):
    """The driver did not answer, or not in a way that can be read. The message says what is known."""


class SessionLost(ExtenderFailed):
    """The driver does not keep the session any more."""


class CannotPlace(Exception):
    """The driver says that the pod cannot be on that node."""


class BadConfiguration(ValueError):
    """The message names the place."""


class Filtered(NamedTuple):
    nodes: tuple[Fields, ...]  # that suit, as they were handed in
    failed: Mapping[str, str]  # why the others do not, by name


class Extender:
    """One driver's webhook."""

    def __init__(self, url: str, transport: Transport | None = None) -> None:
        """Raises BadAccess."""
        server = Server.at(url)
        self.url = str(server)
        self._transport = transport or HttpsTransport(Access(server), limits=Limits(answer_s=ANSWER_S))

    async def start(self) -> "Cycle":
        """A cycle, answered from the driver's state as it is now. Raises ExtenderFailed."""
        answer = await self.call("start", {}, "")
        session = answer.get("Session")
        if not isinstance(session, str) or not session:
            raise ExtenderFailed(f"{self.url}: `start` answered no session")
        return Cycle(self, session)

    async def call(self, verb: str, body: Fields, session: str) -> Fields:
        headers = {"content-type": "application/json", **({"session": session} if session else {})}
        request = Request("POST", f"/{verb}", {}, headers, msgspec.json.encode(body))
        try:
            response = await self._transport.send(request)
        except errors.ApiError as away:
            raise ExtenderFailed(f"{self.url}: {verb}: {away}") from away
        answer = _decoded(response.body)
        if response.status == HTTPStatus.OK and answer is not None:
            return answer
        why = (answer or {}).get("Error") or response.body[:200].decode(errors="replace")
        if response.status == HTTPStatus.GONE:
            raise SessionLost(f"{self.url}: {verb}: {why}")
        raise ExtenderFailed(f"{self.url}: {verb}: status {response.status}: {why}")

    async def close(self) -> None:
        await self._transport.close()


@dataclass(frozen=True, slots=True)
class Cycle:
    """One session: every method raises SessionLost once the driver has dropped it, else ExtenderFailed."""

    extender: Extender
    session: str

    async def filter(self, pod: Fields, nodes: Sequence[Fields]) -> Filtered:
        answer = await self._call("filter", {"Pod": pod, "Nodes": {"items": [*nodes]}})
        if answer.get("Error"):
            raise ExtenderFailed(f"{self.extender.url}: filter: {answer['Error']}")
        failed = {**(answer.get("FailedNodes") or {}), **(answer.get("FailedAndUnresolvableNodes") or {})}
        kept = {_name(node) for node in (answer.get("Nodes") or {}).get("items") or ()}
        suits = tuple(node for node in nodes if _name(node) in kept)
        return Filtered(suits, {name: str(why) for name, why in failed.items()})

    async def select(self, pod: Fields, node: Fields) -> None:
        """The pod is meant for the node. Raises CannotPlace."""
        answer = await self._call("nodeselected", {"Pod": pod, "Node": node})
        if answer.get("Error"):
            raise CannotPlace(str(answer["Error"]))

    async def is_ready(self, node: str) -> bool:
        """Whether the driver can answer for a node that has just come."""
        answer = await self._call("nodeready", {"NodeName": node})
        ready = answer.get("Ready")
        if not isinstance(ready, bool):
            raise ExtenderFailed(f"{self.extender.url}: nodeready: neither true nor false")
        return ready

    async def _call(self, verb: str, body: Fields) -> Fields:
        return await self.extender.call(verb, body, self.session)


def configured(text: str) -> dict[str, Extender]:
    """The extenders that a configuration names, by driver. Raises BadConfiguration."""
    try:
        document = yaml.safe_load(text) or {}
    except yaml.YAMLError as wrong:
        raise BadConfiguration(f"not YAML: {wrong}") from None
    entries = document.get("extenders") if isinstance(document, dict) else None
    if not isinstance(entries, list):
        raise BadConfiguration("extenders: a list is needed")
    found: dict[str, Extender] = {}
    for at, one in enumerate(entries):
        where = f"extenders[{at}]"
        if not isinstance(one, dict) or not {"driver", "url"} <= one.keys():
            raise BadConfiguration(f"{where}: `driver` and `url` are needed")
        if one["driver"] in found:
            raise BadConfiguration(f"{where}.driver: {one['driver']} is named twice")
        try:
            found[one["driver"]] = Extender(one["url"])
        except BadAccess as wrong:
            raise BadConfiguration(f"{where}.url: {wrong}") from None
    return found


def _decoded(body: bytes) -> Fields | None:
    try:
        found = msgspec.json.decode(body)
    except msgspec.DecodeError:
        return None
    return found if isinstance(found, dict) else None


def _name(node: Fields) -> str:
    return str((node.get("metadata") or {}).get("name") or "")
