"""Calls over unix sockets with gRPC: what kubelets and drivers speak.

A socket is known by its path; what gRPC does with it is written in `overgrpc`.
"""

import asyncio
import os
import socket
import stat
from collections.abc import Hashable, Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final
from urllib.parse import quote

from allot.base import os_reason

from .channel import Channel, Handler, Server
from .overgrpc import OPTIONS, GrpcServer, dialled, server_for

ADDRESS_BYTES_MAX: Final = 107
"""Of a path: what the system takes for a unix socket's address."""
_OPTIONS: Final = [*OPTIONS, ("grpc.default_authority", "localhost")]


class UnixSockets:
    def dial(self, path: str) -> Channel:
        return dialled(path, _target(path), _OPTIONS)

    async def serve(self, path: str, handlers: Iterable[Handler]) -> Server:
        await asyncio.to_thread(_make_way, path)
        server = server_for(handlers, _OPTIONS)
        try:
            server.add_insecure_port(_target(path))
        except RuntimeError as refused:
            raise OSError(f"cannot listen at {path}: {refused}") from None
        await server.start()
        return GrpcServer(path, server)

    def found(self, directory: str) -> Mapping[str, Hashable]:
        return dict(_found(directory))


def _found(top: str) -> Iterator[tuple[str, Hashable]]:
    """Whatever goes away under our eyes was not there; what lies deeper and may not be read is left alone,
    and so is a link that leads nowhere."""
    left = [""]
    while left:
        below = left.pop()
        for entry in _listed(top, below):
            name = os.path.join(below, entry.name)
            if entry.is_dir(follow_symlinks=False):
                left.append(name)
                continue
            with suppress(OSError):
                it = entry.stat(follow_symlinks=True)
                if stat.S_ISSOCK(it.st_mode):
                    yield name, (it.st_dev, it.st_ino, it.st_ctime_ns)


def _listed(top: str, below: str) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(os.path.join(top, below)) as listed:
            return [one for one in listed if not one.name.startswith(".")]
    except OSError as problem:
        if below or isinstance(problem, FileNotFoundError):
            return []
        raise


def check_path(path: str) -> None:
    """Whether gRPC and the system take it. Raises OSError."""
    _target(path)


def _target(path: str) -> str:
    """As gRPC takes it. Raises OSError.

    gRPC reads an address and not a path: it must not stop at a question mark, nor take a comma for the
    beginning of another address."""
    length = len(os.fsencode(path))
    if length > ADDRESS_BYTES_MAX:
        raise OSError(
            f"the path of the socket {path} has {length} bytes; the system takes {ADDRESS_BYTES_MAX}"
        )
    if "," in path or "\0" in path:
        raise OSError(f"the path of the socket {path!r} has a comma or a zero byte in it")
    return f"unix:{quote(os.fsencode(path))}"


def _make_way(path: str) -> None:
    """A socket that nobody answers at is what a killed process left."""
    _target(path)  # before anything is made
    Path(path).parent.mkdir(parents=True, exist_ok=True, mode=0o750)
    try:
        found = os.lstat(path)
    except FileNotFoundError:
        return
    if not stat.S_ISSOCK(found.st_mode):
        raise OSError(f"cannot listen at {path}: something that is not a socket is there")
    with socket.socket(socket.AF_UNIX) as probe:
        probe.settimeout(1)
        try:
            probe.connect(path)
        except (ConnectionRefusedError, FileNotFoundError):
            Path(path).unlink(missing_ok=True)
        except OSError as problem:
            raise OSError(f"cannot listen at {path}: {os_reason(problem)}") from None
        else:
            raise OSError(f"cannot listen at {path}: another process is listening there")
