"""Where an etcd cluster is, and as whom we come.

    etcd://[USER[:PASSWORD]@]HOST:PORT[,HOST:PORT…][/PREFIX][?OPTIONS]

    ca=FILE               trust this authority; speaks TLS
    cert=FILE&key=FILE    show this certificate; speaks TLS
    tls=true              speak TLS and trust the machine's authorities
    password-file=FILE    a password that does not show in the list of processes

Every key begins with the prefix, /allot unless another is given, so that several
clusters can share one etcd.
"""

from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import parse_qsl, unquote, urlsplit

OPTIONS = {"ca", "cert", "key", "tls", "password-file"}
PREFIX = "/allot"


@dataclass(frozen=True, slots=True)
class Address:
    endpoints: tuple[str, ...]
    prefix: str = PREFIX
    user: str = ""
    password: str = field(default="", repr=False)
    tls: bool = False
    ca: Path | None = None
    certificate: Path | None = None
    private_key: Path | None = None

    @classmethod
    def parse(cls, url: str) -> "Address":
        """Read a URL; `ValueError` says what is wrong with it."""
        parts = urlsplit(url)
        credentials, _, hosts = parts.netloc.rpartition("@")
        endpoints = tuple(hosts.split(","))
        for endpoint in endpoints:
            _, separator, port = endpoint.rpartition(":")
            if parts.scheme != "etcd" or not separator or not port.isdigit():
                raise ValueError(f"--store {url!r}: expected etcd://HOST:PORT[,HOST:PORT]")
        user, _, password = credentials.partition(":")
        options = dict(parse_qsl(parts.query))
        if unknown := options.keys() - OPTIONS:
            raise ValueError(
                f"--store {url!r}: unknown option {min(unknown)}, expected one of {sorted(OPTIONS)}"
            )
        if ("cert" in options) != ("key" in options):
            raise ValueError(f"--store {url!r}: cert and key belong together")
        return cls(
            endpoints=endpoints,
            prefix=unquote(parts.path).rstrip("/") or PREFIX,
            user=unquote(user),
            password=_password(unquote(password), options.get("password-file")),
            tls=options.get("tls") == "true" or "ca" in options or "cert" in options,
            ca=_path(options.get("ca")),
            certificate=_path(options.get("cert")),
            private_key=_path(options.get("key")),
        )


def _path(text: str | None) -> Path | None:
    return Path(text) if text else None


def _password(password: str, file: str | None) -> str:
    return Path(file).read_text().strip() if file else password
