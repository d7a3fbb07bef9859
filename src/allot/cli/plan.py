"""allot plan --groups FILE: which nodes to add so that pods find places, or why none would help.

The pods are those that wait in the cluster, or in a dump of it (`--dump`), and those of the manifests that
are named. The groups' FILE says what can grow. Nothing is written. The exit status is 0 when every pod would
have a place, 3 when some would not.
"""

import argparse
import json
import random
import sys
from pathlib import Path

from allot import autoscaler, planning, scheduler
from allot.api import Gates
from allot.base import RandomIds, SystemClock, os_reason
from allot.client import Client

from . import asking, flags

UNPLACED = 3


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--groups", type=flags.path, required=True, metavar="FILE", help="that can grow")
    parser.add_argument("--dump", type=flags.path, metavar="FILE", help="ask about what `allot dump` wrote")
    parser.add_argument("manifests", nargs="*", type=Path, metavar="FILE", help="with pods or workloads")
    asking.arguments(parser)


def run(options: argparse.Namespace) -> int:
    try:
        configuration = autoscaler.read_groups(options.groups.read_text())
    except OSError as refused:
        print(f"allot plan: {options.groups}: {os_reason(refused)}", file=sys.stderr)
        return 2
    except autoscaler.BadGroups as wrong:
        print(f"allot plan: {options.groups}: {wrong}", file=sys.stderr)
        return 2
    if options.dump:
        try:
            dump = planning.load(options.dump)
        except planning.BadDump as wrong:
            print(f"allot plan: {wrong}", file=sys.stderr)
            return 2
        return _planned(dump, options, options.namespace or "default", configuration)

    async def question(client: Client, gates: Gates, namespace: str) -> int:
        return _planned(await planning.take(client, gates, namespace), options, namespace, configuration)

    return asking.run("plan", options, question)


def _planned(
    dump: planning.Dump,
    options: argparse.Namespace,
    namespace: str,
    configuration: autoscaler.Configuration,
) -> int:
    clock = SystemClock()
    cluster = planning.Cluster(dump.gathered, dump.gates)
    if cluster.reading.hides_supply:
        asking.tell_unread("plan", cluster.reading.hides_supply)
        return asking.UNANSWERED
    try:
        manifests = [
            one
            for path in options.manifests
            for one in planning.manifests.read(path, dump.gates, clock, namespace)
        ]
        plugins = scheduler.default_plugins(RandomIds(random.Random(0)), scheduler.Settings())
        plan = autoscaler.plan(cluster, manifests, configuration, plugins, clock.now())
    except (planning.BadManifest, planning.BadChange) as wrong:
        print(f"allot plan: {wrong}", file=sys.stderr)
        return 2
    print(json.dumps(plan.as_json()) if options.json else plan.text())
    return UNPLACED if plan.helpless or plan.refused else 0
