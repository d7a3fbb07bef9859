"""Which client certificates were issued from a data directory: D/pki/issued.json.

A certificate works whether or not it is listed here. The list is for people, who take back what
they can name. What has run out is dropped.
"""

from collections.abc import Iterable, Sequence
from datetime import datetime
from pathlib import Path

import msgspec

from allot.base import write_file

from .authority import KeyPair
from .keyfiles import BadKeyFiles, locked

_NAME = "issued.json"


class Issued(msgspec.Struct, frozen=True):
    serial: str  # hexadecimal, lower case, without leading zeros
    user: str
    groups: tuple[str, ...]
    issued: datetime
    until: datetime


def record_issued(data_dir: Path, pair: KeyPair, user: str, groups: Iterable[str], now: datetime) -> Issued:
    """Add a certificate that was just made."""
    from . import issuing

    serial, until = issuing.serial(pair.certificate), issuing.expiry(pair.certificate)
    one = Issued(serial, user, tuple(groups), now, until)
    pki = data_dir / "pki"
    with locked(pki):
        known = [other for other in issued_from(data_dir) if other.until > now]
        write_file(pki / _NAME, b"\n".join(map(msgspec.json.encode, [*known, one])) + b"\n")
    return one


def issued_from(data_dir: Path) -> Sequence[Issued]:
    """Oldest first. Raises BadKeyFiles."""
    path = data_dir / "pki" / _NAME
    if not path.exists():
        return []
    try:
        return [msgspec.json.decode(line, type=Issued) for line in path.read_bytes().splitlines()]
    except msgspec.DecodeError as wrong:
        raise BadKeyFiles(
            f"{path} cannot be read ({wrong}): restore it, or remove it to start a new list"
        ) from None
