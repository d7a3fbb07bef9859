"""Stories told to a real API server in process: an async test whose first parameter is the place."""

import asyncio
import inspect
from collections.abc import Awaitable, Callable
from contextlib import contextmanager, suppress
from functools import wraps
from typing import Any

import pytest

from allot.api import Gates, User, errors
from allot.apiserver import Options, identities
from allot.testing import TestServer, api_server


class Desk:
    """What one user can do."""

    def __init__(self, server: TestServer, user: User = identities.ADMIN) -> None:
        self._server = server
        self.client = server.client(user)
        self.classes = self.client.resource("resource.k8s.io", "v1", "deviceclasses", namespaced=False)
        self.claims = self.client.resource("resource.k8s.io", "v1", "resourceclaims")
        self.slices = self.client.resource("resource.k8s.io", "v1", "resourceslices", namespaced=False)
        self.pods = self.client.resource("", "v1", "pods")
        self.nodes = self.client.resource("", "v1", "nodes", namespaced=False)
        self.deployments = self.client.resource("apps", "v1", "deployments")

    def of(self, user: User) -> "Desk":
        return Desk(self._server, user)


def to_the_server(**gates: bool) -> Callable[[Callable[..., Awaitable[None]]], Callable[..., None]]:
    """`@to_the_server()`, or with the gates that are different from their default."""

    def decorate(story: Callable[..., Awaitable[None]]) -> Callable[..., None]:
        @wraps(story)
        def run(**parameters: Any) -> None:
            async def whole() -> None:
                async with api_server(options=Options(gates=Gates(gates), transactions=False)) as server:
                    await asyncio.wait_for(story(Desk(server), **parameters), 30)

            asyncio.run(whole())

        _, *rest = inspect.signature(story).parameters.values()
        run.__signature__ = inspect.Signature(rest)  # type: ignore[attr-defined]  # for pytest
        return run

    return decorate


@contextmanager
def refused(*fields: str):
    """What is inside is refused as invalid, at these fields and no others."""
    with pytest.raises(errors.Invalid) as caught:
        yield caught
    assert {cause.field for cause in caught.value.causes} == set(fields)


async def soon(attempt: Callable[[], Awaitable[Any]], but_for: type[errors.ApiError]) -> Any:
    """What the attempt gives once the server has noticed; rights follow the objects a moment later."""
    for _ in range(200):
        with suppress(but_for):
            return await attempt()
        await asyncio.sleep(0.01)
    return await attempt()
