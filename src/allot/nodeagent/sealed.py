"""Files that an agent trusts after a crash: a text, and a checksum that tells whether it is whole. Pure.

    {"Data": "<JSON as text>", "Checksum": <CRC-32 of that text>}

A file that cannot be read is an error and not an empty one: devices that nobody gives back would be given
away a second time.
"""

from typing import Any
from zlib import crc32

import msgspec


class BadCheckpoint(ValueError):
    """The file is not what an agent wrote. The message says what to do about it."""

    def __init__(self, name: str, why: str) -> None:
        super().__init__(f"{name}: {why}; drain the node, remove the file, and start again")


class _Envelope(msgspec.Struct, frozen=True, rename="pascal"):
    data: str
    checksum: int


def sealed(content: msgspec.Struct) -> bytes:
    data = msgspec.json.encode(content).decode()
    return msgspec.json.encode(_Envelope(data, crc32(data.encode())))


def opened(name: str, content: bytes) -> bytes:
    """The text, of the file of that name. Raises BadCheckpoint."""
    envelope = decoded(name, content, _Envelope, "it is not the JSON of a checkpoint")
    data: bytes = envelope.data.encode()
    found = crc32(data)
    if found != envelope.checksum:
        raise BadCheckpoint(name, f"the checksum is {envelope.checksum} and the content has {found}")
    return data


def decoded(name: str, content: bytes, type: Any, otherwise: str) -> Any:
    """Raises BadCheckpoint."""
    try:
        return msgspec.json.decode(content, type=type)
    except (msgspec.DecodeError, UnicodeError) as wrong:
        raise BadCheckpoint(name, f"{otherwise} ({wrong})") from None
