"""The pytest fixtures. Loaded by every pytest run that has Allot installed, so it imports lazily.

def test_something(allot_server):
    async def story():
        claims = allot_server.client().resource("resource.k8s.io", "v1", "resourceclaims")
        ...
    allot_server.run(story())
"""

import asyncio
from collections.abc import Coroutine, Iterator
from typing import TYPE_CHECKING, Any, TypeVar

import pytest

if TYPE_CHECKING:
    from . import TestServer

T = TypeVar("T")


class RunningServer:
    """A server on an event loop of its own, for tests that are plain functions."""

    def __init__(self) -> None:
        from . import api_server

        self._runner = asyncio.Runner()
        self._context = api_server()
        self.server: TestServer = self._runner.run(self._context.__aenter__())

    def run(self, story: Coroutine[Any, Any, T]) -> T:
        return self._runner.run(story)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.server, name)

    def close(self) -> None:
        self._runner.run(self._context.__aexit__(None, None, None))
        self._runner.close()


@pytest.fixture
def allot_server() -> Iterator[RunningServer]:
    """A ready API server in this process, on a memory store."""
    running = RunningServer()
    try:
        yield running
    finally:
        running.close()
