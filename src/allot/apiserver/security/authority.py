"""The cluster's own authority: it vouches for servers, users and service accounts.

One CA signs the certificates of API servers and of users; one or more token keys
sign service account tokens. The first token key signs and all of them verify, so
that a key can be replaced without cutting anybody off.

An authority is a value of PEM bytes. It is kept as files under the data
directory (`keyfiles`), or as one record in a store that several API servers
share: whichever creates the record first decides, the others read it.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

import msgspec

from . import identities

CA_LIFETIME = timedelta(days=3650)
SERVING_LIFETIME = timedelta(days=365)
CLIENT_LIFETIME = timedelta(days=365)
RENEW_BEFORE = timedelta(days=60)

SERVING_NAMES = (
    "localhost",
    "127.0.0.1",
    "::1",
    "kubernetes",
    "kubernetes.default",
    "kubernetes.default.svc",
    "kubernetes.default.svc.cluster.local",
)


@dataclass(frozen=True, slots=True)
class KeyPair:
    """A certificate and its key, as PEM."""

    certificate: bytes
    key: bytes


class _Record(msgspec.Struct, rename={"certificate": "ca.crt", "key": "ca.key", "token_keys": "token.keys"}):
    certificate: str
    key: str
    token_keys: list[str]


@dataclass(frozen=True, slots=True)
class Authority:
    ca: KeyPair
    token_keys: tuple[bytes, ...]  # PEM; the first one signs

    @classmethod
    def create(cls, now: datetime) -> "Authority":
        from . import issuing

        return cls(KeyPair(*issuing.self_signed("allot-ca", now, CA_LIFETIME)), (issuing.new_key(),))

    def to_bytes(self) -> bytes:
        tokens = [key.decode() for key in self.token_keys]
        return msgspec.json.encode(_Record(self.ca.certificate.decode(), self.ca.key.decode(), tokens))

    @classmethod
    def from_bytes(cls, record: bytes) -> "Authority":
        found = msgspec.json.decode(record, type=_Record)
        ca = KeyPair(found.certificate.encode(), found.key.encode())
        return cls(ca, tuple(key.encode() for key in found.token_keys))

    def check(self) -> None:
        """Raises ValueError, with what is wrong, unless these keys can be used and belong together."""
        from . import issuing

        if not issuing.belong_together(self.ca.certificate, self.ca.key):
            raise ValueError("ca.key is not the key of ca.crt")
        if not self.token_keys:
            raise ValueError("token.keys is empty")
        for key in self.token_keys:
            issuing.load_key(key)

    def serving(self, names: Iterable[str], now: datetime) -> KeyPair:
        """For a server that is reached under `names`: DNS names or addresses."""
        from . import issuing

        return KeyPair(
            *issuing.issue(
                issuing.Pem(self.ca.certificate, self.ca.key),
                "allot-apiserver",
                (issuing.SERVER,),
                now,
                SERVING_LIFETIME,
                reached_as=names,
            )
        )

    def client(
        self, user: str, groups: Iterable[str], now: datetime, lifetime: timedelta = CLIENT_LIFETIME
    ) -> KeyPair:
        """For a user: the name becomes the common name, the groups the organizations.

        A node is asked for logs too: what proves who it is as a client does so as a server.
        """
        from . import issuing

        node = identities.node_of(identities.user(user, *groups))
        return KeyPair(
            *issuing.issue(
                issuing.Pem(self.ca.certificate, self.ca.key),
                user,
                (issuing.CLIENT, issuing.SERVER) if node else (issuing.CLIENT,),
                now,
                lifetime,
                organizations=groups,
                reached_as=(identities.node_serving_name(node),) if node else (),
            )
        )

    def still_serves(self, pair: KeyPair, names: Iterable[str], now: datetime) -> bool:
        """Is this serving certificate ours, with its key, right for these names, and not about to expire?"""
        from . import issuing

        try:
            return (
                issuing.expiry(pair.certificate) - now > RENEW_BEFORE
                and issuing.is_reached_as(pair.certificate, names)
                and issuing.is_issued_by(pair.certificate, self.ca.certificate)
                and issuing.belong_together(pair.certificate, pair.key)
            )
        except ValueError:
            return False  # not a certificate at all, or not a key

    def expires(self) -> datetime:
        from . import issuing

        return issuing.expiry(self.ca.certificate)
