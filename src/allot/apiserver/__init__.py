"""Who may say it, and who hears it: the API server.

Read in the order in which a request travels:

    listener     HTTPS: bytes in, bytes out, who is calling; socketlistener: on the same machine
    server       handle(request, user): the path, the caller's rights, the verb
    target       what a path names
    reading      get, list, watch        cache, history, watching: what watchers see
    writing      create, update, patch   body, metadata, admission, ownership, guard; recent: for readers
    deleting     delete                  collection: many at once
    discovery    what is served          pages: health, version, metrics, OpenAPI
    audit/       who did what, one line a request
    security/    identities, certificates, tokens, roles, what nodes may do
    assembly     all of it put together; serving: as a process

The only package that touches the store.
"""

from .assembly import ApiServer, Options
from .audit import AuditSettings, Level
from .logs import Forward, NodeAddress
from .security import Authority, identities
from .serving import SOCKET_NAME, Encryption, Serving, ServingOptions, serve

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
