"""A ready server and client for tests, yours and ours.

    async with api_server() as server:
        pods = server.client().resource("", "v1", "pods", namespaced=True)

The server is the real one on a memory store, in the test's own process; nothing
is faked. With pytest, the fixture `allot_server` is there once Allot is installed.

Imported by every pytest run that has Allot installed, so it loads what is asked for
only when it is asked for.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .server import TestServer, api_server

__all__ = ["TestServer", "api_server"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(name)
    from . import server

    return getattr(server, name)
