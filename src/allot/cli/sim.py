"""allot sim: made-up hours of a cluster, one for each seed, with faults of every kind."""

import argparse
import json
import logging
import math
import time
from collections.abc import Iterable, Mapping

from allot.sim import (
    HOUR_S,
    PODS,
    SHARE_WITH_AGENTS,
    SHARE_WITH_AUTOSCALER,
    SHARE_WITH_CLASSIC,
    SHARE_WITH_COMPUTE,
    SHARE_WITH_NUMERIC,
    Cut,
    Outcome,
    Report,
    Scope,
    Total,
    faults_of,
    run_many,
    run_one,
    shrink,
)

from . import flags

_SHOWN = 10


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--seed", type=int, default=1, help="which world (default: 1)")
    parser.add_argument("--steps", type=_count, help="play so many steps of its script (default: all)")
    parser.add_argument(
        "--seeds", type=seeds, metavar="A-B", help="many worlds instead; fails if a fault never struck"
    )
    parser.add_argument("--jobs", type=int, default=1, help="with --seeds: in so many processes (default: 1)")
    parser.add_argument(
        "--json", type=flags.output_file, metavar="FILE", help="with --seeds: write what came of them"
    )
    parser.add_argument(
        "--minutes", type=_minutes, default=HOUR_S / 60, help="of made-up time, each (default: 60)"
    )
    parser.add_argument(
        "--pods", type=_count, default=PODS, help="about so many pods come and go (default: 50)"
    )
    parser.add_argument(
        "--until-broken", action="store_true", help="with --seeds: stop at the first that fails"
    )
    parser.add_argument(
        "--scheduler",
        choices=("simple", "real"),
        default="simple",
        help="a stand-in, or ours in three copies with drivers that publish anew (default: simple)",
    )
    parser.add_argument(
        "--agents",
        type=share,
        default=SHARE_WITH_AGENTS,
        metavar="SHARE",
        help="with --scheduler real: in so large a part of the worlds one or two nodes have real agents and "
        "drivers (default: 0.5)",
    )
    parser.add_argument(
        "--classic",
        type=share,
        default=SHARE_WITH_CLASSIC,
        metavar="SHARE",
        help="with --scheduler real: in so large a part of the worlds there are classic claims, and drivers "
        "that are not to be relied on (default: 0.5)",
    )
    parser.add_argument(
        "--compute",
        type=share,
        default=SHARE_WITH_COMPUTE,
        metavar="SHARE",
        help="with --scheduler real: in so large a part of the worlds nodes export compute resources, and "
        "pods ask for classes of them (default: 0.5)",
    )
    parser.add_argument(
        "--numeric",
        type=share,
        default=SHARE_WITH_NUMERIC,
        metavar="SHARE",
        help="with --scheduler real: in so large a part of the worlds there are claims with numeric "
        "parameters, and capacity that shrinks (default: 0.5)",
    )
    parser.add_argument(
        "--autoscaler",
        type=share,
        default=SHARE_WITH_AUTOSCALER,
        metavar="SHARE",
        help="with --scheduler real: in so large a part of the worlds there is an autoscaler in two copies, "
        "and a provider of nodes that is not to be relied on (default: 0.5)",
    )
    parser.add_argument("--no-shrink", action="store_true", help="do not look for a shorter story")
    parser.add_argument("--story", action="store_true", help="tell everything that was done and went wrong")
    parser.add_argument("--verbose", action="store_true", help="show what the components log")


def seeds(text: str) -> range:
    """A-B, or one of them."""
    first, _, last = text.partition("-")
    if not first.isdecimal() or not (last or first).isdecimal() or int(last or first) < int(first):
        raise argparse.ArgumentTypeError(f"{text!r} is not A-B with A up to B")
    return range(int(first), int(last or first) + 1)


def share(text: str) -> float:
    try:
        part = float(text)
    except ValueError:
        part = -1.0
    if not 0 <= part <= 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number from 0 to 1")
    return part


