"""Where the keys lie: D/pki, readable by their owner alone.

    D/pki/authority.json           the CA and the token keys (`Authority.to_bytes`)
    D/pki/ca.crt                   a copy of the CA's certificate, for tools
    D/pki/server.crt, server.key   made anew when they run out or the names change
    D/pki/issued.json              which client certificates were made (`issued`)

Directories are 0700 and keys 0600 from the first moment; a file appears whole or
not at all; two processes that start at once on one data directory agree.
"""

import errno
import fcntl
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

from allot.base import write_file

from .authority import Authority, KeyPair


class ServingFiles(NamedTuple):
    certificate: Path
    key: Path


class BadKeyFiles(ValueError):
    """The key files cannot be used. The message says what to do about it."""


def open_authority(data_dir: Path, now: datetime) -> Authority:
    """The authority of a data directory, created at the first call."""
    pki = private_directory(private_directory(data_dir) / "pki")
    with locked(pki):
        found = read_authority(data_dir)
        if found is None:
            found = Authority.create(now)
            write_file(pki / "authority.json", found.to_bytes())
        copy = pki / "ca.crt"
        if not copy.exists() or copy.read_bytes() != found.ca.certificate:
            write_file(copy, found.ca.certificate)
        return found


def read_authority(data_dir: Path) -> Authority | None:
    """The authority of a data directory, or None if it has none."""
    path = data_dir / "pki" / "authority.json"
    if not path.exists():
        return None
    _require_private(path)
    try:
        found = Authority.from_bytes(path.read_bytes())
        found.check()
    except ValueError as error:
        raise BadKeyFiles(
            f"{path} cannot be read ({error}): restore it, or remove it to start over"
        ) from None
    return found


def keep_authority(data_dir: Path, authority: Authority) -> None:
    """Write a changed authority, or one that came from a shared store."""
    pki = private_directory(private_directory(data_dir) / "pki")
    with locked(pki):
        write_file(pki / "authority.json", authority.to_bytes())
        write_file(pki / "ca.crt", authority.ca.certificate)


def open_serving(data_dir: Path, authority: Authority, names: Iterable[str], now: datetime) -> ServingFiles:
    """Files to serve TLS from. Call again from time to time: what runs out is replaced."""
    pki = private_directory(private_directory(data_dir) / "pki")
    files = ServingFiles(pki / "server.crt", pki / "server.key")
    wanted = list(names)
    with locked(pki):
        if files.key.exists():
            _require_private(files.key)
        if not all(file.exists() for file in files) or not authority.still_serves(
            KeyPair(*(file.read_bytes() for file in files)), wanted, now
        ):
            pair = authority.serving(wanted, now)
            write_file(files.key, pair.key)
            write_file(files.certificate, pair.certificate)
    return files


def _require_private(path: Path) -> None:
    if path.stat().st_mode & 0o077:
        raise BadKeyFiles(f"others can read {path}: make it 0600 if it was never exposed, else remove it")


def private_directory(path: Path) -> Path:
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
    except FileExistsError:
        raise NotADirectoryError(errno.ENOTDIR, "is there, and is no directory", str(path)) from None
    if path.stat().st_mode & 0o077:
        path.chmod(0o700)
    return path


@contextmanager
def locked(directory: Path) -> Iterator[None]:
    """Nobody else changes the files there meanwhile."""
    handle = os.open(directory / ".lock", os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)
