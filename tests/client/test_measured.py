"""What a client sent, as dashboards for Kubernetes' components read it."""

import asyncio

import pytest

from allot.api import Request, Response, errors
from allot.base import Metrics, SystemClock
from allot.client import Measured


class Answering:
    """Answers with the codes it was given, then not at all."""

    def __init__(self, *codes: int) -> None:
        self._codes = list(codes)
        self.closed = False

    async def send(self, request: Request) -> Response:
        if not self._codes:
            raise errors.Unavailable("nobody is there")
        return Response(self._codes.pop(0))

    async def close(self) -> None:
        self.closed = True


def test_requests_are_counted_by_method_host_and_answer():
    async def story() -> None:
        metrics, under = Metrics(), Answering(200, 200, 409)
        wire = Measured(under, metrics, SystemClock(), "10.0.0.1:6443")
        for method in ("GET", "GET", "PUT"):
            await wire.send(Request(method, "/api/v1/pods"))
        with pytest.raises(errors.Unavailable):
            await wire.send(Request("PUT", "/api/v1/pods"))
        await wire.close()

        shown = metrics.text()
        assert 'rest_client_requests_total{code="200",method="GET",host="10.0.0.1:6443"} 2' in shown
        assert 'rest_client_requests_total{code="409",method="PUT",host="10.0.0.1:6443"} 1' in shown
        assert 'rest_client_requests_total{code="<error>",method="PUT",host="10.0.0.1:6443"} 1' in shown
        assert 'rest_client_request_duration_seconds_count{verb="PUT",host="10.0.0.1:6443"} 2' in shown
        assert under.closed

    asyncio.run(story())
