"""TLS for the server and for clients of it, from key files.

Clients may show a certificate and need not: who shows none must bring a token.
A certificate that our CA did not sign, that has run out, or that was made for a
server ends the handshake.
"""

import ssl

from .keyfiles import ServingFiles


def server_context(files: ServingFiles, ca: bytes) -> ssl.SSLContext:
    """For new serving files call `context.load_cert_chain` again: new connections get them."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.load_cert_chain(files.certificate, files.key)
    context.load_verify_locations(cadata=ca.decode())
    context.verify_mode = ssl.CERT_OPTIONAL
    # A resumed session is not verified again, so it would outlive its certificate.
    context.options |= ssl.OP_NO_TICKET
    context.num_tickets = 0
    context.set_alpn_protocols(["http/1.1"])
    return context
