"""Specs in a directory: written whole or not at all, read with the place of each fault."""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import msgspec

from allot.base import FileKind, Files, MachineFiles, os_reason

from .checks import InvalidSpec, check
from .names import kind_parts
from .spec import Spec, decode, encode

SUFFIXES: Final = (".json", ".yaml")
FILE_BYTES_MAX: Final = 16 * 1024 * 1024


def spec_file_name(kind: str, id: str) -> str:
    """A name for what is there for a while, as other drivers make it: vendor-class_id.json."""
    vendor, class_ = kind_parts(kind)
    return f"{vendor}-{class_}_{id.replace('/', '-').replace(':', '-')}.json"


def read_spec(path: Path, files: Files | None = None) -> Spec | None:
    """None: it is not there, or no more. Raises InvalidSpec, also where the file cannot be read."""
    files = files if files is not None else MachineFiles()
    try:
        kind = files.kind(path)
        if kind not in (None, FileKind.FILE):  # whoever opened a pipe would wait for a writer
            raise InvalidSpec(str(path), (f"it is a {kind.value}",))
        content = files.read(path, FILE_BYTES_MAX + 1)
        if content is None:
            return None
        if len(content) > FILE_BYTES_MAX:
            raise InvalidSpec(str(path), (f"the file has more than {FILE_BYTES_MAX} bytes",))
        spec = decode(content, yaml=path.suffix == ".yaml")
    except OSError as refused:
        raise InvalidSpec(str(path), (os_reason(refused),)) from None
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as fault:
        raise InvalidSpec(str(path), (str(fault),)) from None
    check(spec, str(path))
    return spec


class SpecDirectory:
    """The specs that one driver keeps in a directory that others write to as well."""

    def __init__(self, directory: Path, files: Files | None = None) -> None:
        self.path = directory
        self._files = files if files is not None else MachineFiles()

    def write(self, name: str, spec: Spec) -> None:
        """Raises InvalidSpec before anything is written, and OSError.

        A machine that begins anew has no containers that were given these devices: whoever prepares them
        again writes the spec again, so nobody waits for a disk."""
        path = self._file(name)
        check(spec, name)
        self._files.make_directory(self.path)
        self._files.write(path, encode(spec), durable=False)

    def remove(self, name: str) -> None:
        """What is not there need not be removed."""
        self._files.remove(self._file(name))

    def read(self, name: str) -> Spec | None:
        return read_spec(self._file(name), self._files)

    def names(self) -> frozenset[str]:
        return frozenset(path.name for path in spec_files(self.path, self._files))

    def _file(self, name: str) -> Path:
        if "/" in name or name.startswith(".") or not name.endswith(SUFFIXES):
            raise ValueError(f"{name!r} is not a name for a CDI spec: expected NAME.json or NAME.yaml")
        return self.path / name


def spec_files(directory: Path, files: Files) -> Iterator[Path]:
    """In the order of their names; a file that is being written begins with a dot."""
    for name in files.names(directory):
        if name.endswith(SUFFIXES) and not name.startswith("."):
            yield directory / name
