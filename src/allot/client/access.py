"""Where a server is and who the caller is, as values: what a kubeconfig comes down to."""

import ssl
import tempfile
from dataclasses import dataclass
from typing import Protocol
from urllib.parse import urlsplit


class BadAccess(ValueError):
    """The description of a server or of credentials makes no sense; the message says where."""


@dataclass(frozen=True, slots=True)
class Server:
    host: str
    port: int
    tls: bool = True
    base_path: str = ""
    server_name: str = ""  # the name on its certificate, where it is not `host`
    authorities: bytes = b""  # PEM; empty means the system's
    verify: bool = True

    @classmethod
    def at(
        cls, url: str, *, server_name: str = "", authorities: bytes = b"", verify: bool = True
    ) -> "Server":
        parts = urlsplit(url if "://" in url else f"https://{url}")
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise BadAccess(f"{url!r} is not the URL of a server")
        if not verify and authorities:
            raise BadAccess(
                f"{url}: specifying a root certificates file with the insecure flag is not allowed"
            )
        tls = parts.scheme == "https"
        try:
            port = parts.port or (443 if tls else 80)
        except ValueError as wrong:
            raise BadAccess(f"{url!r}: {wrong}") from wrong
        path = parts.path.rstrip("/")
        return cls(parts.hostname, port, tls, path, server_name, authorities, verify)

    @property
    def authority(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"

    def __str__(self) -> str:
        return f"{'https' if self.tls else 'http'}://{self.authority}{self.base_path}"


@dataclass(frozen=True, slots=True)
class Credential:
    """What a caller shows: headers (a token, an impersonation), a client certificate, or nothing."""

    headers: tuple[tuple[str, str], ...] = ()
    certificate: bytes = b""  # PEM, the chain
    key: bytes = b""  # PEM

    @classmethod
    def token(cls, token: str) -> "Credential":
        return cls(headers=(("authorization", f"Bearer {token}"),)) if token else cls()

    def __repr__(self) -> str:
        return "Credential(<redacted>)"


NOTHING = Credential()


class Credentials(Protocol):
    """A source of credentials that may change while the program runs."""

    async def current(self) -> Credential: ...

    async def refused(self) -> bool:
        """The server did not accept `current()`. Is it worth to ask again for another?"""
        ...


@dataclass(frozen=True, slots=True)
class Fixed:
    """Credentials that never change."""

    credential: Credential = NOTHING

    async def current(self) -> Credential:
        return self.credential

    async def refused(self) -> bool:
        return False


@dataclass(frozen=True, slots=True)
class Access:
    """A server, who we are to it, and the namespace we work in unless another is named."""

    server: Server
    credentials: Credentials = Fixed()
    namespace: str = "default"


def tls_context(server: Server, credential: Credential) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["http/1.1"])
    try:
        if not server.verify:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        elif server.authorities:
            context.load_verify_locations(cadata=server.authorities.decode())
        else:
            context.load_default_certs()
        if credential.certificate:
            load_certificate(context, credential)
    except (ssl.SSLError, ValueError) as wrong:
        raise BadAccess(f"{server}: certificates cannot be used: {wrong}") from wrong
    return context


def load_certificate(context: ssl.SSLContext, credential: Credential) -> None:
    """The ssl module reads certificates from files only: they live for this call, 0600."""
    with tempfile.NamedTemporaryFile(prefix="allot-") as file:
        file.write(credential.certificate.rstrip(b"\n") + b"\n" + credential.key)
        file.flush()
        context.load_cert_chain(file.name)
