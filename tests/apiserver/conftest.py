"""A real server on a memory store, asked without a wire."""

import asyncio
import json
from typing import Any, NamedTuple

import msgspec
import pytest

from allot.api import Object, Request, User
from allot.apiserver import ApiServer, identities
from allot.apiserver.storing.recent import Recent
from allot.store import MemoryStore


class Answer(NamedTuple):
    status: int
    body: Any
    warnings: list[str]

    @property
    def causes(self):
        """(field, reason) of everything that is wrong, in order."""
        found = self.body.get("details", {}).get("causes", [])
        return [(cause.get("field", ""), cause["reason"]) for cause in found]


class Api:
    def __init__(self) -> None:
        self.runner = asyncio.Runner()
        self.store = MemoryStore()
        self.server = ApiServer(self.store)
        self.runner.run(self.server.start())

    def __call__(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        user: User = identities.ADMIN,
        media: str = "application/json",
        accept: str = "",
        headers: dict[str, str] | None = None,
        **query: str,
    ) -> Answer:
        return self.runner.run(self.ask(method, path, body, user, media, accept, headers or {}, query))

    async def ask(
        self,
        method,
        path,
        body=None,
        user=identities.ADMIN,
        media="application/json",
        accept="",
        headers=(),
        query=(),
    ):
        raw = body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
        sent = {**dict(headers), "content-type": media, **({"accept": accept} if accept else {})}
        response = await self.server.handle(Request(method, path, dict(query), sent, raw), user)
        content = response.body
        if response.stream is not None:
            content = b"".join([piece async for piece in response.stream])
        if "watch" in dict(query):
            parsed: Any = [json.loads(line) for line in content.splitlines()]
        elif response.content_type.startswith("application/json"):
            parsed = json.loads(content)
        else:
            parsed = content.decode()
        return Answer(response.status, parsed, [v for k, v in response.headers if k == "Warning"])

    def run(self, story):
        return self.runner.run(story)

    def close(self) -> None:
        self.runner.run(self.server.close())
        self.runner.run(self.store.close())
        self.runner.close()


@pytest.fixture
def api():
    api = Api()
    yield api
    api.close()


@pytest.fixture(autouse=True)
def _nobody_changes_what_is_shared(monkeypatch):
    """Decoded objects go from hand to hand: in every test, they stay what their bytes say."""
    seen: list[Object] = []
    plain = Recent.written

    def written(self, *what):
        seen.append(plain(self, *what))
        return seen[-1]

    monkeypatch.setattr(Recent, "written", written)
    yield
    for one in seen:
        assert one.fields == msgspec.json.decode(one.raw)
