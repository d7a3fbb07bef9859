"""The way of a node to its server."""

import logging
from collections.abc import Callable

from allot.api import Request, Response, Transport, errors

log = logging.getLogger(__name__)

_ABOUT_ITSELF = ("/leases/", "/nodes/")


class NodeWay:
    """A node's way to the server; while it is silent, its word about itself reaches nobody."""

    def __init__(self, inner: Transport, is_silent: Callable[[], bool]) -> None:
        self._inner = inner
        self._is_silent = is_silent

    async def send(self, request: Request) -> Response:
        if self._is_silent() and any(part in request.path for part in _ABOUT_ITSELF):
            raise errors.Unavailable("nobody hears of this node")
        try:
            response = await self._inner.send(request)
        except errors.Internal as failure:
            tell_of_failure(f"{request.method} {request.path}", failure)
            raise
        if response.status == errors.Internal.code:
            tell_of_failure(f"{request.method} {request.path}", response.body)
        return response

    async def close(self) -> None:
        await self._inner.close()


def tell_of_failure(what: str, failure: object) -> None:
    """What a node did not finish would look like a promise that somebody else has broken."""
    log.error("the nodes' part in %s failed: %r", what, failure)
