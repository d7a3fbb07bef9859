"""Puts the content of a volume on disk so that whoever reads it sees all of the old or all of the new.

    VOLUME/key      -> ..data/key             what containers open
    VOLUME/..data   -> ..0000000012           at one moment the next one
    VOLUME/..0000000012/key                   written before anything points to it

As a kubelet lays it out, so programs that watch for `..data` to change work here too.
"""

from collections.abc import Iterator
from pathlib import Path

from allot.base import Files

from .volumes import Content, links, require_inside

DATA = "..data"
DIRECTORY_MODE = 0o755


def lay_out(files: Files, directory: Path, content: Content) -> bool:
    """Whether anything had to change. Raises BadVolume before it touches anything, and OSError."""
    for path in content:
        require_inside(path)
    files.place_directory(directory, DIRECTORY_MODE)
    now = files.target(directory / DATA)
    is_new = now is None or not _is_there(files, directory / now, content)
    if is_new:
        now = _after(now)
        _write(files, directory / now, content)
        files.link(directory / DATA, now)
    # An agent that died may have got as far as here.
    _show(files, directory, links(content))
    for name in files.names(directory):
        if name.startswith("..") and name not in (DATA, now):
            files.remove_tree(directory / name)
    return is_new


def _write(files: Files, directory: Path, content: Content) -> None:
    files.remove_tree(directory)  # what an agent began that did not get far
    for parent in _parents(content):
        files.place_directory(directory / parent, DIRECTORY_MODE)
    for path, file in content.items():
        files.place(directory / path, file.content, file.mode)


def _is_there(files: Files, directory: Path, content: Content) -> bool:
    known = frozenset(_below(files, directory, ""))
    return known == content.keys() and all(
        files.read(directory / path) == file.content for path, file in content.items()
    )


def _below(files: Files, directory: Path, prefix: str) -> Iterator[str]:
    for name in files.names(directory):
        inner = list(_below(files, directory / name, f"{prefix}{name}/"))
        yield from inner or [f"{prefix}{name}"]


def _after(now: str | None) -> str:
    number = int(now.removeprefix("..")) + 1 if now is not None else 1
    return f"..{number:010d}"


def _parents(content: Content) -> list[str]:
    """Those above come first; the volume's own directory is among them."""
    found = {""}
    for path in content:
        parts = path.split("/")[:-1]
        found |= {"/".join(parts[: count + 1]) for count in range(len(parts))}
    return sorted(found)


def _show(files: Files, directory: Path, wanted: frozenset[str]) -> None:
    for name in wanted:
        if files.target(directory / name) != f"{DATA}/{name}":
            files.link(directory / name, f"{DATA}/{name}")
    for name in files.names(directory):
        if not name.startswith("..") and name not in wanted:
            files.remove(directory / name)
