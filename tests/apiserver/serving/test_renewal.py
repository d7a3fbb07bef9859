"""The serving certificate of a server that runs for longer than the certificate is valid."""

import socket
import ssl
import threading
from datetime import UTC, datetime, timedelta

from allot.apiserver.security import Authority, open_serving, server_context
from allot.apiserver.serving.renewal import renew

NOW = datetime.now(UTC)
NAMES = ["localhost"]


class At:
    def __init__(self, now):
        self._now = now

    def now(self):
        return self._now


def served(context, authority):
    """The certificate that a new connection is shown."""
    theirs = ssl.create_default_context(cadata=authority.ca.certificate.decode())
    ours, other = socket.socketpair()
    shown = []

    def connect():
        with theirs.wrap_socket(other, server_hostname="localhost") as tls:
            shown.append(tls.getpeercert(binary_form=True))
            tls.recv(1)

    thread = threading.Thread(target=connect)
    thread.start()
    context.wrap_socket(ours, server_side=True).close()
    thread.join()
    return shown[0]


def test_new_connections_get_a_certificate_that_is_renewed_in_time(tmp_path):
    authority = Authority.create(NOW)
    context = server_context(open_serving(tmp_path, authority, NAMES, NOW), authority.ca.certificate)
    first = served(context, authority)

    renew(context, tmp_path, authority, NAMES, At(NOW + timedelta(days=100)))
    assert served(context, authority) == first

    # Renewed as of a moment ago, so that a client of today accepts it.
    soon_over = authority.serving(NAMES, NOW - timedelta(days=320))
    (tmp_path / "pki" / "server.crt").write_bytes(soon_over.certificate)
    (tmp_path / "pki" / "server.key").write_bytes(soon_over.key)
    context.load_cert_chain(tmp_path / "pki" / "server.crt", tmp_path / "pki" / "server.key")
    old = served(context, authority)
    renew(context, tmp_path, authority, NAMES, At(NOW))
    assert served(context, authority) not in (first, old)
