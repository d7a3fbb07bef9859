"""Keeps on disk what an agent must not forget: written in a thread, and what comes at one moment together."""

import asyncio
from collections.abc import Callable
from pathlib import Path

from allot.base import Files

from .checkpoint import NAME, decode, encode
from .told import Told


class Kept:
    """A file, always with what `content` says when it was last asked to keep it."""

    def __init__(self, path: Path, files: Files, content: Callable[[], bytes]) -> None:
        self._path, self._files, self._content = path, files, content
        self._writing = asyncio.Lock()
        self._asked = self._kept = 0

    async def keep(self) -> None:
        """Returns when what is known now is on disk. Raises OSError."""
        self._asked += 1
        mine = self._asked
        async with self._writing:
            if self._kept >= mine:
                return
            asked, content = self._asked, self._content()
            writing = asyncio.ensure_future(asyncio.to_thread(self._files.write, self._path, content))
            try:
                await asyncio.shield(writing)
            except asyncio.CancelledError:
                await asyncio.wait((writing,))  # what comes after must not meet it on its way to the disk
                raise
            self._kept = asked


class Keeper:
    """Of what drivers were told."""

    def __init__(self, root: Path, files: Files) -> None:
        """Raises BadCheckpoint, and OSError."""
        path = root / NAME
        content = files.read(path)
        if content is not None:
            files.settle(path)  # whoever wrote it may have died before it would outlast a power cut
        self.told = told = Told(decode(content) if content is not None else ())
        self.keep = Kept(path, files, lambda: encode(told.entries)).keep
