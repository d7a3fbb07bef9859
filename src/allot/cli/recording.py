"""Where a record is written, and how much of it is kept."""

import argparse
import sys
from datetime import timedelta

from allot import replay
from allot.base import SystemClock

from . import flags

_MEBIBYTE = 1024 * 1024


def arguments(parser: argparse.ArgumentParser, option: str = "") -> None:
    """With an `option`, beside others; else the file is what the command is about."""
    defaults, to = replay.Bounds(), option or "FILE"
    if option:
        parser.add_argument(
            option,
            type=flags.path,
            metavar="FILE",
            help="write down all that is heard and decided, for `allot replay`",
        )
    else:
        parser.add_argument("record", type=flags.path, metavar="FILE")
    parser.add_argument(
        "--record-max",
        type=flags.count,
        default=defaults.size // _MEBIBYTE,
        metavar="MIB",
        help=f"of {to}: what is older is kept as the state that it came to (default: %(default)s)",
    )
    parser.add_argument(
        "--record-for",
        type=flags.seconds,
        default=defaults.age.total_seconds(),
        metavar="S",
        help=f"of {to}, likewise (default: %(default).0f, a day)",
    )


def begun(options: argparse.Namespace) -> replay.Writing:
    """Raises BadRecord or OSError."""
    bounds = replay.Bounds(max(1, options.record_max) * _MEBIBYTE, timedelta(seconds=options.record_for))
    clock = SystemClock()

    def trouble(why: str) -> None:
        print(f"allot {options.command}: the record ends here: {why}", file=sys.stderr, flush=True)

    writing = replay.Writing(replay.RecordFile(options.record, bounds), bounds, clock, trouble)
    writing.start()
    return writing
