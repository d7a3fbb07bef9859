"""allot convert: manifests of every version of resource.k8s.io, as v1 has them, on standard output.

Classic claims (v1alpha1, v1alpha2) name a class and parameters that only a driver could read; which
DeviceClass took the place of a class is said with `--class OLD=NEW`, everything else in a file (`--mapping
FILE`). Where something cannot be converted nothing is printed but the reasons, and the exit status is 1; it
is 2 where a file cannot be read.
"""

import argparse
import sys
from pathlib import Path
from typing import Any

import yaml

from allot import base
from allot.api import Fields
from allot.base import NoDocuments, os_reason
from allot.generations import BadMapping, Conversion, Mapping, convert, read_mapping

from . import flags

IMPOSSIBLE = 1
UNREADABLE = 2


class Unreadable(Exception):
    pass


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("files", nargs="+", metavar="FILE", type=flags.path, help="YAML or JSON; - is stdin")
    add_mapping(parser)


def add_mapping(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--class",
        dest="classes",
        action="append",
        default=[],
        metavar="OLD=NEW",
        type=_pair,
        help="the DeviceClass that took the place of a class of classic claims; may be repeated",
    )
    parser.add_argument(
        "--mapping",
        type=flags.path,
        metavar="FILE",
        help="what classes and parameters of classic claims ask for, as YAML",
    )


def run(options: argparse.Namespace) -> int:
    try:
        found = convert([one for path in options.files for one in documents(path)], mapping(options))
    except Unreadable as wrong:
        print(f"allot convert: {wrong}", file=sys.stderr)
        return UNREADABLE
    tell(found)
    if found.impossible:
        return IMPOSSIBLE
    print(yaml.safe_dump_all(found.documents, sort_keys=False), end="")
    return 0


def tell(found: Conversion) -> None:
    for note in found.notes:
        print(f"allot convert: {note}", file=sys.stderr)
    for why in found.impossible:
        print(f"allot convert: cannot be converted: {why}", file=sys.stderr)


def mapping(options: argparse.Namespace) -> Mapping:
    """Raises Unreadable."""
    said = Mapping({old: {"deviceClassName": new} for old, new in options.classes})
    if options.mapping is None:
        return said
    try:
        written = read_mapping(next(iter(_read(options.mapping)), None))
    except BadMapping as wrong:
        raise Unreadable(f"{options.mapping}: {wrong}") from None
    return Mapping({**written.classes, **said.classes}, written.parameters)


def documents(path: Path) -> list[Fields]:
    """Raises Unreadable."""
    found = _read(path)
    if not all(isinstance(one, dict) for one in found):
        raise Unreadable(f"{path}: a document in it is no object")
    return found


def _read(path: Path) -> list[Any]:
    try:
        return base.documents(sys.stdin.read() if str(path) == "-" else path.read_text())
    except OSError as refused:
        raise Unreadable(f"{path} cannot be read: {os_reason(refused)}") from None
    except UnicodeDecodeError:
        raise Unreadable(f"{path} is not text") from None
    except NoDocuments as wrong:
        raise Unreadable(f"{path} cannot be read: {wrong}") from None


def _pair(text: str) -> tuple[str, str]:
    old, equals, new = text.partition("=")
    if not (old and equals and new):
        raise argparse.ArgumentTypeError(f"{text!r} is not OLD=NEW")
    return old, new
