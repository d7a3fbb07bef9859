"""allot what-if CHANGE...: what would become of the pods, worked out on a copy. Nothing is written.

The cluster is read once, or a dump is (`--dump`). The exit status is 0 when every pod that has a node now
keeps one or gets another, 3 when some would not; 1 when the answer depends on what may not be read, 2 when
a change cannot be made.
"""

import argparse
import json
import sys
from pathlib import Path

from allot import planning, scheduler
from allot.allocation import POLICIES
from allot.api import Gates
from allot.base import SystemClock
from allot.client import Client

from . import asking, flags
from .scheduler import deciding, scoring_of

WORSE = 3
_CHANGES = """one argument each: "drain NODE", "remove NODE", "cordon NODE", "uncordon NODE", "taint NODE
KEY[=VALUE]:EFFECT", "untaint NODE KEY", "add [COUNT] like NODE" (empty ones), "apply [COUNT] FILE"
(COUNT of each pod), "delete KIND/NAME", "fail DRIVER/POOL/DEVICE\""""


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("changes", nargs="+", metavar="CHANGE", help=_CHANGES)
    parser.add_argument("--dump", type=flags.path, metavar="FILE", help="ask about what `allot dump` wrote")
    asking.arguments(parser)
    deciding(parser)


def run(options: argparse.Namespace) -> int:
    try:
        settings = scheduler.Settings(policy=POLICIES[options.policy], scoring=scoring_of(options))
    except ValueError as wrong:
        print(f"allot what-if: {wrong}", file=sys.stderr)
        return 2
    if options.dump:
        try:
            dump = planning.load(options.dump)
        except planning.BadDump as wrong:
            print(f"allot what-if: {wrong}", file=sys.stderr)
            return 2
        with asking.collecting_nothing():
            return _answered(dump, options, options.namespace or "default", settings)

    async def question(client: Client, gates: Gates, namespace: str) -> int:
        dump = await planning.take(client, gates, namespace)
        with asking.collecting_nothing():
            return _answered(dump, options, namespace, settings)

    return asking.run("what-if", options, question)


def _answered(
    dump: planning.Dump, options: argparse.Namespace, namespace: str, settings: scheduler.Settings
) -> int:
    clock = SystemClock()

    def read(path: Path) -> list[planning.manifests.Manifest]:
        return planning.manifests.read(path, dump.gates, clock, namespace)

    cluster = planning.Cluster(dump.gathered, dump.gates)
    if cluster.reading.hides_supply:
        asking.tell_unread("what-if", cluster.reading.hides_supply)
        return asking.UNANSWERED
    try:
        changes = [planning.parse(one, read, namespace) for one in options.changes]
        answer = planning.what_if(cluster, changes, clock.now(), settings)
    except (planning.BadChange, planning.BadManifest) as wrong:
        print(f"allot what-if: {wrong}", file=sys.stderr)
        return 2
    print(json.dumps(answer.as_json()) if options.json else planning.telling.text(answer))
    if cluster.reading.hides_use:
        return asking.UNANSWERED
    return WORSE if answer.is_worse else 0
