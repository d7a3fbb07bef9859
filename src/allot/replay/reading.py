"""A record, read from its file line by line."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from allot.base import os_reason

from .lines import API_VERSION, FAMILY, KIND, AnyLine, decoded

HEAD_MAX = 4096


class BadRecord(ValueError):
    """The message names the file, and the line where there is one."""


def read(path: Path) -> Iterator[AnyLine]:
    """What stands in a record, in its order. A last line without an end is left out: whoever wrote it was
    stopped.

    Raises BadRecord, at once where it is no record, else where it is damaged.
    """
    try:
        with path.open("rb") as file:
            check_head(path, file.readline(HEAD_MAX))
            for number, line in enumerate(file, 2):
                if not line.endswith(b"\n"):
                    return
                try:
                    yield decoded(line)
                except (msgspec.DecodeError, UnicodeDecodeError) as wrong:
                    raise BadRecord(f"{path}:{number}: the record is damaged: {wrong}") from None
    except OSError as refused:
        raise BadRecord(f"{path} cannot be read: {os_reason(refused)}") from None


def check_head(path: Path, line: bytes) -> None:
    """Raises BadRecord."""
    if not line:
        raise BadRecord(f"{path} is empty")
    try:
        head = msgspec.json.decode(line, type=dict[str, Any])
    except (msgspec.DecodeError, UnicodeDecodeError):
        head = {}
    version = str(head.get("apiVersion", ""))
    if head.get("kind") != KIND or not version.startswith(FAMILY):
        raise BadRecord(f"{path} is no record; `allot scheduler --record` and `allot record` write one")
    if version != API_VERSION:
        raise BadRecord(f"{path} is of format {version}, and this version of Allot reads {API_VERSION}")
