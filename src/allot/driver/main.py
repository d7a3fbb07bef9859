"""A driver as a program: its flags, and its end.

    --node NAME --kubeconfig FILE [--root DIR] [--cdi-dir DIR] [--instance UID] [--fake]

It prints `ready` once a kubelet can find it, and serves until it is interrupted. What it was told and
what it published stays: a process that follows goes on with both.
"""

import argparse
import asyncio
import os
import signal
import sys
from collections.abc import Coroutine, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

from allot.base import CannotListen, Metrics, Page, exposed, logs
from allot.client import Access, BadAccess, Client, HttpsTransport, kubeconfig

from .devices import BadPools
from .places import CDI_DIRECTORY, KUBELET_ROOT, Places
from .state import BadState

if TYPE_CHECKING:
    from .assembly import Driver
    from .device_plugin import DevicePlugin
    from .node_plugin import NodePlugin
    from .numeric_driver import NumericDriver


def arguments(parser: argparse.ArgumentParser) -> None:
    plugin_arguments(parser)
    parser.add_argument(
        "--kubeconfig",
        type=Path,
        metavar="FILE",
        help="default: KUBECONFIG, then ~/.kube/config, then in a pod its service account",
    )
    parser.add_argument(
        "--cdi-dir",
        type=Path,
        default=CDI_DIRECTORY,
        metavar="DIR",
        help=f"where container runtimes look for CDI specs; default: {CDI_DIRECTORY}",
    )
    parser.add_argument(
        "--instance",
        default=os.environ.get("POD_UID", ""),
        metavar="UID",
        help="names this process where an older one may still run beside it; default: POD_UID",
    )
    parser.add_argument(
        "--fake", action="store_true", help="touch no hardware: prepared devices are only told to containers"
    )
    parser.add_argument(
        "--metrics-port", type=int, metavar="P", help="serve /metrics on loopback; 0 picks a free port"
    )


def plugin_arguments(parser: argparse.ArgumentParser) -> None:
    """Of what speaks to a kubelet, and not to the API server."""
    logs.arguments(parser, "info")
    parser.add_argument(
        "--node",
        default=os.environ.get("NODE_NAME", ""),
        metavar="NAME",
        help="whose devices these are; default: NODE_NAME",
    )
    parser.add_argument(
        "--root",
        type=Path,
        default=KUBELET_ROOT,
        metavar="DIR",
        help=f"of the kubelet; default: {KUBELET_ROOT}",
    )


def main_of_plugin(plugin: "DevicePlugin", argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=f"device plugin of {plugin.name}")
    plugin_arguments(parser)
    options = parser.parse_args(argv)
    logs.begin(options.log_level, options.log_format)
    try:
        return asyncio.run(until_interrupted(_plug(plugin, options)))
    except OSError as wrong:
        print(f"{parser.prog}: {wrong}", file=sys.stderr)
    return 1


async def _plug(plugin: "DevicePlugin", options: argparse.Namespace) -> None:
    from .assembly import Node
    from .device_plugin import plugged

    async with plugged(plugin, Node(options.node), options.root.absolute()) as work:
        await work.registered.wait()
        print("ready", flush=True)
        await asyncio.Event().wait()


def main(driver: "Driver | NodePlugin | NumericDriver", argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=f"DRA driver {driver.name}")
    arguments(parser)
    options = parser.parse_args(argv)
    logs.begin(options.log_level, options.log_format)
    return run([driver], options, parser.prog)


def run(
    drivers: Sequence["Driver | NodePlugin | NumericDriver | DevicePlugin"],
    options: argparse.Namespace,
    program: str,
) -> int:
    """Until interrupted. What keeps them from working is one line. With several, each has its own page of
    metrics: /metrics/<driver>."""
    if not options.node:
        print(f"{program}: --node is needed: the name of the node whose devices these are", file=sys.stderr)
        return 2
    try:
        access = access_from(options.kubeconfig) if _needs_the_api(drivers) else None
        return asyncio.run(until_interrupted(_serve(drivers, options, access)))
    except CannotListen as taken:
        print(f"{program}: --metrics-port: {taken}", file=sys.stderr)
    except (BadAccess, BadState, BadPools, OSError) as wrong:
        print(f"{program}: {wrong}", file=sys.stderr)
    return 1


def _needs_the_api(drivers: Sequence["Driver | NodePlugin | NumericDriver | DevicePlugin"]) -> bool:
    """Device plugins, and drivers of numeric parameters, speak to the kubelet alone."""
    from .device_plugin import DevicePlugin
    from .numeric_driver import NumericDriver

    return not all(isinstance(one, DevicePlugin | NumericDriver) for one in drivers)


def access_from(path: Path | None) -> Access:
    """Where a program finds its cluster: what it was told, or what is usual."""
    is_there = path or any(file.exists() for file in kubeconfig.default_files(os.environ))
    if not is_there and "KUBERNETES_SERVICE_HOST" in os.environ:
        return kubeconfig.in_cluster()
    return kubeconfig.load(path or "")


async def until_interrupted(deed: Coroutine[Any, Any, None]) -> int:
    """The exit status of a program that does this until it is told to end."""
    serving = asyncio.ensure_future(deed)
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, serving.cancel)
    try:
        await serving
    except asyncio.CancelledError:
        return 0
    return 1  # drivers do not end by themselves


async def _serve(
    drivers: Sequence["Driver | NodePlugin | NumericDriver | DevicePlugin"],
    options: argparse.Namespace,
    access: Access | None,
) -> None:
    """`access` may be missing where nobody needs it."""
    from .assembly import Driver, Node, Surroundings, running
    from .device_plugin import DevicePlugin, plugged
    from .node_plugin import serving
    from .numeric_driver import Ground, NumericDriver, offering

    node = Node(options.node, options.fake)
    counts = {driver.name: Metrics() for driver in drivers}
    first = next(iter(counts.values())) if len(drivers) == 1 else Metrics()
    pages = {f"/metrics/{name}": _page(metrics) for name, metrics in counts.items()}
    async with AsyncExitStack() as stack:
        port = await stack.enter_async_context(exposed(first, options.metrics_port, pages))
        for driver in drivers:
            if isinstance(driver, DevicePlugin):
                await stack.enter_async_context(plugged(driver, node, options.root.absolute()))
                continue
            places = Places(
                driver.name, options.root.absolute(), options.cdi_dir.absolute(), options.instance
            )
            if isinstance(driver, NumericDriver):
                ground = Ground(metrics=counts[driver.name])
                await stack.enter_async_context(offering(driver, node, places, ground))
                continue
            assert access is not None
            client = Client(HttpsTransport(access), user_agent=f"allot-driver/{driver.name}")
            stack.push_async_callback(client.close)
            around = Surroundings(client, metrics=counts[driver.name])
            if isinstance(driver, Driver):
                await stack.enter_async_context(running(driver, node, places, around))
            else:
                await stack.enter_async_context(serving(driver, node, places, around))
        if options.metrics_port is not None:
            print(f"metrics http://127.0.0.1:{port}/metrics", file=sys.stderr, flush=True)
        print("ready", flush=True)
        await asyncio.Event().wait()


def _page(metrics: Metrics) -> Page:
    async def page() -> str:
        return metrics.text()

    return page
