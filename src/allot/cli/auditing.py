"""The flags of the audit log, for every command that serves the API."""

import argparse
from pathlib import Path

from allot.api import Quantity
from allot.apiserver import AuditSettings, Level

from . import flags

_USUAL = AuditSettings(Path())
_FILE_BYTES_MIN = 1024 * 1024


def arguments(parser: argparse.ArgumentParser) -> None:
    levels = [level.value for level in Level]
    parser.add_argument(
        "--audit-log",
        type=flags.path,
        metavar="FILE",
        help="write who did what there, one JSON line a request",
    )
    parser.add_argument(
        "--audit-level",
        choices=levels,
        default=Level.CHANGES.value,
        help="refusals; changes: also writes and looks at secrets (default); all: also other reads",
    )
    parser.add_argument(
        "--audit-log-max-size",
        type=_file_bytes,
        default=_USUAL.file_bytes_max,
        metavar="SIZE",
        help="of a file, before the next one begins, e.g. 500M (default: 100Mi)",
    )
    parser.add_argument(
        "--audit-log-backups",
        type=_count,
        default=_USUAL.backups,
        metavar="N",
        help=f"full files that are kept (default: {_USUAL.backups})",
    )


def settings(options: argparse.Namespace) -> AuditSettings | None:
    if options.audit_log is None:
        return None
    return AuditSettings(
        options.audit_log,
        Level(options.audit_level),
        options.audit_log_max_size,
        options.audit_log_backups,
    )


def _file_bytes(text: str) -> int:
    try:
        size = Quantity.parse(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a size such as 100Mi") from None
    if not size.is_integer or size.as_int() < _FILE_BYTES_MIN:
        raise argparse.ArgumentTypeError(f"{text!r} is too small: at least 1Mi")
    return size.as_int()


def _count(text: str) -> int:
    if not text.isascii() or not text.isdigit() or len(text) > 4:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of files between 0 and 9999")
    return int(text)
