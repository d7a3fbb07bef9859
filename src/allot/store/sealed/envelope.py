"""What an encrypted value looks like.

    MAGIC     16 bytes, which begin no value that is not encrypted
    key id     8 bytes: which of the keys
    nonce     12 bytes, random
    the value, encrypted with AES-256-GCM, and its tag

What it promises
    SEAL1  Without the key nobody learns anything but the length of a value, or changes it unnoticed.
    SEAL2  The store's key is part of what the tag covers: a value that was moved elsewhere, say over
           somebody else's secret, cannot be opened there.

A random nonce may be drawn 2^32 times for one key before repetitions become a worry: at a hundred
writes a second that is more than a year, and `--encryption-rewrite` begins another key.
"""

import hashlib
import os
from collections.abc import Sequence

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from .mark import ID, MAGIC, CannotOpen

_NONCE_BYTES = 12
_NONCE = slice(ID.stop, ID.stop + _NONCE_BYTES)


class Seals:
    """The keys, at work."""

    def __init__(self, keys: Sequence[bytes]) -> None:
        """The first key encrypts."""
        self._ciphers = {_id(key): AESGCM(key) for key in keys}
        self._current = _id(keys[0])

    @property
    def current(self) -> str:
        """The id of the key that encrypts."""
        return self._current.hex()

    @property
    def known(self) -> tuple[str, ...]:
        return tuple(id.hex() for id in self._ciphers)

    def seal(self, key: str, value: bytes) -> bytes:
        head = MAGIC + self._current
        nonce = os.urandom(_NONCE_BYTES)
        return head + nonce + self._ciphers[self._current].encrypt(nonce, value, head + key.encode())

    def open(self, key: str, value: bytes) -> bytes:
        """The value that `seal` was given; one that is not encrypted is returned as it is."""
        if not value.startswith(MAGIC):
            return value
        id = value[ID]
        cipher = self._ciphers.get(id)
        if cipher is None:
            raise CannotOpen(f"{key} is encrypted with key {id.hex()}, which is not known")
        try:
            return cipher.decrypt(value[_NONCE], value[_NONCE.stop :], MAGIC + id + key.encode())
        except (InvalidTag, ValueError):
            raise CannotOpen(f"{key} was changed or moved since it was encrypted") from None


def _id(key: bytes) -> bytes:
    return hashlib.sha256(b"allot key id\x00" + key).digest()[: ID.stop - ID.start]
