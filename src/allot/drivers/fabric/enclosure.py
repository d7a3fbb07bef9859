"""Which accelerator is attached to which node, and for whom: a file, in place of the fabric's manager.

Several processes may use one file: each change has it to itself, and is on disk before it counts.
"""

import fcntl
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import msgspec

from allot.base import os_reason, write_file

FORMAT: Final = "allot.dev/enclosure/v1"


class Link(msgspec.Struct, frozen=True):
    node: str
    claim: str  # its uid


class _File(msgspec.Struct, frozen=True):
    format: str
    accelerators: dict[str, Link | None]


class BadEnclosure(Exception):
    """The file cannot be read. The message says why."""


class Enclosure:
    def __init__(self, path: Path) -> None:
        self._path = path

    def build(self, accelerators: int) -> None:
        """Make one, unless it is there."""
        with self._alone():
            if not self._path.exists():
                self._write({f"acc-{at}": None for at in range(accelerators)})

    def links(self) -> Mapping[str, Link | None]:
        """Every accelerator, and where it is attached. Raises BadEnclosure."""
        try:
            file = msgspec.json.decode(self._path.read_bytes(), type=_File)
        except OSError as refused:
            raise BadEnclosure(f"{self._path}: {os_reason(refused)}") from None
        except msgspec.MsgspecError as wrong:
            raise BadEnclosure(f"{self._path}: not an enclosure: {wrong}") from None
        if file.format != FORMAT:
            raise BadEnclosure(f"{self._path}: its format is {file.format[:100]!r}, and not {FORMAT!r}")
        return file.accelerators

    def free(self) -> int:
        return sum(link is None for link in self.links().values())

    def of(self, claim: str) -> tuple[str, ...]:
        """What is attached for a claim."""
        return tuple(name for name, link in self.links().items() if link is not None and link.claim == claim)

    def attach(self, claim: str, node: str, count: int) -> tuple[str, ...]:
        """So many for the claim, at the node; none if there are not enough. The same again: the same."""
        with self._alone():
            links = dict(self.links())
            had = [name for name, link in links.items() if link == Link(node, claim)]
            free = [name for name, link in links.items() if link is None][: max(count - len(had), 0)]
            if len(had) + len(free) < count:
                return ()
            self._write({**links, **{name: Link(node, claim) for name in free}})
            return (*had, *free)

    def detach(self, claim: str) -> None:
        self.keep(lambda link: link.claim != claim)

    def keep(self, wanted: Callable[[Link], bool]) -> None:
        """Detach whatever is not wanted."""
        with self._alone():
            links = self.links()
            kept = {name: link if link is not None and wanted(link) else None for name, link in links.items()}
            if kept != links:
                self._write(kept)

    def _write(self, links: Mapping[str, Link | None]) -> None:
        write_file(self._path, msgspec.json.encode(_File(FORMAT, dict(links))))

    @contextmanager
    def _alone(self) -> Iterator[None]:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        with self._path.with_suffix(".lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield
