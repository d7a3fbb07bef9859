"""The disk of a made-up machine: what is synced is kept, and of the rest nobody knows.

    process dies      its locks are free; whatever it wrote is there, up to the step at which it died
    power goes        names that were not synced are as they were before, or as they are now; content that
                      was not synced is there up to some byte; directories in memory are empty

How a file is written whole is decided in `base.files`, the same for every disk; here are its single
steps, and a process may die after any of them.
"""

import errno
import random
from collections.abc import Callable, Collection, Hashable
from itertools import count
from pathlib import Path

from allot.base import FileKind, Files, HeldByAnother

from .faults import Fenced


class _Inode:
    def __init__(self, number: int, content: bytes) -> None:
        self.number = number
        self.content = content
        self.synced: bytes | None = None


class Disk:
    def __init__(self, in_memory: Collection[Path] = ()) -> None:
        """`in_memory` are directories that a reboot empties."""
        self._in_memory = tuple(in_memory)
        self.names: dict[Path, _Inode] = {}
        self.kept: dict[Path, _Inode] = {}  # the names that would be there if the power went now
        self.locks: dict[Path, FilesOfProcess] = {}
        self._numbers = count(1)

    def process(self, touched: Callable[[], None] = lambda: None) -> "FilesOfProcess":
        """As one process sees it; `touched` is called before each of its steps."""
        return FilesOfProcess(self, touched)

    def durable(self, path: Path) -> bytes | None:
        """What is certain to be there after the power goes."""
        inode = self.kept.get(path)
        return inode.synced if inode is not None else None

    def content(self, path: Path) -> bytes | None:
        inode = self.names.get(path)
        return inode.content if inode is not None else None

    def below(self, directory: Path) -> list[str]:
        return sorted(path.name for path in self.names if path.parent == directory)

    def put(self, content: bytes) -> _Inode:
        return _Inode(next(self._numbers), content)

    def cut_power(self, rng: random.Random) -> None:
        there: dict[Path, _Inode] = {}
        for path in sorted({*self.names, *self.kept}):
            if any(directory in path.parents for directory in self._in_memory):
                continue
            chosen = rng.choice((self.names.get(path), self.kept.get(path)))
            if chosen is not None:
                content = chosen.content
                if chosen.synced != content:
                    content = content[: rng.randrange(len(content) + 1)]
                there[path] = self.put(content)
                there[path].synced = content
        self.names, self.kept = there, dict(there)
        self.locks.clear()


class _Lock:
    def __init__(self, process: "FilesOfProcess", path: Path) -> None:
        self._process, self._path = process, path

    def release(self) -> None:
        self._process.unlock(self._path)


class FilesOfProcess(Files):
    def __init__(self, disk: Disk, touched: Callable[[], None]) -> None:
        self._disk = disk
        self._touched = touched
        self._is_dead = False

    def kill(self) -> None:
        self._is_dead = True
        for path in [path for path, holder in self._disk.locks.items() if holder is self]:
            del self._disk.locks[path]

    def read(self, path: Path, at_most: int = -1) -> bytes | None:
        self._touch()
        inode = self._disk.names.get(path)
        if inode is None:
            return None
        return inode.content if at_most < 0 else inode.content[:at_most]

    def remove(self, path: Path) -> None:
        self._touch()
        self._disk.names.pop(path, None)

    def names(self, directory: Path) -> tuple[str, ...]:
        self._touch()
        return tuple(self._disk.below(directory))

    def stamp(self, path: Path) -> Hashable | None:
        self._touch()
        inode = self._disk.names.get(path)
        return inode.number if inode is not None else None

    def make_directory(self, path: Path, mode: int = 0o777) -> None:
        """Directories are where files are."""

    def lock(self, path: Path) -> _Lock:
        self._touch()
        if path in self._disk.locks:
            raise HeldByAnother(path, "unknown")
        self._disk.locks[path] = self
        return _Lock(self, path)

    def unlock(self, path: Path) -> None:
        if self._disk.locks.get(path) is self:
            del self._disk.locks[path]

    def place(self, path: Path, content: bytes, mode: int) -> None:
        """Nobody asks for modes here."""
        self._put(path, content)

    def place_directory(self, path: Path, mode: int) -> None:
        """Directories are where files are."""

    def place_memory(self, path: Path, mode: int, size: int | None) -> bool:
        """Containers here write nothing that could be lost."""
        return True

    def used(self, path: Path) -> int:
        return sum(len(inode.content) for one, inode in self._disk.names.items() if path in one.parents)

    def target(self, path: Path) -> str | None:
        content = self.read(path)
        return content.decode() if content is not None else None

    def kind(self, path: Path) -> FileKind | None:
        self._touch()
        if path in self._disk.names:
            return FileKind.FILE
        return FileKind.DIRECTORY if any(path in one.parents for one in self._disk.names) else None

    def real(self, path: Path) -> Path:
        return path

    def give(self, path: Path, group: int) -> None:
        """Nobody asks for groups either."""

    def remove_tree(self, path: Path) -> None:
        for one in [one for one in self._disk.names if path in one.parents]:
            self.remove(one)

    def _link(self, path: Path, target: str) -> None:
        """A link is a file that holds its target."""
        self._put(path, target.encode())

    def _put(self, path: Path, content: bytes) -> None:
        self._touch()
        if path in self._disk.names:
            raise FileExistsError(errno.EEXIST, "File exists", str(path))
        self._disk.names[path] = self._disk.put(content)

    def _sync(self, path: Path) -> None:
        self._touch()
        disk = self._disk
        inode = disk.names.get(path)
        if inode is not None:
            inode.synced = inode.content
            return
        for one in [one for one in disk.kept if one.parent == path and one not in disk.names]:
            del disk.kept[one]
        disk.kept |= {one: inode for one, inode in disk.names.items() if one.parent == path}

    def _rename(self, path: Path, to: Path) -> None:
        self._touch()
        self._disk.names[to] = self._disk.names.pop(path)

    def _touch(self) -> None:
        if not self._is_dead:
            self._touched()
        if self._is_dead:
            raise Fenced
