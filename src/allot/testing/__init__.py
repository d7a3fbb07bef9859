"""A ready server and client for tests, yours and ours.

    async with api_server() as server:
        pods = server.client().resource("", "v1", "pods", namespaced=True)

The server is the real one on a memory store, in the test's own process; nothing
is faked. With pytest, the fixture `allot_server` is there once Allot is installed.
"""

from .server import TestServer, api_server

__all__ = ["TestServer", "api_server"]
