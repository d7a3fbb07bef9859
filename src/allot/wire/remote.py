"""Calls to another machine with gRPC: an address, and who proves what to whom.

    127.0.0.1:8086, host:8086, [::1]:8086     over TCP
    unix:/run/provider.sock                   a socket of this machine

Without `cacert` nothing is encrypted. With it the server proves that it is called what the address says; with
`cert` and `key` the caller proves who it is as well. Whoever serves with `cacert` takes no caller that does
not. Files are read when a channel or a server is made.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from allot.base import os_reason

from .channel import Channel, Handler, Server
from .overgrpc import OPTIONS, GrpcServer, client_credentials, dialled, server_credentials, server_for
from .unixsocket import UnixSockets, check_path

UNIX = "unix:"


class BadEndpoint(ValueError):
    """The message says what is wrong with it."""


class Endpoint(msgspec.Struct, frozen=True, kw_only=True):
    """Where somebody is served, and files with what both sides prove themselves by."""

    address: str
    cert: str = ""
    key: str = ""
    cacert: str = ""

    def check(self) -> None:
        """Raises BadEndpoint."""
        if bool(self.cert) != bool(self.key):
            raise BadEndpoint("`cert` and `key` belong together")
        if is_unix(self.address):
            if self.cert or self.cacert:
                raise BadEndpoint("certificates are for addresses with a port; a unix socket has permissions")
            return
        host, colon, port = self.address.rpartition(":")
        if not colon or not host or not port.isascii() or not port.isdigit() or int(port) > 65_535:
            raise BadEndpoint(f"{self.address!r} is not HOST:PORT nor unix:PATH")
        if ":" in host and not (host.startswith("[") and host.endswith("]")):
            raise BadEndpoint(f"{self.address!r}: an IPv6 address stands in brackets")


class _Pems(NamedTuple):
    cert: bytes | None
    key: bytes | None
    cacert: bytes | None


def readable(at: Endpoint) -> None:
    """Whether it could be dialled, before anything is begun. Raises BadEndpoint."""
    at.check()
    if is_unix(at.address):
        _check_unix(at.address)
    else:
        _read_as_caller(at)


def dial(at: Endpoint) -> Channel:
    """Inside a running loop. Raises BadEndpoint."""
    readable(at)
    if is_unix(at.address):
        return UnixSockets().dial(_path(at.address))
    pems = _read_as_caller(at)
    credentials = client_credentials(*pems) if pems.cacert else None
    return dialled(at.address, f"dns:///{at.address}", OPTIONS, credentials)


async def serve(at: Endpoint, handlers: Iterable[Handler]) -> tuple[Server, str]:
    """The server, and its address; port 0 picks a free one. Raises BadEndpoint and OSError."""
    at.check()
    if is_unix(at.address):
        return await UnixSockets().serve(_path(at.address), handlers), at.address
    pems = _read(at)
    if pems.cacert and not pems.cert:
        raise BadEndpoint("`cacert` without `cert` and `key`: nobody could say whether this is the one")
    server = server_for(handlers, [*OPTIONS, ("grpc.so_reuseport", 0)])
    try:
        port = _bind(server, at.address, pems)
    except RuntimeError:
        raise OSError(
            f"cannot listen at {at.address}: it is taken, or not an address of this machine"
        ) from None
    await server.start()
    address = f"{at.address.rpartition(':')[0]}:{port}"
    return GrpcServer(address, server), address


def is_unix(address: str) -> bool:
    return address.startswith(UNIX)


def _bind(server: Any, address: str, pems: _Pems) -> int:
    if pems.cert is None:
        return int(server.add_insecure_port(address))
    return int(server.add_secure_port(address, server_credentials(*pems)))


def _check_unix(address: str) -> None:
    try:
        check_path(_path(address))
    except OSError as refused:
        raise BadEndpoint(str(refused)) from None


def _read_as_caller(at: Endpoint) -> _Pems:
    pems = _read(at)
    if pems.cert and not pems.cacert:
        raise BadEndpoint("`cert` and `key` without `cacert`: nobody could say whether the server is the one")
    return pems


def _path(address: str) -> str:
    path = address.removeprefix(UNIX)
    return path.removeprefix("//") if path.startswith("///") else path


def _read(at: Endpoint) -> _Pems:
    return _Pems(_pem(at.cert), _pem(at.key), _pem(at.cacert))


def _pem(path: str) -> bytes | None:
    if not path:
        return None
    try:
        found = Path(path).read_bytes()
    except OSError as refused:
        raise BadEndpoint(f"{path}: {os_reason(refused)}") from None
    if b"-----BEGIN " not in found:
        raise BadEndpoint(f"{path}: there is no PEM in it")
    return found
