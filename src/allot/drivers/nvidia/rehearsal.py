"""Troubles that people write down, to see what a cluster does about them: one a line, in a file that grows.

gpu-0 xid 79
gpu-0 lost
gpu-0 well
"""

import logging
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from allot.base import Files

from .backend import Event, Lost, Well, Xid

log = logging.getLogger(__name__)

_LINE: Final = re.compile(r"(?P<gpu>\S+)\s+(?:xid\s+(?P<xid>\d+)|(?P<word>lost|well))\s*")


class Rehearsal:
    def __init__(self, path: Path, files: Files, uuids: Mapping[str, str]) -> None:
        """`uuids` are those of GPUs, by name."""
        self._path, self._files, self._uuids = path, files, uuids
        self._read = 0

    def happened(self) -> tuple[Event, ...]:
        """What was written since this was last asked. A line counts once it is complete."""
        content = (self._files.read(self._path) or b"").decode(errors="replace")
        lines = content.split("\n")[:-1]
        new, self._read = lines[self._read :], len(lines)
        return tuple(event for line in new if line.strip() and (event := self._event(line)) is not None)

    def _event(self, line: str) -> Event | None:
        match = _LINE.fullmatch(line.strip())
        uuid = self._uuids.get(match["gpu"], "") if match else ""
        if match is None or not uuid:
            wanted = f"one of {', '.join(self._uuids)}, and then xid NUMBER, lost or well"
            log.warning("%s: %r was ignored: wanted is %s", self._path, line, wanted)
            return None
        if match["xid"]:
            return Xid(uuid, int(match["xid"]))
        return Lost(uuid) if match["word"] == "lost" else Well(uuid)
