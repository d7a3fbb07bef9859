"""Whether a server can be reached, said once for all clients of this process.

A process has many clients, informers and loops; when their server is away, each of them fails again
and again. The transports say it here, once; what others log of it is for who looks closely (`level_of`).
"""

import logging
from collections.abc import Awaitable
from functools import cache

import msgspec

from allot.api import Response, errors
from allot.base import Outage

log = logging.getLogger(__name__)

_UNAVAILABLE = 503


@cache
def outage(server: str, level: int = logging.WARNING) -> Outage:
    """Of the server at this address, said at this level."""
    return Outage(log, f"the API server at {server}", level=level)


async def noted(outage: Outage, answer: Awaitable[Response]) -> Response:
    """The answer to a request, of which the outage takes note."""
    try:
        response = await answer
    except (errors.Unavailable, errors.Timeout) as away:
        outage.failed(away.message)
        raise
    if response.status == _UNAVAILABLE:
        outage.failed(_message(response))
    else:
        outage.worked()
    return response


def level_of(error: Exception, otherwise: int) -> int:
    """At which level a failure is logged that will be tried again."""
    return logging.DEBUG if isinstance(error, errors.Unavailable | errors.Timeout) else otherwise


def _message(response: Response) -> str:
    try:
        status = msgspec.json.decode(response.body)
    except msgspec.DecodeError:
        status = None
    found = status.get("message") if isinstance(status, dict) else None
    return str(found or f"it answers {response.status}")