def _count(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is not a number from 0 up")
    return int(text)


def _minutes(text: str) -> float:
    try:
        minutes = float(text)
    except ValueError:
        minutes = 0.0
    if not 0 < minutes < math.inf:
        raise argparse.ArgumentTypeError(f"{text!r} is not a time above 0")
    return minutes


def run(options: argparse.Namespace) -> int:
    level = logging.INFO if options.verbose else logging.CRITICAL
    logging.getLogger().setLevel(level)
    for handler in logging.getLogger().handlers:
        handler.setLevel(level)  # what components log as an error, the report tells as one
    if options.verbose:
        logging.getLogger("allot").setLevel(level)
    scope = Scope(
        options.minutes * 60,
        options.pods,
        real_scheduler=options.scheduler == "real",
        agents=options.agents,
        classic=options.classic,
        compute=options.compute,
        numeric=options.numeric,
        autoscaler=options.autoscaler,
    )
    return _many(options, scope) if options.seeds else _one(options, scope)


# -- one world ----------------------------------------------------------------------------------


def _one(options: argparse.Namespace, scope: Scope) -> int:
    began_s = time.process_time()
    report = run_one(options.seed, scope, Cut(steps=options.steps))
    verdict = "good" if report.good else f"{len(report.wrong)} times a promise was broken"
    print(
        f"seed {report.seed}: {report.steps} steps, {report.pods} pods, {report.events} events,"
        f" {time.process_time() - began_s:.1f} s: {verdict}"
    )
    print(_faults(report.struck, faults_of(scope)))
    _print_wrong(report.wrong)
    if options.story:
        for entry in report.journal:
            print(f"  {entry}")
    if not report.good and not options.no_shrink:
        _tell_shortly(report, scope)
    # A script that was cut short need not meet every fault; a whole one that does not tests too little.
    wanted = faults_of(scope, options.seed) if options.steps is None else ()
    never = [name for name in wanted if not report.struck[name]]
    if never:
        print(f"never struck in this world: {', '.join(never)}")
    return 0 if report.good and not never else 1


def _tell_shortly(report: Report, scope: Scope) -> None:
    story = shrink(report.seed, scope, lambda cut: run_one(report.seed, scope, cut), report)
    print(f"{story.text()}\n(after {story.trials} trials)")


# -- many ---------------------------------------------------------------------------------------


def _many(options: argparse.Namespace, scope: Scope) -> int:
    done, began_s = 0, time.monotonic()

    def progress(outcome: Outcome) -> None:
        nonlocal done
        done += 1
        if outcome.wrong:
            print(f"seed {outcome.seed}: {len(outcome.wrong)} times a promise was broken", flush=True)
            _print_wrong(outcome.wrong)
        elif done % max(1, len(options.seeds) // 20) == 0 or done == len(options.seeds):
            print(f"{done} of {len(options.seeds)} worlds, {time.monotonic() - began_s:.0f} s", flush=True)

    total = Total(faults_of(scope))
    try:
        run_many(options.seeds, scope, options.jobs, progress, total, until_broken=options.until_broken)
    finally:  # interrupted too: what was done was not done in vain
        if total.seeds:
            _print_total(total)
            _write_total(options, total, time.monotonic() - began_s)
    return 0 if total.good else 1


def _write_total(options: argparse.Namespace, total: Total, wall_s: float) -> None:
    if options.json is not None:
        run = {"first": options.seeds[0], "minutes": options.minutes, "wall_s": round(wall_s, 1)}
        options.json.write_text(json.dumps({**run, **total.as_json()}, indent=2) + "\n")


def _print_total(total: Total) -> None:
    print(
        f"{total.seeds} worlds, {total.pods} pods, {total.events} events,"
        f" {total.cpu_s / total.seeds:.2f} s each; {len(total.broken)} broken"
    )
    print(_faults(total.struck, total.expected))
    if total.never:
        print(f"never struck in this run: {', '.join(total.never)}")


def _faults(struck: Mapping[str, int], names: Iterable[str]) -> str:
    return "faults: " + ", ".join(f"{name} {struck[name]}" for name in sorted(names) if struck[name])


def _print_wrong(wrong: tuple[str, ...] | list[str]) -> None:
    for text in wrong[:_SHOWN]:
        print(f"    {text}")
    if len(wrong) > _SHOWN:
        print(f"    and {len(wrong) - _SHOWN} more")
