"""How to say it: typed verbs over a transport.

Three transports carry the same requests: `InProcessTransport` calls the server's
handler for a given user, `Socket` reaches a server on the same machine for any user,
and `HttpsTransport` goes where a kubeconfig says, which may be a real Kubernetes.

    access = kubeconfig.load()                        # or kubeconfig.in_cluster()
    client = Client(HttpsTransport(access))
    claims = client.resource("resource.k8s.io", "v1", "resourceclaims")

Reading order: `client`, `resource` and `writes` are what callers see; `together` sends
several writes at once, `gathering` those of several callers; `listing`, `watch` and `options`
are what goes over the wire; `inprocess`, `socket` (over `link`) and `https` (over
`connection`) carry it, `reach` says when the server is away, and `measured` counts what goes
over any; `kubeconfig`, `access`, `tokenfile` and `execplugin` say where to and as whom;
`election` decides who leads, and `lease` does it.
"""

from . import kubeconfig
from .access import Access, BadAccess, Credential, Credentials, Fixed, Server, load_certificate, tls_context
from .client import Client
from .election import Settings as LeaseSettings
from .https import HttpsTransport, Limits
from .inprocess import Handler, InProcessTransport
from .lease import LeadershipLost, lead
from .listing import Page
from .measured import Measured
from .options import Patch, Propagation
from .reach import level_of
from .resource import Resource
from .retry import Backoff, retry_on_conflict
from .socket import Socket, SocketLimits, SocketTransport
from .together import member_of
from .watch import EventType, WatchEvent
from .writes import Write, Writes

__all__ = [
    "Access",
    "Backoff",
    "BadAccess",
    "Client",
    "Credential",
    "Credentials",
    "EventType",
    "Fixed",
    "Handler",
    "HttpsTransport",
    "InProcessTransport",
    "LeadershipLost",
    "LeaseSettings",
    "Limits",
    "Measured",
    "Page",
    "Patch",
    "Propagation",
    "Resource",
    "Server",
    "Socket",
    "SocketLimits",
    "SocketTransport",
    "WatchEvent",
    "Write",
    "Writes",
    "kubeconfig",
    "lead",
    "level_of",
    "load_certificate",
    "member_of",
    "retry_on_conflict",
    "tls_context",
]
