"""allot bench: how fast it is, on this machine, end to end.

`allot bench scheduling` runs one shape: an API server on a durable store, the claim
controller, the scheduler, and pods that come as fast as they are taken. How it goes is
told on stderr; the last line of stdout is one JSON object. It fails (exit 1) when pods
stay unbound or a promise was broken on the way.
"""

import argparse
import json
import sys

from allot.base import logs
from allot.bench import (
    CASTS,
    NOT_HERE,
    SHAPES,
    STALL_S,
    TRANSPORTS,
    WINDOW_S,
    Fallen,
    NotReady,
    Report,
    Settings,
    Shape,
    Stalled,
    UnknownShape,
    find,
    measure,
    real,
)

from .apiserver import run_loop

_WRONG_SHOWN = 20


def arguments(parser: argparse.ArgumentParser) -> None:
    logs.arguments(parser, "warning")
    parser.add_argument("what", choices=("scheduling",), help="what to measure")
    parser.add_argument("--list", action="store_true", help="show every shape, and end")
    parser.add_argument(
        "--shape",
        metavar="[TEST/]WORKLOAD",
        default="5000pods_500nodes",
        help="default: 5000pods_500nodes; a bare name is one of SchedulingWithResourceClaimTemplate",
    )
    parser.add_argument("--nodes", type=_positive, metavar="N", help="another number of nodes; pods follow")
    parser.add_argument("--pods", type=_positive, metavar="N", help="another number of measured pods")
    parser.add_argument(
        "--mode",
        choices=("burst", "steady"),
        help="all pods at once, or a few at any time; default: the shape's",
    )
    parser.add_argument(
        "--duration",
        type=float,
        default=WINDOW_S,
        metavar="S",
        help=f"of a steady load; default: {WINDOW_S:.0f}",
    )
    parser.add_argument(
        "--transport",
        choices=TRANSPORTS,
        default="inprocess",
        help="everything in one process (default), or the API server in its own: over its socket or HTTPS",
    )
    parser.add_argument("--store", default="sqlite", help="sqlite (default), memory or etcd://HOST:PORT[,…]")
    parser.add_argument(
        "--controllers",
        choices=tuple(CASTS),
        default="claims",
        help="the claim controller (default), also the garbage collector, or all",
    )
    parser.add_argument("--seed", type=int, default=1, help="of everything that is chosen by lot; default: 1")
    parser.add_argument(
        "--patience",
        type=float,
        default=STALL_S,
        metavar="S",
        help=f"give up when no pod was bound for so long; default: {STALL_S:.0f}",
    )
    parser.add_argument(
        "--class-changes-every",
        type=float,
        default=0.0,
        metavar="S",
        help="while it is measured, change a device class that no pod asks for so often; default: never",
    )
    parser.add_argument("--profile", action="store_true", help="say on stderr where the time goes")


def run(options: argparse.Namespace) -> int:
    if options.list:
        return _list()
    try:
        shape = _shape(options)
    except UnknownShape as unknown:
        print(f"allot bench: {unknown}", file=sys.stderr)
        return 2
    settings = Settings(
        shape,
        options.transport,
        options.store,
        options.controllers,
        options.duration,
        options.seed,
        options.patience,
        options.profile,
        options.class_changes_every,
    )
    try:
        return run_loop(_measure(settings))
    except (Stalled, Fallen, NotReady) as failed:
        print(f"allot bench: {shape.name}: {failed}", file=sys.stderr)
        return 1


def _shape(options: argparse.Namespace) -> Shape:
    shape = find(options.shape)
    if options.nodes:
        shape = shape.on(options.nodes)
    if options.mode:
        shape = shape.kept_up() if options.mode == "steady" else shape.in_bursts()
    return shape.with_pods(options.pods) if options.pods else shape


def _list() -> int:
    for shape in SHAPES.values():
        print(f"{shape.name:64} {shape.summary}")
    for test, why in NOT_HERE.items():
        print(f"{test:64} not here: {why}")
    return 0


async def _measure(settings: Settings) -> int:
    report = await measure(
        settings, real.real_scheduler, lambda text: print(text, file=sys.stderr, flush=True)
    )
    for text in report.wrong[:_WRONG_SHOWN]:
        print(text, file=sys.stderr)
    if report.profile is not None:
        print("\n".join(report.profile.lines(max(len(report.tally.bound_s), 1))), file=sys.stderr)
    print(json.dumps(report.figures()), flush=True)
    return _verdict(report)


def _verdict(report: Report) -> int:
    if report.wrong:
        print(f"allot bench: {len(report.wrong)} broken promises", file=sys.stderr)
        return 1
    return 0


def _positive(text: str) -> int:
    if not text.isascii() or not text.isdigit() or not int(text):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of at least one")
    return int(text)
