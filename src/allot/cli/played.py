"""The options of commands that play hollow nodes. What takes long to import is imported when it is needed."""

import argparse
from typing import TYPE_CHECKING

from allot.base import duration_s

if TYPE_CHECKING:
    from allot import hollow

LIST = "list"
NODES, FLEET = 3, "mixed"
_PERIOD_S_MIN = 0.01
DELAYS = (
    ("--start-delay", "0.2s", "from bound to running"),
    ("--run-time", "10s", "of pods that end, such as those of jobs"),
    ("--stop-delay", "0.2s", "from deleted to gone"),
    ("--lease-every", "60s", "between two renewals of a node's lease"),
)
"""Each with what `hollow` does unless it is given."""


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--nodes", type=int, default=NODES, metavar="N", help=f"default: {NODES}")
    parser.add_argument(
        "--fleet", default=FLEET, metavar="NAME", help="what the nodes are; `--fleet list` shows all"
    )
    for flag, otherwise, what in DELAYS:
        read = _period_s if flag == "--lease-every" else _duration_s
        parser.add_argument(flag, type=read, metavar="D", help=f"{what}; default: {otherwise}")


def show_fleets() -> int:
    from allot.fleet import CATALOGUE

    for name, design in CATALOGUE.items():
        print(f"{name:<8}{design.summary}")
    return 0


def stages(options: argparse.Namespace) -> "hollow.Stages":
    from allot import hollow

    usual = hollow.Stages()
    given = (options.start_delay, options.run_time, options.stop_delay)
    each = zip(given, (usual.start_s, usual.run_s, usual.stop_s), strict=True)
    return hollow.Stages(*(usual_s if given_s is None else given_s for given_s, usual_s in each))


def renewing(options: argparse.Namespace) -> "hollow.Renewing":
    """Others wait for four missed renewals before they worry."""
    from allot import hollow

    if options.lease_every is None:
        return hollow.Renewing()
    return hollow.Renewing(options.lease_every, max(4, round(4 * options.lease_every)))


def _duration_s(text: str) -> float:
    try:
        return duration_s(text)
    except ValueError as wrong:
        raise argparse.ArgumentTypeError(str(wrong)) from None


def _period_s(text: str) -> float:
    """Of something that is done again and again."""
    found_s = _duration_s(text)
    if found_s < _PERIOD_S_MIN:
        raise argparse.ArgumentTypeError(f"{text!r} is too short: at least {_PERIOD_S_MIN:g}s")
    return found_s
