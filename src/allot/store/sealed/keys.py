"""The key file: one key a line, 32 random bytes in base64. The first encrypts, all decrypt.

    head -c 32 /dev/urandom | base64 > FILE

Empty lines, and lines that begin with #, say nothing.
"""

import base64
import binascii
import os
import stat
from collections.abc import Sequence
from pathlib import Path

KEY_BYTES = 32
KEYS_MAX = 16
_FILE_BYTES_MAX = 64 * 1024


class BadKeys(ValueError):
    """The key file cannot be used. The message says what to do about it."""


def read_keys(path: Path) -> Sequence[bytes]:
    """Raises BadKeys, and OSError where there is no file."""
    with open(path, "rb", opener=_open_at_once) as opened:
        mode = os.fstat(opened.fileno()).st_mode
        if not stat.S_ISREG(mode):
            raise BadKeys(f"{path} is not a regular file")
        if mode & 0o077:
            raise BadKeys(
                f"others can read {path}: make it 0600 if it was never exposed, else make a new key"
            )
        content = opened.read(_FILE_BYTES_MAX + 1)
    if len(content) > _FILE_BYTES_MAX:
        raise BadKeys(f"{path} is no key file: it is longer than {_FILE_BYTES_MAX} bytes")
    keys: list[bytes] = []
    for number, line in enumerate(content.splitlines(), start=1):
        if line.strip() and not line.lstrip().startswith(b"#"):
            keys.append(_key(line.strip(), f"{path}: line {number}"))
    if not keys:
        raise BadKeys(f"{path} has no key: a line with 32 random bytes in base64 is wanted")
    if len(set(keys)) < len(keys):
        raise BadKeys(f"{path} has the same key twice")
    if len(keys) > KEYS_MAX:
        raise BadKeys(f"{path} has {len(keys)} keys: at most {KEYS_MAX}")
    return keys


def _open_at_once(path: str, flags: int) -> int:
    """A pipe is not waited for."""
    return os.open(path, flags | os.O_NONBLOCK)


def _key(text: bytes, where: str) -> bytes:
    try:
        key = base64.b64decode(text, validate=True)
    except binascii.Error:
        raise BadKeys(f"{where} is not base64") from None
    if len(key) != KEY_BYTES:
        raise BadKeys(f"{where} is a key of {len(key)} bytes: {KEY_BYTES} are wanted")
    return key
