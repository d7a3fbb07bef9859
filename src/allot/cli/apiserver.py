"""allot apiserver: the API server as a process of its own."""

import argparse
import asyncio
import gc
import signal
import sys
from collections.abc import Coroutine
from contextlib import suppress
from pathlib import Path
from typing import Any

from allot.api import errors
from allot.apiserver import Options, ServingOptions
from allot.base import logs
from allot.store import StoreError

from . import auditing, encrypting, flags
from .wording import plain


def arguments(parser: argparse.ArgumentParser, log_level: str = "info") -> None:
    logs.arguments(parser, log_level)
    parser.add_argument(
        "--data-dir", type=flags.path, default=Path("allot-data"), help="default: ./allot-data"
    )
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on (default: loopback)")
    parser.add_argument(
        "--port", type=flags.port_number, default=6443, help="0 picks a free one (default: 6443)"
    )
    parser.add_argument(
        "--store", default="sqlite", help="memory, sqlite[:PATH] (default) or etcd://HOST:PORT[,…]"
    )
    parser.add_argument(
        "--name",
        type=flags.something,
        action="append",
        default=[],
        help="another name that clients reach it by; may be repeated",
    )
    parser.add_argument(
        "--anonymous-health", action="store_true", help="let strangers see /healthz, /livez and /readyz"
    )
    parser.add_argument(
        "--socket",
        action=argparse.BooleanOptionalAction,
        default=True,
        help="also listen on DATA-DIR/api.sock, for processes of the same user (default)",
    )
    parser.add_argument(
        "--claims-with-pods",
        action=argparse.BooleanOptionalAction,
        default=False,
        help="make the claims of a new pod from their templates in the write that stores the pod, where "
        "nothing speaks against it; else the claim controller makes them (default: %(default)s)",
    )
    auditing.arguments(parser)
    encrypting.arguments(parser)
    flags.add_feature_gates(parser)


def serving_options(options: argparse.Namespace) -> ServingOptions:
    """What the flags say. Raises ValueError."""
    from allot.cluster import way_to_nodes

    return ServingOptions(
        options.data_dir,
        options.store,
        options.host,
        options.port,
        tuple(options.name),
        Options(
            gates=options.feature_gates,
            anonymous_health=options.anonymous_health,
            claims_with_pods=options.claims_with_pods,
        ),
        way_to_nodes,
        options.socket,
        auditing.settings(options),
        encrypting.settings(options),
    )


def run(options: argparse.Namespace) -> int:
    try:
        return run_loop(_serve(serving_options(options)))
    except (OSError, StoreError, ValueError, errors.ApiError) as wrong:
        print(f"allot apiserver: {plain(wrong)}", file=sys.stderr)
        return 1


async def _serve(options: ServingOptions) -> int:
    from allot.apiserver import serve

    serving = await serve(options)
    losing = asyncio.ensure_future(serving.lost())
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, losing.cancel)
    print(f"serving {serving.url}, kubeconfig {serving.kubeconfig}", file=sys.stderr)
    print("ready", flush=True)
    lost = ""
    with suppress(asyncio.CancelledError):  # interrupted, as servers are
        lost = await losing
    await serving.close()
    if lost:
        print(f"allot apiserver: ended: {lost}", file=sys.stderr)
    return 1 if lost else 0


def run_loop(main: Coroutine[Any, Any, int]) -> int:
    """asyncio.run, on the faster event loop."""
    import uvloop

    # The thread that commits needs the interpreter for moments only; five milliseconds, Python's
    # own choice, are an age for a writer that others wait for.
    sys.setswitchinterval(0.001)
    # Most of what a server makes stays: it is looked through for garbage less often than usual, and
    # the second time while it is still little, since everybody waits meanwhile.
    gc.set_threshold(50_000, 2, 1000)
    return int(uvloop.run(main))
