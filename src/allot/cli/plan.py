"""allot plan --groups FILE: which nodes to add so that pods find places, or why none would help.

The pods are those that wait in the cluster, or in a dump of it (`--dump`), and those of the manifests that
are named. The groups' FILE says what can grow. Nothing is written. The exit status is 0 when every pod would
have a place, 3 when some would not.
"""

import argparse
import asyncio
import json
import random
import sys
from pathlib import Path

from allot import autoscaler, planning, scheduler
from allot.api import Gates
from allot.base import RandomIds, SystemClock
from allot.client import Client
from allot.wire import remote

from . import asking, flags, groups

UNPLACED = 3


def arguments(parser: argparse.ArgumentParser) -> None:
    groups.argument(parser)
    parser.add_argument("--dump", type=flags.path, metavar="FILE", help="ask about what `allot dump` wrote")
    parser.add_argument("manifests", nargs="*", type=Path, metavar="FILE", help="with pods or workloads")
    asking.arguments(parser)


def run(options: argparse.Namespace) -> int:
    try:
        told = groups.read(options.groups)
    except (autoscaler.BadGroups, autoscaler.BadConfiguration) as wrong:
        print(f"allot plan: {options.groups}: {wrong}", file=sys.stderr)
        return 2
    if options.dump:
        try:
            dump = planning.load(options.dump)
        except planning.BadDump as wrong:
            print(f"allot plan: {wrong}", file=sys.stderr)
            return 2
        with asking.collecting_nothing():
            told = told._replace(extenders={})  # drivers know the cluster of today
            return asyncio.run(_planned(dump, options, options.namespace or "default", told))

    async def question(client: Client, gates: Gates, namespace: str) -> int:
        dump = await planning.take(client, gates, namespace)
        with asking.collecting_nothing():
            return await _planned(dump, options, namespace, told)

    return asking.run("plan", options, question)


async def _planned(
    dump: planning.Dump,
    options: argparse.Namespace,
    namespace: str,
    told: groups.Told,
) -> int:
    clock, configuration = SystemClock(), told.configuration
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
        survey = await _surveyed(configuration, cluster, clock) if configuration.provider else None
        plan = await autoscaler.plan(
            cluster, manifests, configuration, plugins, clock.now(), survey, told.extenders
        )
    except (planning.BadManifest, planning.BadChange, remote.BadEndpoint) as wrong:
        print(f"allot plan: {wrong}", file=sys.stderr)
        return 2
    except autoscaler.ProviderFailed as failed:
        print(f"allot plan: the provider does not answer: {failed}", file=sys.stderr)
        return asking.UNANSWERED
    finally:
        for one in told.extenders.values():
            await one.close()
    print(json.dumps(plan.as_json()) if options.json else plan.text())
    return UNPLACED if plan.helpless or plan.refused else 0


async def _surveyed(
    configuration: autoscaler.Configuration, cluster: planning.Cluster, clock: SystemClock
) -> autoscaler.Survey:
    """The provider is asked, and told nothing. Raises ProviderFailed and BadEndpoint."""
    at = configuration.provider
    assert at is not None
    channel = remote.dial(at)
    try:
        cloud = autoscaler.RemoteProvider(channel, configuration, clock, at.timeout_s)
        nodes = {key.name: one for key, one in cluster.objects.get(scheduler.NODES, {}).items()}
        return await cloud.survey(nodes)
    finally:
        await channel.close()
