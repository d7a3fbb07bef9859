"""The pytest fixtures. Loaded by every pytest run that has Allot installed, so it imports lazily.

def test_something(allot_server):
    async def story():
        claims = allot_server.client().resource("resource.k8s.io", "v1", "resourceclaims")
        ...
    allot_server.run(story())

@pytest.mark.allot_cluster(fleet="edge", agents=1)
def test_something_with_nodes(allot_cluster):
    subprocess.run(["kubectl", f"--kubeconfig={allot_cluster.kubeconfig}", "get", "nodes"], check=True)
"""

import asyncio
from collections.abc import Coroutine, Iterator
from typing import TYPE_CHECKING, Any, TypeVar

import pytest

if TYPE_CHECKING:
    from . import TestCluster, TestServer

T = TypeVar("T")

_MARK = "allot_cluster(fleet='mixed', nodes=3, agents=0): what the cluster of the fixture allot_cluster has"


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", _MARK)


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


@pytest.fixture
def allot_cluster(request: pytest.FixtureRequest) -> "Iterator[TestCluster]":
    """A ready cluster that serves HTTPS; the mark of the same name says which nodes it has."""
    from . import cluster

    mark = request.node.get_closest_marker("allot_cluster")
    args, named = (mark.args, mark.kwargs) if mark is not None else ((), {})
    with cluster(*args, **named) as running:
        yield running
