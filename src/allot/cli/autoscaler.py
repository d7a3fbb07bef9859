"""allot autoscaler --groups FILE: nodes that come when pods wait for them, and go when nobody needs them.

The groups' file says what can grow. Without more in it, groups are hollow nodes of the catalogue's
fleets, which `allot up` or `allot nodes` plays; each is written as the node itself, so a kubeconfig must be
that of somebody who may act for nodes. With `command`, that program is run. With `provider`, or an address
in place of FILE, somebody is asked who speaks the cluster autoscaler's gRPC protocol.
"""

import argparse
import sys

from allot import autoscaler
from allot.apiserver import identities
from allot.informers import Telemetry
from allot.wire import remote

from . import component, flags, groups
from .component import Running
from .nodes import clients_of_nodes

LEASE = "allot-autoscaler"
_SETTINGS, _PATIENCE = autoscaler.Settings(), autoscaler.Patience()


def arguments(parser: argparse.ArgumentParser) -> None:
    component.arguments(parser)
    groups.argument(parser)
    parser.add_argument("--dry-run", action="store_true", help="say what would be done, and do nothing")
    for name, default, words in (
        ("--unneeded", _SETTINGS.unneeded_s, "how long a node is not needed before it goes"),
        ("--after-growth", _SETTINGS.after_growth_s, "how long nothing goes after something was added"),
        ("--patience", _PATIENCE.arrival_s, "how long a node may take to publish what was promised"),
        ("--backoff", _PATIENCE.backoff_s, "how long a group waits after a node was late"),
    ):
        parser.add_argument(
            name, type=flags.seconds, default=default, metavar="S", help=f"{words} (default: {default:.0f})"
        )


def run(options: argparse.Namespace) -> int:
    try:
        configuration, extenders = groups.read(options.groups)
        if configuration.provider is not None:
            remote.readable(configuration.provider)
    except (autoscaler.BadGroups, autoscaler.BadConfiguration) as wrong:
        print(f"allot autoscaler: {options.groups}: {wrong}", file=sys.stderr)
        return 2
    except remote.BadEndpoint as wrong:
        print(f"allot autoscaler: {options.groups}: provider: {wrong}", file=sys.stderr)
        return 2
    wanted = autoscaler.Options(
        configuration,
        autoscaler.Settings(options.unneeded, options.after_growth),
        autoscaler.Patience(options.patience, options.backoff),
        dry_run=options.dry_run,
    )

    async def work(on: Running) -> None:
        provider: autoscaler.Provider
        cloud: autoscaler.RemoteProvider | None = None
        if configuration.provider is not None:
            usual = (options.unneeded, options.patience)
            at = configuration.provider
            cloud = autoscaler.RemoteProvider(
                remote.dial(at), configuration, on.clock, at.timeout_s, usual=usual
            )
            provider = cloud
        elif configuration.command:
            provider = autoscaler.CommandProvider(configuration.command)
        else:
            provider = autoscaler.HollowProvider(on.client, clients_of_nodes(on))
        telemetry = Telemetry(on.metrics, on.clock)
        dependencies = autoscaler.Dependencies(
            on.client,
            on.informers,
            provider,
            on.clock,
            on.ids,
            on.metrics,
            telemetry,
            on.gates,
            extenders,
            cloud,
        )
        try:
            await autoscaler.run(dependencies, wanted, on.election, ready=on.ready)
        finally:
            for one in extenders.values():
                await one.close()
            if cloud is not None:
                await cloud.close()

    return component.run("autoscaler", LEASE, identities.AUTOSCALER, options, work)
