"""Specs in a directory: written whole or not at all, read with the place of each fault."""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import msgspec

from allot.base import os_reason, write_file

from .checks import InvalidSpec, check
from .names import kind_parts
from .spec import Spec, decode, encode

SUFFIXES: Final = (".json", ".yaml")
FILE_BYTES_MAX: Final = 16 * 1024 * 1024


def spec_file_name(kind: str, id: str) -> str:
    """A name for what is there for a while, as other drivers make it: vendor-class_id.json."""
    vendor, class_ = kind_parts(kind)
    return f"{vendor}-{class_}_{id.replace('/', '-').replace(':', '-')}.json"


def read_spec(path: Path) -> Spec:
    """Raises InvalidSpec, also where the file cannot be read."""
    try:
        if path.stat().st_size > FILE_BYTES_MAX:
            raise InvalidSpec(str(path), (f"the file has more than {FILE_BYTES_MAX} bytes",))
        spec = decode(path.read_bytes(), yaml=path.suffix == ".yaml")
    except OSError as refused:
        raise InvalidSpec(str(path), (os_reason(refused),)) from None
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as fault:
        raise InvalidSpec(str(path), (str(fault),)) from None
    check(spec, str(path))
    return spec


class SpecDirectory:
    """The specs that one driver keeps in a directory that others write to as well."""

    def __init__(self, directory: Path) -> None:
        self.path = directory

    def write(self, name: str, spec: Spec) -> None:
        """Raises InvalidSpec before anything is written, and OSError."""
        path = self._file(name)
        check(spec, name)
        self.path.mkdir(parents=True, exist_ok=True)
        write_file(path, encode(spec))

    def remove(self, name: str) -> None:
        """What is not there need not be removed."""
        self._file(name).unlink(missing_ok=True)

    def read(self, name: str) -> Spec | None:
        path = self._file(name)
        return read_spec(path) if path.exists() else None

    def names(self) -> frozenset[str]:
        return frozenset(path.name for path in spec_files(self.path))

    def _file(self, name: str) -> Path:
        if "/" in name or name.startswith(".") or not name.endswith(SUFFIXES):
            raise ValueError(f"{name!r} is not a name for a CDI spec: expected NAME.json or NAME.yaml")
        return self.path / name


def spec_files(directory: Path) -> Iterator[Path]:
    """In the order of their names; a file that is being written begins with a dot."""
    try:
        found = sorted(directory.iterdir())
    except (FileNotFoundError, NotADirectoryError):
        return
    for path in found:
        if path.suffix in SUFFIXES and not path.name.startswith("."):
            yield path
