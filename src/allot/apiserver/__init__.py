"""Who may say it, and who hears it: the API server.

Each sub-package names its modules. In the order in which a request travels:

    serving/        connections: bytes in, bytes out, who is calling; the server as a process
    fairness/       how much each client may have: connections, requests, unread answers
    server          handle(request, user): the path, the caller's rights, the verb
    requests/       one request: what it names, in which form, how its answer looks
    security/       identities, certificates, tokens, roles, what nodes may do
    reading/        get, list, watch: the cache and the history that watchers share
    writing/        create, update, patch, delete: body, ownership, guard, quotas, commit
    deciding/       what a write is decided on: its context, metadata, expressions, pools
    admission/      what else may change or refuse a write
    apply/, patch/  the arithmetic of server-side apply and of the other patches
    transactions/   several requests, carried out together or not at all
    subresources/   binding, eviction, scale, log, exec, token, finalize
    storing/        where objects lie in the store, and in which form
    audit/          who did what, one line a request
    openapi/        documents of everything that is served

Beside them:

    registry      which kinds are served           definitions   those that users define
    discovery     /api and /apis                   pages         health, version, metrics
    reviewing     kinds that are asked, not kept   telemetry     what /metrics shows of the server
    lookups       objects that decide on others    observing     what decides about callers
    health        what /readyz looks at            housekeeping  what is done unasked
    seeding       what must be there at the start  assembly      all of it put together
    metering      what nodes and pods use

    options       what may be told before a server starts

The only package that touches the store. Whatever is behind this door is imported when it is asked for: a
component needs the names of `identities`, and no server.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .assembly import ApiServer
    from .audit import AuditSettings, Level
    from .options import Encryption, Options, ServingOptions
    from .security import Authority, identities
    from .serving.process import SOCKET_NAME, Serving, serve
    from .subresources.reaching import Forward, NodeAddress

__all__ = [
    "SOCKET_NAME",
    "ApiServer",
    "AuditSettings",
    "Authority",
    "Encryption",
    "Forward",
    "Level",
    "NodeAddress",
    "Options",
    "Serving",
    "ServingOptions",
    "identities",
    "serve",
]

_BEHIND = {
    "ApiServer": "assembly",
    "AuditSettings": "audit",
    "Authority": "security",
    "Encryption": "options",
    "Forward": "subresources.reaching",
    "Level": "audit",
    "NodeAddress": "subresources.reaching",
    "Options": "options",
    "SOCKET_NAME": "serving.process",
    "Serving": "serving.process",
    "ServingOptions": "options",
    "identities": "security",
    "serve": "serving.process",
}


def __getattr__(name: str) -> Any:
    if name not in _BEHIND:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = getattr(importlib.import_module(f"{__name__}.{_BEHIND[name]}"), name)
    globals()[name] = found
    return found
