"""Keeps the checkpoint on disk: written in a thread, and what comes at one moment is written together."""

import asyncio
from pathlib import Path

from allot.base import write_file

from .checkpoint import NAME, decode, encode
from .told import Told


class Keeper:
    def __init__(self, root: Path) -> None:
        """Raises BadCheckpoint, and OSError."""
        self._path = root / NAME
        self.told = Told(decode(self._path.read_bytes()) if self._path.exists() else ())
        self._writing = asyncio.Lock()
        self._asked = self._kept = 0

    async def keep(self) -> None:
        """Returns when what is known now is on disk. Raises OSError."""
        self._asked += 1
        mine = self._asked
        async with self._writing:
            if self._kept >= mine:
                return
            asked, content = self._asked, encode(self.told.entries)
            await asyncio.to_thread(write_file, self._path, content)
            self._kept = asked
