"""A client certificate, once TLS has verified it, names its user.

The common name is the user, every organization is a group. TLS has already
checked that the certificate comes from our CA, is in its time and may be used by
clients; who reaches this point is authenticated. A connection may outlive the
certificate it began with, so its end is kept and looked at with every request.
"""

import hashlib
import ssl
import warnings
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any, NamedTuple

from allot.api import User

from .identities import AUTHENTICATED

CREDENTIAL = "authentication.kubernetes.io/credential-id"


class Certified(NamedTuple):
    user: User
    until: datetime
    serial: str  # hexadecimal, lower case, without leading zeros


def certified(peer: Mapping[str, Any] | None) -> Certified | None:
    """The user of a connection, from `getpeercert()`, and until when; None for nobody."""
    user = user_of(peer)
    if peer is None or user is None:
        return None
    until = datetime.fromtimestamp(ssl.cert_time_to_seconds(peer["notAfter"]), UTC)
    return Certified(user, until, str(peer.get("serialNumber", "")).lower().lstrip("0"))


def user_of(peer: Mapping[str, Any] | None, der: bytes | None = None) -> User | None:
    """The user of a connection, from `getpeercert()` (and `getpeercert(True)`), or None.

    A certificate with no common name, or with several, stands for nobody.
    """
    names, groups = [], []
    for relative in (peer or {}).get("subject") or ():
        for attribute, value in relative:
            if attribute == "commonName":
                names.append(value)
            elif attribute == "organizationName":
                groups.append(value)
    if len(names) != 1 or not names[0]:
        return None
    extra = {} if der is None else {CREDENTIAL: (f"X509SHA256={hashlib.sha256(der).hexdigest()}",)}
    return User(names[0], _groups(groups), extra=extra)


def user_of_der(der: bytes) -> User | None:
    """The same from the certificate's bytes, for servers that hand over nothing else."""
    from cryptography import x509
    from cryptography.x509.oid import NameOID

    names = {NameOID.COMMON_NAME: "commonName", NameOID.ORGANIZATION_NAME: "organizationName"}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # names longer than X.520 has it; see `issuing`
        subject = x509.load_der_x509_certificate(der).subject
    return user_of({"subject": [[(names.get(a.oid, ""), a.value) for a in subject]]}, der)


def _groups(organizations: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys([*filter(None, organizations), AUTHENTICATED]))
