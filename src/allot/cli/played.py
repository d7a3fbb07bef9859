"""The options of commands that play hollow nodes."""

import argparse

from allot import hollow
from allot.fleet import CATALOGUE

LIST = "list"
NODES = 3
_PERIOD_S_MIN = 0.01


def arguments(parser: argparse.ArgumentParser) -> None:
    usual, renewed = hollow.Stages(), hollow.Renewing()
    parser.add_argument("--nodes", type=int, default=NODES, metavar="N", help=f"default: {NODES}")
    parser.add_argument(
        "--fleet", default="mixed", metavar="NAME", help="what the nodes are; `--fleet list` shows all"
    )
    for flag, otherwise_s, what in (
        ("--start-delay", usual.start_s, "from bound to running"),
        ("--run-time", usual.run_s, "of pods that end, such as those of jobs"),
        ("--stop-delay", usual.stop_s, "from deleted to gone"),
        ("--lease-every", renewed.every_s, "between two renewals of a node's lease"),
    ):
        text = f"{what}; default: {otherwise_s:g}s"
        read = _period_s if flag == "--lease-every" else _duration_s
        parser.add_argument(flag, type=read, default=otherwise_s, metavar="D", help=text)


def show_fleets() -> int:
    for name, design in CATALOGUE.items():
        print(f"{name:<8}{design.summary}")
    return 0


def stages(options: argparse.Namespace) -> hollow.Stages:
    return hollow.Stages(options.start_delay, options.run_time, options.stop_delay)


def renewing(options: argparse.Namespace) -> hollow.Renewing:
    """Others wait for four missed renewals before they worry."""
    return hollow.Renewing(options.lease_every, max(4, round(4 * options.lease_every)))


def _duration_s(text: str) -> float:
    try:
        return hollow.duration_s(text)
    except ValueError as wrong:
        raise argparse.ArgumentTypeError(str(wrong)) from None


def _period_s(text: str) -> float:
    """Of something that is done again and again."""
    found_s = _duration_s(text)
    if found_s < _PERIOD_S_MIN:
        raise argparse.ArgumentTypeError(f"{text!r} is too short: at least {_PERIOD_S_MIN:g}s")
    return found_s
