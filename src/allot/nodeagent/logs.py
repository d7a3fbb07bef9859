"""What a container has printed, as somebody wants to see it.

Logs lie in files of the CRI's form, `TIME STREAM F|P TEXT`, older ones beside them (`output.log.1`, ...).
Whoever follows goes from one file to the next without missing a line, as long as it is not so far behind
that the oldest was removed.
"""

import asyncio
import os
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import BinaryIO

from allot.api import age, errors

LOOK_S = 0.1
_PIECE = 256 * 1024


@dataclass(frozen=True, slots=True)
class Wanted:
    follow: bool = False
    previous: bool = False
    timestamps: bool = False
    since: str = ""  # as it is written in the log: later sorts after
    tail: int | None = None
    bytes_max: int | None = None
    stream: str = ""  # stdout, stderr, or both


def wanted(query: Mapping[str, str], now: datetime) -> Wanted:
    """Raises BadRequest."""

    def number(name: str, least: int) -> int | None:
        if name not in query:
            return None
        try:
            found = int(query[name])
        except ValueError:
            found = least - 1
        if found < least:
            raise errors.BadRequest(f"{name}: {query[name]!r} is not a number of at least {least}")
        return found

    seconds, since = number("sinceSeconds", 1), ""
    if seconds is not None:
        since = age.micro_timestamp(now - timedelta(seconds=seconds))
    elif query.get("sinceTime"):
        moment = age.moment(query["sinceTime"])
        if moment is None:
            raise errors.BadRequest(f"sinceTime: {query['sinceTime']!r} is not a time")
        since = age.micro_timestamp(moment)
    stream = query.get("stream") or "All"
    if stream not in ("All", "Stdout", "Stderr"):
        raise errors.BadRequest(f"stream: {stream!r} is not All, Stdout or Stderr")
    return Wanted(
        _is_on(query, "follow"),
        _is_on(query, "previous"),
        _is_on(query, "timestamps"),
        since.rstrip("Z"),
        number("tailLines", 0),
        number("limitBytes", 1),
        "" if stream == "All" else stream.lower(),
    )


def _is_on(query: Mapping[str, str], name: str) -> bool:
    return query.get(name, "").lower() in ("1", "true")


async def printed(path: Path, want: Wanted, runs: Callable[[], bool]) -> AsyncIterator[bytes]:
    """In pieces. Whoever follows is served until the container has ended."""
    left = want.bytes_max
    with _Files(path) as files:
        entries = await asyncio.to_thread(lambda: list(_first(files.rest(), want)))
        while True:
            piece = b"".join(_shown(entry, want) for entry in entries)
            if left is not None:
                piece, left = piece[:left], left - len(piece[:left])
            if piece:
                yield piece
            if left == 0 or not want.follow:
                return
            still_runs = runs()  # asked before looking, so that its last words are not missed
            entries = [entry for entry in files.rest() if _is_wanted(entry, want)]
            if not entries:
                if not still_runs:
                    return
                await asyncio.sleep(LOOK_S)


def _first(entries: Iterator[bytes], want: Wanted) -> Iterator[bytes]:
    chosen = (entry for entry in entries if _is_wanted(entry, want))
    return iter(deque(chosen, maxlen=want.tail)) if want.tail is not None else chosen


def _is_wanted(entry: bytes, want: Wanted) -> bool:
    time, _, rest = entry.partition(b" ")
    if want.since and time.decode().rstrip("Z") < want.since:
        return False
    return not want.stream or rest.startswith(want.stream.encode() + b" ")


def _shown(entry: bytes, want: Wanted) -> bytes:
    time, stream_and_rest = entry.split(b" ", 1)
    _, kind, text = stream_and_rest.split(b" ", 2)
    line = text if kind == b"F" else text.removesuffix(b"\n")
    return time + b" " + line if want.timestamps else line


class _Files:
    """The files of one log, read one after the other."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file: BinaryIO | None = None
        self._begun = b""  # a line whose end is not there yet

    def __enter__(self) -> "_Files":
        return self

    def __exit__(self, *why: object) -> None:
        if self._file is not None:
            self._file.close()

    def rest(self) -> Iterator[bytes]:
        """Whole lines that have not been read."""
        while self._file is not None or self._open(None):
            assert self._file is not None
            while piece := self._file.read(_PIECE):
                *lines, self._begun = (self._begun + piece).split(b"\n")
                yield from (line + b"\n" for line in lines)
            if not self._open(os.fstat(self._file.fileno()).st_ino):
                return

    def _open(self, after: int | None) -> bool:
        """The file that follows the one with that number, or the first. False: there is none."""
        found = self._in_order()
        numbers = [_inode(path) for path in found]
        at = numbers.index(after) + 1 if after in numbers else 0
        if at >= len(found):
            return False
        try:
            file = open(found[at], "rb")  # noqa: SIM115 closed when the next is opened, or at the end
        except FileNotFoundError:
            return False
        if self._file is not None:
            self._file.close()
        self._file = file
        return True

    def _in_order(self) -> list[Path]:
        older = sorted(self._path.parent.glob(f"{self._path.name}.*"), key=lambda path: int(path.suffix[1:]))
        return [*older, self._path]


def _inode(path: Path) -> int | None:
    try:
        return path.stat().st_ino
    except FileNotFoundError:
        return None
