"""The groups of nodes that commands are handed: a file, or the address of a provider that names them."""

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from allot import autoscaler
from allot.base import os_reason

from . import flags

_GRPC = "grpc://"
_UNIX = "unix:"


class Told(NamedTuple):
    configuration: autoscaler.Configuration
    extenders: Mapping[str, autoscaler.Extender]


def argument(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--groups",
        type=flags.something,
        required=True,
        metavar="FILE",
        help="that can grow; or a provider's address: grpc://HOST:PORT, unix:PATH",
    )


def read(where: str) -> Told:
    """Raises BadGroups and BadConfiguration."""
    if where.startswith((_GRPC, _UNIX)):
        return Told(autoscaler.at_provider(where.removeprefix(_GRPC)), {})
    path = Path(where)
    try:
        text = path.read_text()
    except OSError as refused:
        raise autoscaler.BadGroups(os_reason(refused)) from None
    except UnicodeDecodeError:
        raise autoscaler.BadGroups("not text") from None
    found = autoscaler.read_groups(text, path.parent)
    return Told(found, autoscaler.configured(text) if found.extenders else {})
