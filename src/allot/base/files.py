"""Files that are there whole or not at all, whenever the machine stops."""

import os
from pathlib import Path


def write_file(path: Path, content: bytes) -> None:
    """Whole or not at all, 0600 from the first moment, durable when this returns."""
    try:
        _write_whole(path, content)
    except OSError as refused:  # of whichever file: this is the one that was asked for
        raise OSError(refused.errno, refused.strerror, str(path)) from refused


def _write_whole(path: Path, content: bytes) -> None:
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    temporary.unlink(missing_ok=True)
    handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    directory = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)
