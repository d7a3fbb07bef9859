"""A unix socket's address, however long its path.

The system takes 107 bytes for an address, and data directories can lie deep. A longer path is
reached through its open directory, which has a short name while it is open.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_BYTES_MAX = 107


@contextmanager
def unix_address(path: Path) -> Iterator[str]:
    """An address for `path`, good for binding or connecting within the context."""
    if len(os.fsencode(path)) <= _BYTES_MAX:
        yield str(path)
        return
    directory = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        yield f"/proc/self/fd/{directory}/{path.name}"
    finally:
        os.close(directory)
