"""What components log, on stderr: one line each, with the time (UTC), the level and the module.

2026-11-16T09:57:57.123Z W allot.store.etcd.connection: etcd at 127.0.0.1:2379 does not answer: …
"""

import argparse
import logging
import os
import sys
import time

VARIABLE = "ALLOT_LOG_LEVEL"
LEVELS: dict[str, int] = {
    "debug": logging.DEBUG,
    "info": logging.INFO,
    "warning": logging.WARNING,
    "error": logging.ERROR,
}


def arguments(parser: argparse.ArgumentParser, usual: str) -> None:
    parser.add_argument(
        "--log-level",
        type=_level,
        metavar="LEVEL",
        default=os.environ.get(VARIABLE) or usual,
        help=f"{', '.join(LEVELS)}; default: {VARIABLE}, then {usual}",
    )


def _level(text: str) -> int:
    found = LEVELS.get(text.lower())
    if found is None:
        raise argparse.ArgumentTypeError(f"{text!r} is none of {', '.join(LEVELS)}")
    return found


def begin(level: int = logging.ERROR) -> None:
    """From now on. Commands that answer and end say themselves what went wrong, and log nothing else."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_Lines())
    logging.basicConfig(level=level, handlers=[handler])


class _Lines(logging.Formatter):
    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname).1s %(name)s: %(message)s")

    def formatTime(self, record: logging.LogRecord, datefmt: str | None = None) -> str:
        """UTC, as objects have it, with milliseconds."""
        return f"{time.strftime('%Y-%m-%dT%H:%M:%S', time.gmtime(record.created))}.{int(record.msecs):03}Z"
