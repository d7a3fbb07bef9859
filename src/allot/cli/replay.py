"""allot replay FILE: decide again, offline, what a scheduler has decided, and say where that differs and why.

The file is what `allot scheduler --record` or `allot record` wrote. Each decision is made anew by this
version of Allot, on what the scheduler knew at that moment; with the settings of then, or with others. The
exit status is 0 when all are the same, 1 when some differ or a device was given away twice, 2 when the
record cannot be read.
"""

import argparse
import sys

import msgspec

from allot import replay, scheduler

from . import flags
from .scheduler import deciding, scoring_of

DIFFERS, UNREADABLE = 1, 2


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", type=flags.path, metavar="FILE")
    parser.add_argument("-o", "--output", choices=["text", "json"], default="text")
    deciding(parser, unsaid="as then")
    flags.add_feature_gates(parser, "feature gates other than those of then")
    parser.set_defaults(feature_gates=None)


def run(options: argparse.Namespace) -> int:
    try:
        choice = replay.Choice(options.policy, _scoring(options), options.feature_gates)
        found = replay.replayed(replay.read(options.file), choice)
    except (ValueError, replay.BadRecord, replay.CannotReplay) as wrong:
        print(f"allot replay: {wrong}", file=sys.stderr)
        return UNREADABLE
    if options.output == "json":
        print(msgspec.json.encode(found.as_json()).decode())
    else:
        print(replay.telling.text(found))
    return DIFFERS if found.differences or found.held_twice else 0


def _scoring(options: argparse.Namespace) -> scheduler.Scoring | None:
    """None where nothing is said about it."""
    said = (options.packed, options.scoring_strategy, options.scoring_resource, options.scoring_shape)
    return scoring_of(options) if any(said) else None
