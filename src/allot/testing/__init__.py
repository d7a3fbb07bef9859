"""A ready server, or a whole cluster, for tests, yours and ours.

    async with api_server() as server:
        pods = server.client().resource("", "v1", "pods", namespaced=True)

The server is the real one on a memory store, in the test's own process; nothing
is faked. A cluster is that server over HTTPS with controllers, scheduler and nodes, hollow ones
or real ones with drivers. With pytest, the fixtures `allot_server` and `allot_cluster` are there
once Allot is installed; a mark says what a cluster has:

    @pytest.mark.allot_cluster(fleet="edge", nodes=1, agents=1)

Imported by every pytest run that has Allot installed, so it loads what is asked for
only when it is asked for.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .server import TestServer, api_server
    from .whole import TestCluster, cluster

__all__ = ["TestCluster", "TestServer", "api_server", "cluster"]

_BEHIND = {"TestCluster": "whole", "TestServer": "server", "api_server": "server", "cluster": "whole"}


def __getattr__(name: str) -> Any:
    if name not in _BEHIND:
        raise AttributeError(name)
    return getattr(importlib.import_module(f"{__name__}.{_BEHIND[name]}"), name)
