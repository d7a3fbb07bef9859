"""A transport that counts what goes over it, under the names that Kubernetes' own clients use.

    Client(Measured(transport, metrics, clock, host))

A request counts once for each time it is sent. The time of a watch is the time until it begins.
"""

from allot.api import Request, Response, Transport
from allot.base import Clock, Metrics

_NO_ANSWER = "<error>"


class Measured:
    def __init__(self, transport: Transport, metrics: Metrics, clock: Clock, host: str = "") -> None:
        self._transport = transport
        self._clock = clock
        self._host = host
        self._requests = metrics.counter(
            "rest_client_requests_total", "Requests sent, by answer.", "code", "method", "host"
        )
        self._seconds = metrics.histogram(
            "rest_client_request_duration_seconds", "Time from a request to its answer.", "verb", "host"
        )

    async def send(self, request: Request) -> Response:
        began_s, code = self._clock.monotonic_s(), _NO_ANSWER
        try:
            response = await self._transport.send(request)
            code = str(response.status)
            return response
        finally:
            self._requests.add(1, code, request.method, self._host)
            self._seconds.observe(self._clock.monotonic_s() - began_s, request.method, self._host)

    async def close(self) -> None:
        await self._transport.close()
